"""What may be chosen, and where the data lies: the constraints and data parts of a job document."""

import re
from typing import Annotated

from api.checkpoint_location import ACCEPTED, EXAMPLES, checkpoint_location
from api.documents.words import PARTITIONS, PROVIDER_ALIASES, PROVIDERS
from catalog.accelerator_names import accelerator_text
from catalog.accelerators import accelerator_family, accelerators
from catalog.document_fields import Document, Listed, Reads, YesNo, choice, choose, nearest, quantity, whole_number
from catalog.price_kinds import price_kinds
from catalog.quantities import carbon_kg, gb, shown
from catalog.regions import GEOGRAPHIES, regions
from planner.job import MAX_NODES, Constraints, DataSource

MAX_ACCELERATORS = 262_144
#: More changes of machines than this save nothing that an estimate could tell.
MAX_PHASES = 3
_GLOB = re.compile(r"[A-Za-z0-9_.*?\[\]!-]+")


def region_glob(value: object) -> str:
    """A glob over the provider's own region names, perhaps qualified: `us-*`, `azure:east*`."""
    accepted = "write a region or glob such as us-east-1, europe-*, or azure:east* for one provider"
    if not isinstance(value, str):
        raise ValueError(f"{shown(value)} is not accepted; {accepted}")
    provider, colon, glob = value.strip().rpartition(":")
    if len(glob) > 100 or not _GLOB.fullmatch(glob):
        raise ValueError(f"{shown(value)} is not a region glob; {accepted}")
    return f"{choose(provider, PROVIDERS, PROVIDER_ALIASES)}:{glob}" if colon else glob


def type_glob(value: object) -> str:
    """A glob over instance type names: `p5.*`, `Standard_ND*`."""
    if not isinstance(value, str) or len(value) > 100 or not re.fullmatch(r"[\w .*?\[\]!+()/-]+", value.strip()):
        raise ValueError(f"{shown(value)} is not accepted; write an instance type or glob such as p5.48xlarge or a2-*")
    return value.strip()


def place(value: object) -> str:
    """Where data lies: `provider:region`, or a provider that has one place, such as `local`."""
    accepted = "write provider:region such as aws:us-east-1, or local"
    if not isinstance(value, str) or len(value) > 100:
        raise ValueError(f"{shown(value)} is not accepted; {accepted}")
    provider, colon, region = value.strip().partition(":")
    if not colon and provider.lower() != "local":
        raise ValueError(f"{shown(value)} needs both a provider and a region; {accepted}")
    if colon and not re.fullmatch(r"[A-Za-z0-9_.-]+", region):
        raise ValueError(f"{shown(region)} is not a region; {accepted}")
    provider = choose(provider, PROVIDERS, PROVIDER_ALIASES)
    known = [name for owner, name in regions() if owner == provider]
    if known and region.lower() not in known:
        near = ", ".join(nearest(region, known, most=3)) or known[0]
        raise ValueError(
            f"{shown(region)} is not a region of {provider} that gpuplan knows; nearest: {near}"
            " (of a region without accelerators, name a neighbour)"
        )
    return provider + colon + (region.lower() if known else region)


def _vendor(value: object) -> str:
    return choose(value, sorted({row.vendor for row in accelerators().values()}))


def _geography(value: object) -> str:
    return choose(value, tuple(GEOGRAPHIES), {"usa": "us", "european_union": "eu", "gb": "uk"})


def _price_kind(value: object) -> str:
    return choose(value, tuple(price_kinds()))


_Name = {"type": "string"}
Providers = Annotated[tuple[Annotated[str, choice(PROVIDERS, PROVIDER_ALIASES)], ...], Listed()]
Regions = Annotated[tuple[Annotated[str, Reads(region_glob, _Name)], ...], Listed()]
Geographies = Annotated[tuple[Annotated[str, Reads(_geography, _Name)], ...], Listed()]
Kinds = Annotated[tuple[Annotated[str, Reads(_price_kind, _Name)], ...], Listed()]
Accelerators = Annotated[tuple[Annotated[str, Reads(accelerator_text, _Name)], ...], Listed()]
Vendors = Annotated[tuple[Annotated[str, Reads(_vendor, _Name)], ...], Listed()]
Types = Annotated[tuple[Annotated[str, Reads(type_glob, _Name)], ...], Listed()]
Partitions = Annotated[tuple[Annotated[str, choice(PARTITIONS)], ...], Listed()]


class ConstraintsDocument(Document):
    """What may be chosen; an empty or missing list means no restriction."""

    providers: Providers = ()
    regions: Regions = ()
    geography: Geographies = ()
    price_kinds: Kinds = ()
    accelerators: Accelerators = ()
    vendors: Vendors = ()
    instance_types: Types = ()
    max_nodes: Annotated[int, whole_number(1, MAX_NODES)] = 32
    max_accelerators: Annotated[int, whole_number(1, MAX_ACCELERATORS)] | None = None
    max_phases: Annotated[int, whole_number(1, MAX_PHASES, "1 stays on the same machines from start to end")] = 3
    carbon_budget_kg: (
        Annotated[float, quantity(carbon_kg, "kg of CO2 equivalents; 500, 500 kg, 2 t", 500, "2 t")] | None
    ) = None
    unverified_availability: Annotated[bool, YesNo] = False
    partitions: Partitions = ("commercial",)

    def constraints(self) -> Constraints:
        """As the planner takes them, each name once."""
        given = {name: getattr(self, name) for name in type(self).model_fields}
        given["accelerators"] = tuple(name for text in self.accelerators for name in accelerator_family(text))
        unique = {name: tuple(dict.fromkeys(value)) for name, value in given.items() if isinstance(value, tuple)}
        return Constraints(**given | unique | {"partitions": unique["partitions"] or ("commercial",)})

    def notes(self) -> list[str]:
        """What a name that several accelerators share was taken for."""
        families = {text: accelerator_family(text) for text in self.accelerators}
        return [
            f"accelerators: {shown(text)} means any of {', '.join(names)}"
            for text, names in families.items()
            if len(names) > 1
        ]


class DataDocument(Document):
    """Where the training data lies, how large it is in GB (10^9 bytes), and where checkpoints are kept."""

    location: Annotated[str, Reads(place, {"type": "string", "examples": ["aws:us-east-1", "local"]})] | None = None
    dataset_gb: Annotated[float, quantity(lambda value: gb(value, zero=True), "GB, or 4 TB, 500 GiB", 4000, "4 TB")] = (
        0.0
    )
    checkpoints: (
        Annotated[
            str,
            Reads(checkpoint_location, {"type": "string", "description": ACCEPTED, "examples": list(EXAMPLES)}),
        ]
        | None
    ) = None

    def source(self) -> DataSource:
        """As the planner takes it."""
        provider, _, region = (self.location or "").partition(":")
        return DataSource(
            provider=provider, region=region, dataset_gb=self.dataset_gb, checkpoints=self.checkpoints or ""
        )
