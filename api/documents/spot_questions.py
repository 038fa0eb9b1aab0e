"""Questions about runs on interruptible machines as one document each: the policy, what to do now, and a replay.

run: {work: 24h, deadline: 36h, ...}     # as `api.documents.spot_run` reads it, or plan: the id of a saved plan
fit: [{name: us-east-1a, metadata: {gap_seconds: 300}, data: [0, 1, ...]}]
now: {time: 3h20min, work_left: 20h, up: [us-east-1a], at: us-east-1a}
"""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, JsonValue

from api.documents.spot_run import HoursOrNone
from api.documents.traces import distinct, parse_traces
from catalog.document_fields import Document, Label, Listed, whole_number
from catalog.errors import UnusableInput
from catalog.quantities import shown
from planner.spot.terms import MOST_ZONES
from planner.spot.traces import Trace

MOST_STARTS = 5_000
#: Documents of traces, each of which may hold several zones.
MOST_TRACES = 50

TraceDocuments = Annotated[tuple[dict[str, JsonValue], ...], Listed(MOST_TRACES)]
Places = Annotated[tuple[Annotated[str, Label], ...], Listed(MOST_ZONES)]


class SituationDocument(Document):
    """One run now: since when, what is left as the on-demand machines would take, where it is and what is up."""

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
    """The run as a document, or the id of a saved plan that it follows; and traces to learn its places from."""

    run: dict[str, JsonValue] | None = None
    plan: Annotated[str, Label] | None = None
    fit: TraceDocuments = ()


class PolicyQuestion(_AboutRun):
    """What a policy expects, or with `now` what to do."""

    now: SituationDocument | None = None


class SimulationQuestion(_AboutRun):
    """What the run would have cost over many starts in `traces`."""

    traces: TraceDocuments
    starts: Annotated[int, whole_number(1, MOST_STARTS, "random starts per trace")] = 100
    seed: Annotated[int, whole_number(0, 2**63 - 1, "of the starts")] = 1


def traces_in(documents: Sequence[dict[str, Any]], *, field: str) -> tuple[Trace, ...]:
    """The traces of documents that stand at `field`, no two of one name; one that names no zone has its number.

    Raises `UnusableInput`.
    """
    found: list[Trace] = []
    for i, document in enumerate(documents):
        try:
            found += parse_traces(document, name=f"{field} {i + 1}")
        except UnusableInput as error:
            raise error.under(field, i) from None
    return distinct(tuple(found), field=field)


def one_of_run_and_plan(asked: _AboutRun) -> None:
    """Raises `UnusableInput` unless exactly one is given."""
    if (asked.run is None) == (asked.plan is None):
        given = "is missing" if asked.run is None else f"is given beside the plan {shown(asked.plan)}"
        raise UnusableInput.at("run", message=f"{given}; give one of a run and the id of a saved plan")
