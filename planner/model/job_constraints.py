"""The requirements of a job on machines, places and prices."""

from dataclasses import dataclass
from typing import Annotated

from gpuplan.catalog.model.provider_names import CLOUD, NEOCLOUD, PROVIDER_KINDS
from gpuplan.catalog.model.regions import GEOGRAPHIES
from gpuplan.catalog.parsing.accelerator_names import accelerator_family_text
from gpuplan.catalog.parsing.document_fields import Reads, YesNo, choice, quantity, whole_number
from gpuplan.catalog.parsing.place_names import (
    PARTITIONS,
    PROVIDER_KIND_ALIASES,
    PROVIDER_LABELS,
    ProviderField,
    geography_name,
    price_kind_labels,
    price_kind_name,
    region_glob,
    type_glob,
    vendor_name,
)
from gpuplan.catalog.parsing.quantities import carbon_kg
from gpuplan.planner.model.job_field import JobField
from gpuplan.planner.model.quota import KNOWN, QUOTA_CHOICES

#: Requirements that can be relaxed, by field name; an offer that breaks several counts under the first.
REQUIREMENTS = (
    "constraints.providers",
    "constraints.provider_kinds",
    "constraints.accelerators",
    "constraints.vendors",
    "constraints.instance_types",
    "constraints.regions",
    "constraints.geography",
    "constraints.price_kinds",
    "constraints.max_nodes",
    "constraints.max_accelerators",
    "constraints.carbon_budget_kg",
    "objective",
    "training.framework",
    "training.precision",
    "deadline",
    "budget_usd",
    "constraints.quotas",
)

#: The most that `max_nodes` may be: the largest published training clusters have about 4,000 nodes of 8 accelerators.
MAX_NODES = 4096
MAX_ACCELERATORS = 262_144
#: Plans have at most two phases: over 400 varied jobs no plan of three phases was cheaper. Three, a former default, is
#: read as two.
MAX_PHASES, _MOST_PHASES_READ = 2, 3
_NAME = {"type": "string"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """The requirements on machines and places. Empty means no restriction (for `price_kinds`: the default kinds).

    With a `carbon_budget_kg`, machines of unknown carbon are out.
    """

    providers: Annotated[
        tuple[str, ...],
        JobField(
            ProviderField,
            "all unless given; `own-NAME` is a list of your own rates",
            example="aws,gcp",
            group="machines",
            in_modal=True,
            choices=lambda: PROVIDER_LABELS,
            words=("providers", "provider"),
        ),
    ] = ()
    provider_kinds: Annotated[
        tuple[str, ...],
        JobField(
            choice(tuple(PROVIDER_KINDS), PROVIDER_KIND_ALIASES),
            "kinds of sellers: marketplaces rent machines of third parties and are opt-in; own machines are exempt",
            example="cloud,neocloud,marketplace",
            group="machines",
            choices=lambda: PROVIDER_KINDS,
            words=("sellers",),
        ),
    ] = (CLOUD, NEOCLOUD)
    regions: Annotated[
        tuple[str, ...],
        JobField(
            Reads(region_glob, _NAME),
            "globs over the providers' names, may be qualified: `azure:east*`; own machines are exempt",
            example="us-east-1,azure:east*",
            group="places",
            in_modal=True,
            words=("in", "region"),
        ),
    ] = ()
    geography: Annotated[
        tuple[str, ...],
        JobField(
            Reads(geography_name, _NAME),
            "`us`, `eu`, `asia`, ...: what people mean by it; anywhere unless given",
            example="us,eu",
            group="places",
            choices=lambda: GEOGRAPHIES,
            words=("in",),
        ),
    ] = ()
    price_kinds: Annotated[
        tuple[str, ...],
        JobField(
            Reads(price_kind_name, _NAME),
            "on demand, spot and own machines unless given; kinds with a term cost the whole term",
            example="spot,on_demand",
            group="places",
            in_modal=True,
            choices=price_kind_labels,
            words=("kinds", "kind"),
        ),
    ] = ()
    accelerators: Annotated[
        tuple[str, ...],
        JobField(
            Reads(accelerator_family_text, _NAME),
            "names or usual aliases: `H100`, `RTX 3090`; `gpuplan accelerators` lists them",
            example="H100,A100",
            group="machines",
            in_modal=True,
            suggests="accelerators",
            words=("on", "accelerator"),
        ),
    ] = ()
    vendors: Annotated[tuple[str, ...], JobField(Reads(vendor_name, _NAME), "of accelerators", example="nvidia")] = ()
    instance_types: Annotated[tuple[str, ...], JobField(Reads(type_glob, _NAME), "globs: `p5*`", example="p5*")] = ()
    max_nodes: Annotated[
        int,
        JobField(
            whole_number(1, MAX_NODES),
            "the most machines at once",
            label="Most nodes",
            example="16",
            group="machines",
            in_modal=True,
            words=("nodes",),
        ),
    ] = 32
    max_accelerators: Annotated[
        int | None, JobField(whole_number(1, MAX_ACCELERATORS), "the most accelerators at once", example="64")
    ] = None
    max_phases: Annotated[
        int,
        JobField(
            whole_number(1, _MOST_PHASES_READ, "1: the same machines throughout; 2: may migrate once; 3 is read as 2"),
            "1 forbids moves; 3 is read as 2",
            example="1",
        ),
    ] = MAX_PHASES
    carbon_budget_kg: Annotated[
        float | None,
        JobField(
            quantity(carbon_kg, "kg of CO2 equivalents; 500, 500 kg, 2 t", 500, "2 t"), "the most CO2 equivalents"
        ),
    ] = None
    unverified_availability: Annotated[bool, JobField(YesNo, "also offers whose availability nobody verified")] = False
    quotas: Annotated[
        str,
        JobField(
            choice(QUOTA_CHOICES),
            "known: keep to the quotas that are known; respect: refuse the job if none is; ignore: as if there were none",
            example="ignore",
        ),
    ] = KNOWN
    partitions: Annotated[
        tuple[str, ...],
        JobField(choice(PARTITIONS), "government and Chinese regions are opt-in", example="commercial,gov"),
    ] = ("commercial",)
