"""The document of a spot run: work, deadline, places, and their availability.

name: fine-tune
work: 24h                      # hours on the on-demand machines
deadline: 36h                  # from the start
changeover: 15min              # boot, image, loading the checkpoint; paid, without progress
on_demand_usd_per_hour: 32.77  # all nodes together
places:
  - {name: us-east-1a, usd_per_hour: 9.83, region: us-east-1}
  - {name: us-west-2b, usd_per_hour: 9.10, region: us-west-2, mean_up: 6h, mean_down: 2h}
moving: {usd: 12, takes: 10min}    # the checkpoint between regions; on-demand is in the first place's region
checkpoint_write: 40s              # 0, the default: nothing is lost at a preemption
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue

from gpuplan.catalog.parsing.document_fields import Document, Label, quantity, whole_number
from gpuplan.catalog.parsing.quantities import hours, shown
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.spot_policy.availability_traces import DEFAULT_STEP_HOURS, Trace
from gpuplan.planner.spot_policy.policy_solver import MOST_CELLS, cells
from gpuplan.planner.spot_policy.run_parameters import MOST_ZONES, ON_DEMAND, Place, SpotTerms
from gpuplan.planner.spot_policy.zone_availability import ZoneChain, edges_for, fit, two_state, typical_chain

#: Accepted prices per hour, from one small node to the largest cluster.
_MOST_USD_PER_HOUR = 1e6
#: The unit of money in USD; shares of smaller costs would not be finite.
_LEAST_USD_PER_HOUR = 1e-6
#: Coarser time steps for tables that would be too large.
_STEPS_HOURS = (1 / 12, 1 / 6, 1 / 4, 1 / 3, 1 / 2, 1.0, 2.0, 3.0, 4.0, 6.0, 12.0)


def _usd_per_hour(value: object) -> float:
    number = 0.0 if isinstance(value, bool) or not isinstance(value, int | float) else value
    if not _LEAST_USD_PER_HOUR <= number <= _MOST_USD_PER_HOUR:
        raise ValueError(f"{shown(value)} is not accepted; write dollars per hour of all nodes, such as 9.83")
    return float(number)


def _usd(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_USD_PER_HOUR:
        raise ValueError(f"{shown(value)} is not accepted; write dollars, 0 or more")
    return float(value)


def _speed(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.01 <= value <= 100:
        raise ValueError(f"{shown(value)} is not accepted; write hours of work done per hour, 0.01 to 100")
    return float(value)


def _hours_or_none(value: object) -> float:
    return hours(value, zero=True)


Hours = Annotated[float, quantity(hours, "hours as a number, or 36h, 7d, 90min", "36h")]
HoursOrNone = Annotated[float, quantity(_hours_or_none, "hours as a number, or 15min, 40s; 0 for none", "15min")]
UsdPerHour = Annotated[float, quantity(_usd_per_hour, "US dollars per hour of all nodes", 9.83)]


class PlaceDocument(Document):
    """A zone and kind of interruptible machine, with `mean_up` and `mean_down` if known."""

    name: Annotated[str, Label]
    usd_per_hour: UsdPerHour
    region: Annotated[str, Label] | None = None
    speed: Annotated[float, quantity(_speed, "hours of work done per hour", 1.0)] = 1.0
    mean_up: Hours | None = None
    mean_down: Hours | None = None


class MovingDocument(Document):
    """The cost and time of moving the checkpoint to another region."""

    usd: Annotated[float, quantity(_usd, "US dollars per move", 12)] = 0.0
    takes: HoursOrNone = 0.0


RUN_EXAMPLE: dict[str, JsonValue] = {
    "name": "fine-tune",
    "work": "24h",
    "deadline": "36h",
    "changeover": "15min",
    "on_demand_usd_per_hour": 32.77,
    "places": [
        {"name": "us-east-1a", "usd_per_hour": 9.83, "region": "us-east-1"},
        {"name": "us-west-2b", "usd_per_hour": 9.1, "region": "us-west-2", "mean_up": "6h", "mean_down": "2h"},
    ],
    "moving": {"usd": 12, "takes": "10min"},
}


class SpotRunDocument(Document):
    """A run on interruptible machines with a deadline."""

    model_config = ConfigDict(json_schema_extra={"examples": [RUN_EXAMPLE]})

    name: Annotated[str, Label] | None = None
    work: Hours
    deadline: Hours
    changeover: HoursOrNone = 0.25
    step: Hours | None = None
    nodes: Annotated[int, whole_number(1, 4096, "nodes that must all be available")] = 1
    on_demand_usd_per_hour: UsdPerHour
    places: list[PlaceDocument] = Field(min_length=1, max_length=MOST_ZONES)
    moving: MovingDocument = Field(default_factory=MovingDocument)
    checkpoint_write: HoursOrNone = 0.0
    checkpoint_every: Hours | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotRequest:
    """The parameters and availability chains of a run, and the assumptions about them."""

    name: str | None
    nodes: int
    terms: SpotTerms
    chains: tuple[ZoneChain, ...]
    assumptions: tuple[str, ...]


def spot_request(read: SpotRunDocument, *, fitting: Mapping[str, Sequence[Trace]] | None = None) -> SpotRequest:
    """A zone's chain is fitted on its `fitting` traces, else as stated, else typical. Raises `UnusableInput`."""
    terms = _terms(read).checked()
    histories = fitting or {}
    zones = len(terms.places)
    assumptions: list[str] = []
    steps = (read.step,) if read.step is not None else tuple(s for s in _STEPS_HOURS if s >= DEFAULT_STEP_HOURS)
    for step in steps:
        terms = replace(terms, step_hours=step)
        if read.step is not None or cells(terms, (2 * len(edges_for(zones, 0.0)) + 2,) * zones) <= MOST_CELLS:
            break
    chains = tuple(
        _chain(
            place,
            histories.get(place.name, ()),
            assumptions,
            nodes=read.nodes,
            step=terms.step_hours,
            edges=edges_for(zones, terms.step_hours),
            at=i,
        )
        for i, place in enumerate(read.places)
    )
    if read.checkpoint_write > 0:
        terms = _with_checkpoints(terms, chains, read)
        assumptions.append(
            f"a checkpoint every {terms.checkpoint_every_hours * 60:.3g} min, written in "
            f"{read.checkpoint_write * 3600:.3g} s; a preemption loses the work since the last one"
        )
    else:
        assumptions.append("a preemption loses only the changeover; give checkpoint_write to count lost work")
    assumptions.append(f"decisions every {terms.step_hours * 60:.3g} min; the availability of zones is independent")
    return SpotRequest(name=read.name, nodes=read.nodes, terms=terms, chains=chains, assumptions=tuple(assumptions))


def _terms(read: SpotRunDocument) -> SpotTerms:
    names = [place.name for place in read.places]
    for i, place in enumerate(read.places):
        if names.index(place.name) < i or place.name == ON_DEMAND:
            message = f"{shown(place.name)} is used twice; give every place a unique name"
            raise UnusableInput.at("places", i, "name", message=message)
    # On-demand machines are rented in the region of the first place.
    regions = [*(place.region for place in read.places), read.places[0].region]

    def table(value: float) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(value if one != other else 0.0 for other in regions) for one in regions)

    try:
        return SpotTerms(
            work_hours=read.work,
            deadline_hours=read.deadline,
            step_hours=DEFAULT_STEP_HOURS,
            changeover_hours=read.changeover,
            on_demand_usd_per_hour=read.on_demand_usd_per_hour,
            places=tuple(
                Place(name=place.name, usd_per_hour=place.usd_per_hour, speed=place.speed) for place in read.places
            ),
            move_hours=table(read.moving.takes),
            move_usd=table(read.moving.usd),
        ).checked()
    except UnusableInput as error:
        raise UnusableInput(*(replace(f, path=_FIELDS.get(f.path, f.path)) for f in error.faults)) from None


#: The document's field names of the run parameters.
_FIELDS: dict[tuple[str | int, ...], tuple[str | int, ...]] = {
    ("deadline_hours",): ("deadline",),
    ("work_hours",): ("work",),
    ("step_hours",): ("step",),
    ("changeover_hours",): ("changeover",),
}


def _chain(
    place: PlaceDocument,
    traces: Sequence[Trace],
    assumptions: list[str],
    *,
    nodes: int,
    step: float,
    edges: tuple[float, ...],
    at: int,
) -> ZoneChain:
    """The availability chain of one place; adds its source to the notes."""
    if traces:
        histories = [history for trace in traces if len(history := trace.up(nodes, step)) > 1]
        if not histories:
            raise UnusableInput.at(
                "fit", message=f"no trace for {place.name} is at least two steps of {step:.3g} h long"
            )
        assumptions.append(f"{place.name}: fitted on {sum(trace.hours for trace in traces):,.0f} h of traces")
        return fit(histories, step, edges)
    if (place.mean_up is None) != (place.mean_down is None):
        missing = "mean_up" if place.mean_up is None else "mean_down"
        raise UnusableInput.at("places", at, missing, message="is missing; give mean_up and mean_down, or neither")
    if place.mean_up is not None and place.mean_down is not None:
        assumptions.append(
            f"{place.name}: memoryless, up {place.mean_up:.3g} h and down {place.mean_down:.3g} h on average"
        )
        return two_state(mean_up_hours=place.mean_up, mean_down_hours=place.mean_down, step_hours=step)
    assumptions.append(
        f"{place.name}: modelled as the typical zone of public traces (2022-23); give traces or mean_up and mean_down for a better model"
    )
    return typical_chain(step, classes=len(edges) + 1)


def _with_checkpoints(terms: SpotTerms, chains: Sequence[ZoneChain], read: SpotRunDocument) -> SpotTerms:
    """Adds checkpoints at the stated or optimal interval (Young 1974); writing them slows every place down."""
    rate = max(chain.preemptions_per_up_hour for chain in chains)
    every = read.checkpoint_every or min(math.sqrt(2 * read.checkpoint_write / max(rate, 1e-9)), terms.work_hours)
    share = every / (every + read.checkpoint_write)
    places = tuple(replace(place, speed=place.speed * share) for place in terms.places)
    return replace(terms, places=places, checkpoint_every_hours=every)
