"""`gpuplan methods`: full training, LoRA and QLoRA of one job, side by side, with DPO behind each where asked."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from gpuplan.api.cli import imported_jobs
from gpuplan.api.cli.command_io import open_gpuplan, print_answer
from gpuplan.api.cli.plan import AsJson, InventoryFile, JobOrWords, SettingsFile, Source, job_document
from gpuplan.api.presentation.methods import method_sections
from gpuplan.api.schemas.job import parse_job
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import count, usd
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Preset, TrainingJob, Transformer
from gpuplan.planner.model.plan import PlanAnswer
from gpuplan.planner.workload import work_of
from gpuplan.planner.workload.presets import find_preset

#: The ways of training that are compared, from the dearest memory to the least.
METHODS = ("full", "lora", "qlora")


@imported_jobs.with_flags(without=imported_jobs.OF_FINISHED_RUNS)
def methods(
    job: JobOrWords = None,
    *,
    source: Source = None,
    flags: imported_jobs.FileFlags,
    root: imported_jobs.Root = None,
    online: imported_jobs.Online = False,
    dpo: Annotated[
        str | None, typer.Option(metavar="PAIRS", help="Train on so many pairs by DPO behind each method, and add up.")
    ] = None,
    as_json: AsJson = False,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """Compare full training, LoRA and QLoRA of a job: where each fits, and the least that it costs."""
    document, _ = job_document(job or [], source, flags, root=root, online=online)
    plans = open_gpuplan(inventory=inventory, settings=settings).plans
    # One moment for all: plans of different days would differ by their prices.
    now = datetime.now(UTC)
    ways = {method: with_method(document, method) for method in METHODS}
    after: dict[str, PlanAnswer] = {}
    if dpo is not None:
        stages = {method: two_stages(job, dpo, now=now) for method, job in ways.items()}
        ways = {method: first for method, (first, _) in stages.items()}
        after = {method: plans.plan(second, now=now) for method, (_, second) in stages.items()}
    answers = {method: plans.plan(job, now=now) for method, job in ways.items()}
    print_answer(
        {"methods": answers} | ({"dpo": after} if after else {}),
        lambda _: method_sections(answers, after, over_usd=_budget(document) if after else None),
        as_json=as_json,
    )


def _budget(document: JsonObject) -> float | None:
    stated = document.get("budget_usd")
    return None if stated is None else usd(stated)


def with_method(document: JsonObject, method: str) -> JsonObject:
    """The job trained by another method. Raises `UnusableInput` for a part of the job that is no mapping."""
    training = document.get("training") or {}
    if not isinstance(training, dict):
        raise UnusableInput.at("training", message="is no mapping of keys to values")
    # What only adapters have, a full training refuses.
    of_adapters = {"rank", "adapters_on", "adapter_dropout"}
    stated = {name: value for name, value in training.items() if method != "full" or name not in of_adapters}
    return document | {"training": stated | {"method": method}}


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
