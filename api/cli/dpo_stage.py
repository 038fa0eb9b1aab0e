"""A job in two stages: supervised training, then DPO on pairs, which share the time until the deadline by their work."""

from datetime import datetime, timedelta

from gpuplan.api.schemas.job import parse_job
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import count
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Preset, TrainingJob, Transformer
from gpuplan.planner.workload import work_of
from gpuplan.planner.workload.presets import find_preset


def two_stages(document: JsonObject, pairs: str, *, now: datetime) -> tuple[JsonObject, JsonObject]:
    """The job without its budget, and DPO of the same model behind it on so many pairs, each two sequences.

    Where there is a deadline, the first stage may take the share of the time that it has of the FLOPs, and DPO starts then
    and has the rest. Without one, both start together, since the hours of the first are not known before it is planned.
    Raises `UnusableInput`.
    """
    first = {key: value for key, value in document.items() if key != "budget_usd"}
    job = parse_job(first, now=now)
    tokens = 2 * _pairs(pairs) * _length(job)
    of_work = {key: value for key, value in first["workload"].items() if key != "samples"}
    training = (first.get("training") or {}) | {"stage": "dpo"}
    second = first | {"workload": of_work | {"tokens": tokens}, "training": training}
    if job.deadline_hours is None or job.start is None:
        return first, second
    behind = parse_job(second, now=now)
    works = [work_of(one.workload, one.training).total_flops for one in (job, behind)]
    share = job.deadline_hours * works[0] / sum(works)
    start = job.start + timedelta(hours=share)
    return (
        first | {"deadline": round(share, 4)},
        second | {"start": start.isoformat(), "deadline": round(job.deadline_hours - share, 4)},
    )


def _pairs(text: str) -> float:
    try:
        return count(text)
    except ValueError as error:
        raise UnusableInput.at("dpo", message=str(error)) from None


def _length(job: TrainingJob) -> float:
    """Tokens of a sequence. Raises `UnusableInput` for a model without any."""
    workload = job.workload
    length: int | None = None
    if isinstance(workload, Transformer):
        length = workload.sequence_length
    elif isinstance(workload, Preset):
        length = workload.sequence_length or find_preset(workload.model).sequence_length
    if not length:
        raise UnusableInput.at(
            "dpo", message="needs a language model: a preset or a transformer with a sequence length"
        )
    return float(length)
