"""Addresses of the public AWS price files: the index of regions, and the candidates for a region's file."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from gpuplan.catalog.model.regions import regions
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.aws.price_rows import LOCAL_ZONE, REGION
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.feed_client import get_json, web_client

OFFERS = "/offers/v1.0/aws/AmazonEC2/current"
SAVINGS_PLANS = "/savingsPlan/v1.0/aws/AWSComputeSavingsPlan/current"
INDEX = "region_index.json"
#: Keys of an index entry for the address of a region's file: one for products, one for savings plans.
ADDRESS_FIELDS = ("currentVersionUrl", "versionUrl")
#: The files of mainland China are at another address and in another currency.
ELSEWHERE = frozenset({"china"})


def file_index(sources: Sources, folder: str) -> dict[str, str]:
    """The path of each region's JSON file by region or Local Zone, without Wavelength Zones and others.

    Raises `NotThere` if there is no index, `ProviderFailure` if it cannot be read.
    """
    url = address(sources, f"{folder}/{INDEX}")
    with web_client() as client:
        document, _ = get_json(client, url)
    listed = document.get("regions") if isinstance(document, Mapping) else None
    entries: list[tuple[str, Any]] = []
    if isinstance(listed, Mapping):
        entries = list(listed.items())
    elif isinstance(listed, list):
        entries = [("", entry) for entry in listed]
    addresses = {}
    for name, entry in entries:
        code, path = _entry(name, entry)
        if path and (REGION.match(code) or LOCAL_ZONE.search(code)):
            addresses[code] = path
    if not addresses:
        raise ProviderFailure(f"{folder}/{INDEX}: lists no region; its format may have changed")
    return dict(sorted(addresses.items()))


def _entry(name: str, entry: Any) -> tuple[str, str]:
    if not isinstance(entry, Mapping):
        return name, ""
    path = next((entry[field] for field in ADDRESS_FIELDS if isinstance(entry.get(field), str)), "")
    return str(entry.get("regionCode") or name), path


def parent_of(code: str) -> str:
    """The region that a Local Zone belongs to; "" for a region."""
    zone = LOCAL_ZONE.search(code)
    if zone is None:
        return ""
    known = regions().get(("aws", code))
    return (known.parent_region if known else "") or code.rsplit("-", 2)[0]


def known_regions() -> list[str]:
    """The known regions with files at this address, for use without an index."""
    return sorted(
        region.name
        for region in regions().values()
        if region.provider == "aws" and region.partition not in ELSEWHERE and REGION.match(region.name)
    )


def address(sources: Sources, path: str) -> str:
    """A path of the price files below their configured root; of an absolute URL only the path counts."""
    root = sources.aws_price_files_url.rstrip("/")
    return f"{root}/{urlsplit(path).path.lstrip('/')}"


def candidates(sources: Sources, *paths: str) -> list[tuple[str, bool]]:
    """Candidate addresses of a file, best first, each with whether it is CSV; the CSV is smaller than the JSON."""
    stems = dict.fromkeys(path.removesuffix(".json").removesuffix(".csv") for path in paths if path)
    return [
        (address(sources, f"{stem}.{ending}"), is_csv)
        for ending, is_csv in (("csv", True), ("json", False))
        for stem in stems
    ]
