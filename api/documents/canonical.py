"""A job written out in full: every default filled in, in a fixed order, ready for JSON."""

from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from typing import Any

from api.documents.words import ADAPTERS
from catalog.money import usd_micros, usd_text
from catalog.price_kinds import price_kinds
from planner.job import DataSource, Explicit, Preset, Profile, Training, TrainingJob, Transformer, Workload

_KINDS: dict[type[Workload], str] = {
    Transformer: "transformer",
    Preset: "preset",
    Explicit: "explicit",
    Profile: "profile",
}  # type: ignore[type-arg, unused-ignore]


def canonical(job: TrainingJob) -> dict[str, Any]:
    """The job as a document that `parse_job` reads back to the same job.

    Fields without a value are left out; the deadline is in hours after `start`.
    """
    whole = {
        "name": job.name,
        "workload": {"kind": _KINDS[type(job.workload)], **_stated(job.workload)},
        "training": _training(job.training),
        "start": job.start.isoformat().replace("+00:00", "Z") if job.start else None,
        "deadline": job.deadline_hours,
        "budget_usd": None if job.budget_usd is None else usd_text(usd_micros(job.budget_usd)),
        "confidence": job.confidence,
        "objective": job.objective,
        "constraints": _constraints(job),
        "data": _data(job.data),
    }
    return _given(whole.items())


def _stated(part: Any) -> dict[str, Any]:
    """The fields of a part of the job that have a value; all of them are plain values or tuples of such."""
    kind: Any = type(part)
    return _given((name, getattr(part, name)) for name in _names(kind))


def _given(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values if value is not None}


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


def _training(training: Training) -> dict[str, Any]:
    stated = _stated(training)
    if training.method not in ADAPTERS:
        del stated["rank"], stated["adapters_on"]
    return stated


def _constraints(job: TrainingJob) -> dict[str, Any]:
    stated = _stated(job.constraints)
    stated["price_kinds"] = list(job.constraints.price_kinds) or [
        kind.name for kind in price_kinds().values() if kind.in_default
    ]
    return stated


def _data(data: DataSource) -> dict[str, Any]:
    location = f"{data.provider}:{data.region}" if data.region else data.provider or None
    found = {"location": location, "dataset_gb": data.dataset_gb, "checkpoints": data.checkpoints or None}
    return _given(found.items())
