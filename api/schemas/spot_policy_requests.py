"""Requests about spot runs: the policy, the decision now, and a backtest.

run: {work: 24h, deadline: 36h, ...}     # as `gpuplan.api.schemas.spot_run` reads it, or plan: the id of a saved plan
fit: [{name: us-east-1a, metadata: {gap_seconds: 300}, data: [0, 1, ...]}]
now: {time: 3h20min, work_left: 20h, up: [us-east-1a], at: us-east-1a}
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue

from gpuplan.api.schemas.availability_trace_files import distinct, parse_traces
from gpuplan.api.schemas.spot_run import RUN_EXAMPLE, HoursOrNone
from gpuplan.catalog.parsing.document_fields import Document, Label, Listed, quantity, whole_number
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.spot_policy.availability_traces import Trace
from gpuplan.planner.spot_policy.run_parameters import MOST_ZONES

MOST_STARTS = 5_000
#: Most trace documents; one may contain several zones.
MOST_TRACES = 50

TraceDocuments = Annotated[tuple[dict[str, JsonValue], ...], Listed(MOST_TRACES)]
Places = Annotated[tuple[Annotated[str, Label], ...], Listed(MOST_ZONES)]


class SituationDocument(Document):
    """The state of a run: time since the start, work left in on-demand hours, its place, and available places."""

    time: HoursOrNone
    work_left: HoursOrNone
    saved_work_left: HoursOrNone | None = None
    up: Places = ()
    at: Annotated[str, Label] | None = None
    data_at: Annotated[str, Label] | None = None
    since: dict[str, HoursOrNone] = Field(default_factory=dict)
    starts_in: HoursOrNone = 0.0
    checkpoint_age: HoursOrNone = 0.0


class _AboutRun(Document):
    """The run as a document or by the id of a saved plan, and traces to fit its places."""

    run: dict[str, JsonValue] | None = None
    plan: Annotated[str, Label] | None = None
    fit: TraceDocuments = ()


_NOW: JsonValue = {"time": "3h20min", "work_left": "21h", "up": ["us-east-1a"], "at": "us-east-1a"}
_UP_AND_DOWN: list[JsonValue] = [*[1] * 60, *[0] * 12]
_TRACES: JsonValue = [
    {"name": name, "metadata": {"gap_seconds": 900}, "data": (_UP_AND_DOWN * 4)[shift : shift + 200]}
    for name, shift in (("us-east-1a", 0), ("us-west-2b", 40))
]


class PolicyQuestion(_AboutRun):
    """The request for a policy's expected cost, or with `now` for a decision."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"run": RUN_EXAMPLE}, {"run": RUN_EXAMPLE, "now": _NOW}]})

    now: SituationDocument | None = None


class SimulationQuestion(_AboutRun):
    """The request to backtest a run over many starts in `traces`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"run": RUN_EXAMPLE | {"step": "30min"}, "traces": _TRACES, "starts": 10}]}
    )

    traces: TraceDocuments
    starts: Annotated[int, whole_number(1, MOST_STARTS, "random starts per trace")] = 100
    seed: Annotated[int, whole_number(0, 2**63 - 1, "seed of the random starts")] = 1


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"{shown(value)} is not accepted; write a share from 0 to 1")
    return float(value)


class LadderQuestion(Document):
    """The request to replay a saved plan's capacity ladder over `traces`, with on-demand refused at a rate."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"plan": "plan-0123456789abcdef0123", "traces": _TRACES, "refused": 0.5}]}
    )

    plan: Annotated[str, Label]
    traces: TraceDocuments
    starts: Annotated[int, whole_number(1, MOST_STARTS, "most starts per set of zones, spread evenly")] = 100
    refused: Annotated[float, quantity(_share, "share of requests for machines on demand that are refused", 0.5)] = 0.0


def traces_in(documents: Sequence[JsonObject], *, field: str) -> tuple[Trace, ...]:
    """The traces of the documents at `field`, with unique names; a trace without a zone name gets its number.

    Raises `UnusableInput`.
    """
    traces: list[Trace] = []
    for i, document in enumerate(documents):
        try:
            traces += parse_traces(document, name=f"{field} {i + 1}")
        except UnusableInput as error:
            raise error.under(field, i) from None
    return distinct(tuple(traces), field=field)


def one_of_run_and_plan(asked: _AboutRun) -> None:
    """Raises `UnusableInput` unless exactly one is given."""
    if (asked.run is None) == (asked.plan is None):
        given = "is missing" if asked.run is None else f"contradicts plan {shown(asked.plan)}"
        raise UnusableInput.at("run", message=f"{given}; give either a run or the id of a saved plan")
