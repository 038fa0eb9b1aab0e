"""Runs of plans: reported, shown against the plan, listed with what they teach, and forgotten."""

import hashlib
import json
from dataclasses import asdict, replace
from datetime import datetime

from gpuplan.api.schemas.actual_reports import Actual as ReportedActual
from gpuplan.api.schemas.actual_reports import Actuals, ListedActual, TaskCorrection
from gpuplan.api.schemas.actuals import FIGURES, ActualsDocument, Planned, check_against, read_actuals, share_done
from gpuplan.api.schemas.answers import read_answer
from gpuplan.api.schemas.job import parse_job
from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.ownership import Viewer
from gpuplan.catalog.store.plan_store import Actual, SavedPlan
from gpuplan.catalog.store.store import Store
from gpuplan.planner.model.plan import InfeasibleAnswer
from gpuplan.planner.model.shared import Phase
from gpuplan.planner.performance.learned_corrections import learned_from
from gpuplan.planner.performance.run_comparison import (
    Expected,
    as_document,
    comparison,
    counting,
    expected_of,
    past_runs,
)
from gpuplan.planner.serialization.phase_document import correction_answer
from gpuplan.planner.workload import work_of
from gpuplan.planner.workload.step_work import Work


def report(store: Store, saved: SavedPlan, document: JsonObject, now: datetime) -> ReportedActual:
    """Keep a report on a run of a saved plan and show it against the plan; the same report twice is one.

    Raises `UnusableInput` for what cannot be a report on this plan; nothing is stored then.
    """
    given = read_actuals(document)
    answer = read_answer(saved.outcome)
    if isinstance(answer, InfeasibleAnswer):
        raise UnusableInput.at("plan", message="no machine was found for that job, so nothing of it can have run")
    plan = answer.plan
    moves = [phase for phase in plan.phases if not phase.is_standby]
    if len(moves) > 1:
        raise UnusableInput.at(
            "plan",
            message=f"runs on {len(moves)} configurations one after the other, and a report tells of one; accepted: a report "
            "on a plan made with constraints.max_phases of 1",
        )
    work = _work_of(saved)
    expected = expected_of(plan, work)
    planned = _planned(saved.id, plan.phases[0], expected, share_done(given))
    check_against(given, planned)
    return shown(store.save_actual(_actual(planned, work.task, expected, given, now)))


def _work_of(saved: SavedPlan) -> Work:
    """Raises `UnusableInput` at `plan` for a job that this release reads otherwise than the one that planned it."""
    try:
        job = parse_job(saved.job, now=saved.created_at)
        return work_of(job.workload, job.training)
    except UnusableInput as error:
        raise error.under("plan", "job") from None


def _planned(plan_id: str, phase: Phase, expected: Expected, share: float) -> Planned:
    name = phase.accelerator
    # A node with part of a card has that part of its memory; the plan gives what it can use of it.
    part = min(1.0, phase.accelerators_per_node)
    whole = accelerators()[name].device_memory_mib / 1024 * part if name in accelerators() else 0.0
    return Planned(
        plan_id=plan_id,
        accelerator=name,
        device_memory_gib=max(whole, phase.capacity_gib_per_accelerator),
        unit=expected.unit,
        units_total=expected.units_total,
        predicted={
            "hours": expected.hours_of(share),
            "throughput": expected.throughput,
            "peak_memory_gib": expected.memory_gib,
            "preemptions": share * expected.preemptions,
        },
    )


def _actual(planned: Planned, task: str, expected: Expected, given: ActualsDocument, now: datetime) -> Actual:
    actual = Actual(
        id="",
        plan_id=planned.plan_id,
        task=task,
        accelerator=planned.accelerator,
        reported_at=now,
        reported_by="",
        running=given.running,
        share_done=share_done(given),
        hours=given.hours,
        throughput=None if given.throughput is None else given.throughput.value,
        peak_memory_gib=given.peak_memory_gib,
        preemptions=given.preemptions,
        expected=as_document(expected),
    )
    identifying = [getattr(actual, name) for name in ("plan_id", "running", "share_done", *FIGURES)]
    digest = hashlib.sha256(json.dumps(identifying).encode()).hexdigest()
    return replace(actual, id=f"run-{digest[:16]}")


def shown(actual: Actual) -> ReportedActual:
    """One report, every figure beside its prediction."""
    return _report(ReportedActual, actual)


def _report[Report: ReportedActual](kind: type[Report], actual: Actual, **learning: bool) -> Report:
    return kind(
        id=actual.id,
        plan_id=actual.plan_id,
        task=actual.task,
        accelerator=actual.accelerator,
        reported_at=actual.reported_at.isoformat(),
        reported_by=actual.reported_by,
        running=actual.running,
        share_done=actual.share_done,
        unit=actual.expected["unit"],
        figures=comparison(actual),
        **learning,
    )


def listed(store: Store, plan_id: str | None, *, viewer: Viewer, learning: bool) -> Actuals:
    """Reports on one plan or on all that the viewer may read, oldest first, and what everybody's reports teach."""
    everything = store.actuals()
    learned_ids = {actual.id for actual in counting(everything)}
    chosen = store.actuals(plan_id, viewer)
    return Actuals(
        actuals=tuple(_report(ListedActual, actual, counts=actual.id in learned_ids) for actual in chosen),
        learning="on" if learning else "off",
        learned=_corrections(everything, {actual.task for actual in chosen}) if learning else (),
    )


def _corrections(everything: tuple[Actual, ...], tasks: set[str]) -> tuple[TaskCorrection, ...]:
    runs = past_runs(everything)
    return tuple(
        TaskCorrection(task=learned.task, **asdict(correction_answer(correction)))
        for learned in (learned_from(runs, task) for task in sorted(tasks))
        if learned
        for correction in (*learned.corrections, learned.others)
    )
