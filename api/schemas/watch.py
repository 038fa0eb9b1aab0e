"""The request for a watch: a job and the change of cost to notify, or machines and the wanted chance; and channels."""

import math
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import ConfigDict

from gpuplan.api.schemas.canonical_job import canonical
from gpuplan.api.schemas.capacity_request import MOST_NODES, MOST_REGIONS
from gpuplan.api.schemas.job import JOB_EXAMPLE, JobDocument
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.parsing.document_fields import (
    Document,
    Label,
    Listed,
    Reads,
    choice,
    listed,
    quantity,
    read_as,
    whole_number,
)
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import shown, usd
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.model.job import TrainingJob

DEFAULT_PERCENT = 10.0
_OF_A_MACHINE = ("nodes", "kind", "region", "least_chance", "under_usd_per_node_hour")
_MOST_CHANNELS = 20


def _percent(value: object) -> float:
    """A percentage above 0 and below 100."""
    accepted = "write a percentage above 0 and below 100, such as 10 or 10%"
    text = value.strip().removesuffix("%").strip() if isinstance(value, str) else value
    if isinstance(text, bool) or not isinstance(text, int | float | str):
        raise ValueError(f"{shown(value)} is not accepted; {accepted}")
    try:
        percent = float(text)
    except (ValueError, OverflowError):
        raise ValueError(f"{shown(value)} is not accepted; {accepted}") from None
    if not (math.isfinite(percent) and 0 < percent < 100):
        raise ValueError(f"{shown(value)} is not accepted; {accepted}")
    return percent


def _channels(value: object) -> tuple[str, ...]:
    """Channel names without duplicates, in the given order."""
    names = listed(value, most=_MOST_CHANNELS)
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"{shown(value)} is not accepted; write a list of channel names from the settings file")
    return tuple(dict.fromkeys(names))


Percent = Annotated[
    float,
    Reads(
        _percent,
        {
            "anyOf": [{"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 100}, {"type": "string"}],
            "description": "the change of expected cost to notify, in percent",
            "examples": [10, "10%"],
        },
    ),
]
Channels = Annotated[
    tuple[str, ...],
    Reads(
        _channels,
        {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "minItems": 1,
            "maxItems": _MOST_CHANNELS,
            "description": "channel names from the settings file",
            "examples": [["team"]],
        },
    ),
]


def _share(value: object) -> float:
    """A chance above 0 and up to 1."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < float(value) <= 1:  # type: ignore[arg-type]
        raise ValueError(f"{shown(value)} is not accepted; write a chance above 0 and up to 1, such as 0.7")
    return float(value)  # type: ignore[arg-type]


Chance = Annotated[
    float,
    Reads(
        _share,
        {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 1,
            "description": "the least chance of obtaining the machines to notify; default 0.7",
        },
    ),
]


class WatchDocument(Document):
    """A job to plan again on every new snapshot, or machines to wait for, and the channels to notify of changes."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"job": JOB_EXAMPLE, "channels": ["team"], "cheaper_by_percent": 10},
                {"machine": "p5.48xlarge", "nodes": 2, "least_chance": 0.7, "channels": ["team"]},
            ]
        }
    )

    job: JobDocument | None = None
    machine: Annotated[str, Label] | None = None
    nodes: Annotated[int, whole_number(1, MOST_NODES, "machines at once; default 1")] | None = None
    kind: Annotated[str, choice(tuple(price_kinds()), description="the price kind; default spot")] | None = None
    region: Annotated[tuple[Annotated[str, Label], ...], Listed(MOST_REGIONS)] = ()
    least_chance: Chance | None = None
    under_usd_per_node_hour: (
        Annotated[float, quantity(usd, "US dollars per node-hour that the machines may cost", 60, "$60")] | None
    ) = None
    channels: Channels
    cheaper_by_percent: Percent | None = None
    name: Annotated[str, Label] | None = None


def parse_watch(document: JsonObject, *, now: datetime) -> tuple[WatchDocument, TrainingJob | None]:
    """Read the watch and its job as of `now`, if it has one. Raises `UnusableInput` with all faults; the job's are below
    `job`.
    """
    watch = read_as(WatchDocument, document)
    if (watch.job is None) == (watch.machine is None):
        raise UnusableInput.at("job", message="give a job or a machine to watch, and not both")
    others, kind = (_OF_A_MACHINE, "machine") if watch.machine is None else (("cheaper_by_percent",), "job")
    for name in others:
        if getattr(watch, name) not in (None, ()):
            raise UnusableInput.at(name, message=f"is only accepted where a {kind} is watched")
    try:
        return watch, None if watch.job is None else watch.job.job(now=now)
    except UnusableInput as error:
        raise error.under("job") from None


def watched_job(given: JobDocument, job: TrainingJob) -> JsonObject:
    """The job as stored in a watch: complete, without a start unless one was given.

    A deadline stays a point in time if it was one or counts from a given start. Otherwise it counts from every time
    the job is planned.
    """
    document = canonical(job)
    if isinstance(given.deadline, datetime):
        document["deadline"] = _text(given.deadline)
    elif given.start is not None and given.deadline is not None:
        document["deadline"] = _text(given.start + timedelta(hours=given.deadline))
    if given.start is None:
        document.pop("start", None)
    return document


def job_at(document: JsonObject, now: datetime) -> JsonObject:
    """The watched job to plan at `now`; a start in the past becomes `now`."""
    if "start" in document and _moment(document["start"]) <= now:
        return {name: value for name, value in document.items() if name != "start"}
    return document


def deadline_of(document: JsonObject) -> datetime | None:
    """The watched job's deadline as a point in time; None if it counts from the start, or there is none."""
    deadline = document.get("deadline")
    return _moment(deadline) if isinstance(deadline, str) else None


def _text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def refuse_excess(count: int, most: int) -> None:
    """Raises `UnusableInput` if the limit of watches is reached."""
    if count >= most:
        message = f"{most:,} jobs are watched, the maximum; remove one with gpuplan watch remove"
        raise UnusableInput(Fault(("watch",), message))
