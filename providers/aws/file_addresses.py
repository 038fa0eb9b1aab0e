"""Where the public AWS price files lie: the index of regions and the addresses that a region's file may have."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from catalog.errors import ProviderFailure
from catalog.regions import regions
from providers.aws.price_rows import LOCAL_ZONE, REGION
from providers.sources import Sources
from providers.web import get_json, web_client

OFFERS = "/offers/v1.0/aws/AmazonEC2/current"
SAVINGS_PLANS = "/savingsPlan/v1.0/aws/AWSComputeSavingsPlan/current"
INDEX = "region_index.json"
#: What the entries of an index call the address of a region's file: products say the one, savings plans the other.
ADDRESS_FIELDS = ("currentVersionUrl", "versionUrl")
#: The files of mainland China lie elsewhere and are in another currency.
ELSEWHERE = frozenset({"china"})


def file_index(sources: Sources, folder: str) -> dict[str, str]:
    """The path of each region's JSON file by region or Local Zone; Wavelength zones and the like are not among them.

    Raises `NotThere` if there is no index, `ProviderFailure` for one that cannot be read.
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
    found = {}
    for name, entry in entries:
        code, path = _entry(name, entry)
        if path and (REGION.match(code) or LOCAL_ZONE.search(code)):
            found[code] = path
    if not found:
        raise ProviderFailure(f"{folder}/{INDEX}: lists no region; its format may have changed")
    return dict(sorted(found.items()))


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
    """The regions that gpuplan knows and whose files lie here, for when there is no index."""
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
    """Where a file may be, best first, with whether it is CSV; the CSV is smaller than the JSON beside it."""
    stems = dict.fromkeys(path.removesuffix(".json").removesuffix(".csv") for path in paths if path)
    return [
        (address(sources, f"{stem}.{ending}"), is_csv)
        for ending, is_csv in (("csv", True), ("json", False))
        for stem in stems
    ]
