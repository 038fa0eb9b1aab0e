"""A job written out in full: every default filled in, in a fixed order, ready for JSON."""

from dataclasses import asdict
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
        "workload": {"kind": _KINDS[type(job.workload)], **_stated(asdict(job.workload))},
        "training": _training(job.training),
        "start": job.start.isoformat().replace("+00:00", "Z") if job.start else None,
        "deadline": job.deadline_hours,
        "budget_usd": None if job.budget_usd is None else usd_text(usd_micros(job.budget_usd)),
        "confidence": job.confidence,
        "objective": job.objective,
        "constraints": _constraints(job),
        "data": _data(job.data),
    }
    return _stated(whole)


def _stated(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in fields.items() if value is not None
    }


def _training(training: Training) -> dict[str, Any]:
    fields = _stated(asdict(training))
    if training.method not in ADAPTERS:
        del fields["rank"], fields["adapters_on"]
    return fields


def _constraints(job: TrainingJob) -> dict[str, Any]:
    fields = _stated(asdict(job.constraints))
    fields["price_kinds"] = list(job.constraints.price_kinds) or [
        kind.name for kind in price_kinds().values() if kind.in_default
    ]
    return fields


def _data(data: DataSource) -> dict[str, Any]:
    location = f"{data.provider}:{data.region}" if data.region else data.provider or None
    return _stated({"location": location, "dataset_gb": data.dataset_gb})
