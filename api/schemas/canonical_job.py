"""The canonical form of a job: all defaults filled in, in a fixed order, ready for JSON."""

from typing import Any

from gpuplan.api.schemas.job_fields import declared_fields
from gpuplan.catalog.model.money import usd_micros, usd_text
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.model.job import ADAPTERS, Explicit, Preset, Profile, TrainingJob, Transformer, Workload

_KINDS: dict[type[Workload], str] = {
    Transformer: "transformer",
    Preset: "preset",
    Explicit: "explicit",
    Profile: "profile",
}  # type: ignore[type-arg, unused-ignore]


def canonical(job: TrainingJob) -> JsonObject:
    """The job as a document that `parse_job` reads back to the same job.

    Fields without a value are left out; the deadline is in hours after `start`.
    """
    training, constraints = _stated(job.training), _stated(job.constraints)
    if job.training.method not in ADAPTERS:
        del training["rank"], training["adapters_on"]
    if not job.constraints.price_kinds:
        constraints["price_kinds"] = [kind.name for kind in price_kinds().values() if kind.in_default]
    parts: JsonObject = {
        "workload": {"kind": _KINDS[type(job.workload)], **_stated(job.workload)},
        "training": training,
        "constraints": constraints,
        "data": _stated(job.data),
    }
    if job.start:
        parts["start"] = job.start.isoformat().replace("+00:00", "Z")
    if job.budget_usd is not None:
        parts["budget_usd"] = usd_text(usd_micros(job.budget_usd))
    return {key: parts.get(key, value) for key, value in _stated(job).items()}


def _stated(part: Any) -> JsonObject:
    """The fields of a part of the job that have a value."""
    kind: Any = type(part)
    given = {key: getattr(part, declared.name) for key, (declared, _) in declared_fields(kind).items()}
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in given.items() if value is not None
    }
