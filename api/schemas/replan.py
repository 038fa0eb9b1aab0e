"""The request to replan a running job: the job or its plan, its progress, and its machines."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue

from gpuplan.api.schemas.actuals import Throughput, WallHours
from gpuplan.api.schemas.job import JOB_EXAMPLE, JobDocument, Start, planned_job
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.parsing.document_fields import (
    Document,
    Label,
    Reads,
    YesNo,
    choice,
    quantity,
    read_as,
    whole_number,
)
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.place_names import ProviderField
from gpuplan.catalog.parsing.quantities import count, hours, shown, usd
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.plan import Plan, PlanAnswer, PlannedAnswer
from gpuplan.planner.model.shared import Phase
from gpuplan.planner.replan.running_job import Amount, On, Speed, UnderWay

_DONE = "write the work done as 0.4, 40%, `120B tokens` or `30000 steps`"
_UNITS = {"token": "tokens", "sample": "samples", "step": "steps", "share": "share"}
_MOST_NODES = 100_000


def _amount(value: object) -> Amount:
    """A share from 0 to 1, a percentage, or an amount of work with its unit."""
    if isinstance(value, Mapping):
        if set(value) != {"value", "unit"} or not isinstance(value["unit"], str):
            raise ValueError(f"{shown(value)} is not accepted; {_DONE}")
        return Amount(value=count(value["value"], zero=True), unit=_unit(value["unit"], value))
    text = value.strip() if isinstance(value, str) else value
    try:
        if isinstance(text, str) and (match := re.fullmatch(r"(.*[\d.]\s*[kKmMbBgGtT]?)\s+([A-Za-z]+)", text[:200])):
            return Amount(value=count(match[1], zero=True), unit=_unit(match[2], value))
        percent = isinstance(text, str) and text.endswith("%")
        share = count(text.removesuffix("%") if isinstance(text, str) else text, zero=True) / (100 if percent else 1)
    except ValueError:
        raise ValueError(f"{shown(value)} is not accepted; {_DONE}") from None
    if share > 1:
        raise ValueError(f"{shown(value)} is more work than the job has; {_DONE}")
    return Amount(value=share)


def _unit(text: str, given: object) -> str:
    unit = text.strip().lower()
    if unit in _UNITS.values():
        return unit
    if unit not in _UNITS:
        raise ValueError(f"{shown(given)}: {shown(text)} is not a unit of work; {_DONE}")
    return _UNITS[unit]


def _money(value: object) -> float:
    """Dollars; 0 is allowed."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
        raise ValueError(f"{shown(value)} is negative; write the US dollars spent so far, 0 or more")
    if isinstance(value, str) and re.match(r"\s*(?:USD|\$)?\s*-", value):
        raise ValueError(f"{shown(value)} is negative; write the US dollars spent so far, 0 or more")
    return usd(value, zero=True)


def _some_hours(value: object) -> float:
    """A duration in hours; 0 is allowed."""
    none = value == 0 if isinstance(value, int | float) and not isinstance(value, bool) else value in ("0", "0h")
    return 0.0 if none else hours(value)


Done = Annotated[
    Amount,
    Reads(
        _amount,
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": 1},
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {"value": {"type": "number"}, "unit": {"type": "string"}},
                    "required": ["value", "unit"],
                },
            ],
            "description": "work done, as a share, a percentage, or in the job's units or steps",
            "examples": [0.4, "40%", "120B tokens", "30000 steps"],
        },
    ),
]
Spent = Annotated[float, quantity(_money, "US dollars spent on the job so far", 1200, "$1.2k")]


class MachinesDocument(Document):
    """The machines that run the job or ran it last."""

    instance_type: Annotated[str, Label]
    nodes: Annotated[int, whole_number(1, _MOST_NODES, "number of nodes")]
    provider: Annotated[str, ProviderField] | None = None
    region: Annotated[str, Label] | None = None
    zone: Annotated[str, Label] | None = None
    price_kind: Annotated[str, choice(tuple(price_kinds()))] = "on_demand"

    def on(self) -> On:
        """The planner's type of this part."""
        return On(**{name: value for name, value in self if value is not None})


class RunningDocument(Document):
    """Progress of the job. `on` is optional if a plan is given or nothing is done."""

    on: MachinesDocument | None = None
    phase: Annotated[int, whole_number(1, 4, "the running phase of the plan, from 1")] | None = None
    done: Done
    saved: Done | None = None
    up: Annotated[bool, YesNo] = True
    up_hours: Annotated[float, quantity(_some_hours, "hours since these machines started", 30, "1d 6h")] | None = None
    spent_usd: Spent = 0.0
    rate: Throughput | None = None
    hours: WallHours | None = None


_MACHINES: JsonValue = {"instance_type": "g6e.2xlarge", "nodes": 4, "region": "us-east-1"}
#: A running job needs a start and a current time.
_TIMES: dict[str, JsonValue] = {"job": JOB_EXAMPLE, "since": "2026-11-21T08:00:00Z", "now": "2026-11-21T11:00:00Z"}
#: In time; with its machines gone; and a job known by its plan.
_EXAMPLES: list[JsonValue] = [
    _TIMES | {"running": {"on": _MACHINES, "done": "40%", "spent_usd": 30}},
    _TIMES | {"running": {"on": _MACHINES, "done": "40%", "spent_usd": 30, "up": False, "saved": "38%"}},
    {"plan": "plan-5cc3ddf113d641b9c615", "running": {"done": 0.4, "spent_usd": 1200, "rate": "412000 tokens/s"}},
]


class ReplanDocument(Document):
    """A job or the id of its plan, and its progress. `since` is the job's start, `now` the time of the progress."""

    model_config = ConfigDict(json_schema_extra={"examples": _EXAMPLES})

    job: JobDocument | None = None
    plan: Annotated[str, Label] | None = None
    since: Start | None = None
    now: Start | None = None
    running: RunningDocument = Field(default_factory=lambda: RunningDocument.model_validate({"done": 0}))


def read_replan(document: JsonObject) -> ReplanDocument:
    """Read the request; raises `UnusableInput` with every fault that is visible without the plan."""
    asked = read_as(ReplanDocument, document)
    if (asked.job is None) == (asked.plan is None):
        what = "is missing" if asked.job is None else "contradicts plan"
        raise UnusableInput.at("job", message=f"{what}; give either the job or the id of its plan")
    if asked.plan is None and asked.running.phase is not None:
        raise UnusableInput.at("running", "phase", message="needs a plan; give plan, or leave it out")
    return asked


def under_way(asked: ReplanDocument, planned: PlanAnswer | None, *, now: datetime) -> tuple[TrainingJob, UnderWay]:
    """The job as of its start, and its progress; `planned` is the answer saved under `plan`.

    Raises `UnusableInput` at `job`, `since`, `plan` or under `running`.
    """
    at = (asked.now or now).astimezone(UTC)
    given = asked.running
    if planned is None:
        job = _job(asked.job, asked, at)
        on, up_hours = None if given.on is None else given.on.on(), given.up_hours
    else:
        plan = _plan(planned, asked.plan)
        job = _job(read_as(JobDocument, planned_job(plan.job)), asked, at)
        on, up_hours = _phase(plan, asked, job, at)
    return job, UnderWay(
        now=at,
        done=given.done,
        on=on,
        saved=given.saved,
        up=given.up,
        up_hours=up_hours,
        spent_usd=given.spent_usd,
        rate=None if given.rate is None else Speed(value=given.rate.value, unit=given.rate.unit),
        hours=given.hours,
    )


def _job(document: JobDocument | None, asked: ReplanDocument, now: datetime) -> TrainingJob:
    """The job with its start. A deadline in hours needs `since` once work is done."""
    if document is None:
        raise UnusableInput.at("job", message="is missing; give either the job or the id of its plan")
    if asked.since is not None:
        document = document.model_copy(update={"start": asked.since})
    begun = asked.running.done.value > 0 or asked.running.on is not None
    if (
        document.start is None
        and begun
        and document.deadline is not None
        and not isinstance(document.deadline, datetime)
    ):
        message = f"is missing: the deadline of {document.deadline:g} h counts from the job's start; give the start"
        raise UnusableInput.at("since", message=f"{message}, or give the deadline as a time")
    try:
        return document.job(now=now)
    except UnusableInput as error:
        raise error.under("job") from None


def _plan(answer: PlanAnswer, plan_id: str | None) -> Plan:
    if not isinstance(answer, PlannedAnswer):
        message = f"{shown(plan_id)} is infeasible, so none of its machines runs; give the job instead"
        raise UnusableInput.at("plan", message=message)
    return answer.plan


def _phase(plan: Plan, asked: ReplanDocument, job: TrainingJob, now: datetime) -> tuple[On, float | None]:
    """The machines of the running phase, and their hours since start if it began as planned."""
    phases, given = plan.phases, asked.running
    if given.phase is not None and given.phase > len(phases):
        raise UnusableInput.at("running", "phase", message=f"{given.phase} is not accepted; the plan has {len(phases)}")
    number = _by_share(phases, given) if given.phase is None else given.phase - 1
    phase = phases[number]
    if given.on is not None:
        return given.on.on(), given.up_hours
    names = ("instance_type", "nodes", "provider", "region", "zone", "price_kind")
    on = On(**{name: getattr(phase, name) for name in names})
    if given.up_hours is not None or not number or job.start is None:
        return on, given.up_hours
    begun = (phase.starts_at - plan.start).total_seconds() / 3600
    elapsed = (now - job.start).total_seconds() / 3600
    return on, max(0.0, elapsed - begun)


def _by_share(phases: Sequence[Phase], given: RunningDocument) -> int:
    """The planned phase in which this share is done."""
    planned = [i for i, phase in enumerate(phases) if not phase.is_standby]
    if len(planned) == 1:
        return planned[0]
    if given.done.unit != "share":
        message = "is missing: the plan has several phases; name the running one, or give done as a share"
        raise UnusableInput(Fault(("running", "phase"), message))
    passed = 0.0
    for i in planned:
        passed += phases[i].share
        if given.done.value < passed - 1e-9:
            return i
    return planned[-1]
