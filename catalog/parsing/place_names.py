"""Providers, regions and instance types in user documents: accepted names, aliases and globs."""

import re
from collections.abc import Mapping

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.model.provider_names import OWN_RATES, PROVIDER_KINDS, is_own_rates, provider_names
from gpuplan.catalog.model.regions import GEOGRAPHIES, is_place_unknown, regions
from gpuplan.catalog.parsing.document_fields import Reads, choose, nearest
from gpuplan.catalog.parsing.quantities import shown

#: How forms name each provider.
PROVIDER_LABELS = {name: row.label for name, row in provider_names().items()}
PROVIDERS = tuple(PROVIDER_LABELS)
PROVIDER_ALIASES = {alias: name for name, row in provider_names().items() for alias in row.aliases}
#: Accepted spellings of the kinds of sellers besides their names.
PROVIDER_KIND_ALIASES = {f"{name}s": name for name in PROVIDER_KINDS} | {"market": "marketplace"}
PARTITIONS = ("commercial", "gov", "china")
GEOGRAPHY_ALIASES = {"usa": "us", "european_union": "eu", "gb": "uk"}
_GLOB = re.compile(r"[A-Za-z0-9_.*?\[\]!-]+")


def provider_name(value: object) -> str:
    """A provider of the table, or a list of the user's own rates, whatever the settings call it."""
    if isinstance(value, str) and is_own_rates(name := value.strip().lower()):
        return name
    return choose(value, PROVIDERS, PROVIDER_ALIASES)


#: The annotation of a field that names a provider.
ProviderField = Reads(
    provider_name, {"type": "string", "anyOf": [{"enum": list(PROVIDERS)}, {"pattern": f"^{OWN_RATES}$"}]}
)


def region_glob(value: object) -> str:
    """A glob over provider region names, optionally with the provider: `us-*`, `azure:east*`."""
    accepted = "write a region or glob such as us-east-1, europe-*, or azure:east* for one provider"
    if not isinstance(value, str):
        raise ValueError(f"{shown(value)} is not accepted; {accepted}")
    provider, colon, glob = value.strip().rpartition(":")
    if len(glob) > 100 or not _GLOB.fullmatch(glob):
        raise ValueError(f"{shown(value)} is not a region glob; {accepted}")
    return f"{provider_name(provider)}:{glob}" if colon else glob


def type_glob(value: object) -> str:
    """A glob over instance type names: `p5.*`, `Standard_ND*`."""
    if not isinstance(value, str) or len(value) > 100 or not re.fullmatch(r"[\w .*?\[\]!+()/-]+", value.strip()):
        raise ValueError(f"{shown(value)} is not accepted; write an instance type or glob such as p5.48xlarge or a2-*")
    return value.strip()


def data_location(value: object) -> str:
    """The location of data: `provider:region`, or a provider with a single place, such as `local`."""
    accepted = "write provider:region such as aws:us-east-1, or local"
    if not isinstance(value, str) or len(value) > 100:
        raise ValueError(f"{shown(value)} is not accepted; {accepted}")
    provider, colon, region = value.strip().partition(":")
    if not colon and provider.lower() != "local":
        raise ValueError(f"{shown(value)} needs both a provider and a region; {accepted}")
    if colon and not re.fullmatch(r"[A-Za-z0-9_.-]+", region):
        raise ValueError(f"{shown(region)} is not a region; {accepted}")
    provider = provider_name(provider)
    known = {name.lower(): name for owner, name in regions() if owner == provider and not is_place_unknown(name)}
    if known and region.lower() not in known:
        near = ", ".join(nearest(region, list(known.values()), most=3)) or next(iter(known.values()))
        raise ValueError(
            f"{shown(region)} is not a region of {provider} that gpuplan knows; nearest: {near}"
            " (for a region without accelerators, name a neighbouring region)"
        )
    return provider + colon + (known[region.lower()] if known else region)


def vendor_name(value: object) -> str:
    """A vendor of accelerators."""
    return choose(value, sorted({row.vendor for row in accelerators().values()}))


def geography_name(value: object) -> str:
    """A part of the world, as people mean it."""
    return choose(value, tuple(GEOGRAPHIES), GEOGRAPHY_ALIASES)


def price_kind_name(value: object) -> str:
    """A price kind of the table."""
    return choose(value, tuple(price_kinds()))


def price_kind_labels() -> Mapping[str, str]:
    """How forms name each price kind, those of a job by default first."""
    kinds = sorted(price_kinds().values(), key=lambda kind: not kind.in_default)
    return {kind.name: kind.name.replace("_", " ") for kind in kinds}
