"""What a job costs on the machines that a launch script asks for, beside the cheapest plan."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from gpuplan.api.services.service_context import Document, ServiceContext
from gpuplan.catalog.model.accelerators import accelerator_family
from gpuplan.catalog.model.provider_names import MARKETPLACE, provider_kind
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.candidates.setup_hours import setup_hours_of
from gpuplan.planner.model.settings import PlannerSettings

ON_DEMAND = "on_demand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """`nodes` machines of `per_node` accelerators each; `accelerator` is a name as people write it.

    An `instance_type` says both itself.
    """

    nodes: int
    accelerator: str = ""
    per_node: int = 0
    instance_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostAsAsked:
    """The cheapest such machines on demand. `hours` and `usd` are of the job there, set-up included; None: it does not fit.

    `usd_per_hour` is the price of all nodes.
    """

    provider: str
    region: str
    instance_type: str
    usd_per_hour: float
    hours: float | None
    usd: float | None


def cost_as_asked(context: ServiceContext, document: Document, asked: Asked, *, now: datetime) -> CostAsAsked | None:
    """The job on the machines that were asked for, at the snapshot's list prices; None if nobody sells such machines.

    Raises `UnusableInput` for an accelerator that the catalogue does not know.
    """
    from gpuplan.api.schemas.job import parse_job
    from gpuplan.planner.performance.configuration_on_request import On
    from gpuplan.planner.performance.single_configuration import estimate_on
    from gpuplan.planner.workload import work_of

    columns, settings, job = context.columns(), context.settings, parse_job(document, now=now)
    ways: list[CostAsAsked] = []
    for card, offer in _cheapest_by_card(columns, asked).items():
        per_node = int(columns.instance_types[int(columns.type_index[offer])].accelerator_count)
        try:
            estimate = estimate_on(
                work_of(job.workload, job.training),
                job.training,
                On(accelerator=card, gpus=asked.nodes * per_node, gpus_per_node=per_node),
                goodput=settings.goodput,
            )
        except UnusableInput:
            # The job cannot run on this card at all, as with a precision that it lacks.
            continue
        ways.append(
            _cost(columns, offer, asked, estimate.hours_with_goodput if estimate.memory.fits else None, settings)
        )
    return min(ways, key=lambda way: (way.usd is None, way.usd or way.usd_per_hour), default=None)


def _cheapest_by_card(columns: Columns, asked: Asked) -> dict[str, int]:
    """The cheapest offer on demand, outside marketplaces, of each card that the name may mean."""
    types = columns.instance_types
    named = asked.instance_type
    family = () if named else accelerator_family(asked.accelerator, path=("resources", "accelerators"))
    wanted = np.array(
        [
            (type_.name == named or (type_.accelerator in family and type_.accelerator_count == asked.per_node))
            and type_.accelerator_count >= 1
            and (asked.nodes == 1 or type_.clusters)
            and not type_.fixed_nodes
            and not type_.retired
            and provider_kind(type_.provider, type_.name) != MARKETPLACE
            for type_ in types
        ],
        np.bool_,
    )
    paid = np.array([kind == ON_DEMAND for kind in columns.kinds], np.bool_)
    some = wanted[columns.type_index] & paid[columns.kind_index] & columns.plannable & columns.verified
    cheapest: dict[str, int] = {}
    for index in np.flatnonzero(some).tolist():
        card = types[int(columns.type_index[index])].accelerator
        if card not in cheapest or columns.usd_per_hour[index] < columns.usd_per_hour[cheapest[card]]:
            cheapest[card] = index
    return cheapest


def _cost(columns: Columns, offer: int, asked: Asked, hours: float | None, settings: PlannerSettings) -> CostAsAsked:
    provider, region = columns.regions[int(columns.region_index[offer])]
    price = float(columns.usd_per_hour[offer]) * asked.nodes
    at = np.array([offer])
    kind, type_ = columns.kind_index[at].astype(np.intp), columns.type_index[at].astype(np.intp)
    setup_hours = float(setup_hours_of(columns, type_, kind, np.array([asked.nodes]), settings.setup_hours)[0])
    whole = None if hours is None else hours + setup_hours
    return CostAsAsked(
        provider=provider,
        region=region,
        instance_type=columns.instance_types[int(columns.type_index[offer])].name,
        usd_per_hour=price,
        hours=whole,
        usd=None if whole is None else whole * price,
    )
