"""A watch as users ask for it: a job, the channels to tell, and the change of cost worth telling."""

import math
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import ConfigDict

from api.documents.canonical import canonical
from api.documents.job import JobDocument
from catalog.document_fields import Document, Label, Reads, listed, read_as
from catalog.errors import Fault, UnusableInput
from catalog.quantities import shown
from planner.job import TrainingJob

DEFAULT_PERCENT = 10.0
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
    """Names of channels, each once, in the order given."""
    names = listed(value, most=_MOST_CHANNELS)
    if not isinstance(names, list | tuple) or not names or not all(isinstance(each, str) and each for each in names):
        raise ValueError(f"{shown(value)} is not accepted; write a list of names of channels in the settings file")
    return tuple(dict.fromkeys(names))


Percent = Annotated[
    float,
    Reads(
        _percent,
        {
            "anyOf": [{"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 100}, {"type": "string"}],
            "description": "the change of expected cost that is worth a message, in percent",
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
            "description": "names of channels in the settings file",
            "examples": [["team"]],
        },
    ),
]


class WatchDocument(Document):
    """A job to be planned again on each new snapshot, and whom to tell when its plan changes."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "job": {
                        "workload": {"kind": "preset", "model": "resnet-50", "samples": "115M"},
                        "deadline": "36h",
                    },
                    "channels": ["team"],
                    "cheaper_by_percent": 10,
                }
            ]
        }
    )

    job: JobDocument
    channels: Channels
    cheaper_by_percent: Percent = DEFAULT_PERCENT
    name: Annotated[str, Label] | None = None


def parse_watch(document: dict[str, Any], *, now: datetime) -> tuple[WatchDocument, TrainingJob]:
    """The watch, and its job as of `now`. Raises `UnusableInput` with all faults, those of the job below `job`."""
    watch = read_as(WatchDocument, document)
    try:
        return watch, watch.job.job(now=now)
    except UnusableInput as error:
        raise error.under("job") from None


def watched_job(given: JobDocument, job: TrainingJob) -> dict[str, Any]:
    """The job as a watch keeps it: complete, without a start unless one was stated.

    A deadline that is a point in time stays one, and so does one that runs from a stated start; one that runs
    from now runs from each time at which the job is planned.
    """
    document = canonical(job)
    if isinstance(given.deadline, datetime):
        document["deadline"] = _text(given.deadline)
    elif given.start is not None and given.deadline is not None:
        document["deadline"] = _text(given.start + timedelta(hours=given.deadline))
    if given.start is None:
        document.pop("start", None)
    return document


def job_at(document: dict[str, Any], now: datetime) -> dict[str, Any]:
    """The watched job as it is planned at `now`: a start that has passed is now."""
    if "start" in document and _moment(document["start"]) <= now:
        return {name: value for name, value in document.items() if name != "start"}
    return document


def deadline_of(document: dict[str, Any]) -> datetime | None:
    """The point in time that the watched job must end by; None if that moves along with its start, or is open."""
    deadline = document.get("deadline")
    return _moment(deadline) if isinstance(deadline, str) else None


def _text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def refuse_too_many(count: int, most: int) -> None:
    """Raises `UnusableInput` when there is no room for another watch."""
    if count >= most:
        message = f"{most:,} jobs are watched already, which is the most; remove one with gpuplan watch remove"
        raise UnusableInput(Fault(("watch",), message))
