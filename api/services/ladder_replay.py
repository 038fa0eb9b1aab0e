"""A plan's capacity ladder replayed over availability traces, set by set of zones that were recorded together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.api.schemas.availability_trace_files import zone_and_set
from gpuplan.api.services.ladder_of_plan import MACHINE_NAMES, LadderChoice, LadderOfPlan, ladder_of_plan
from gpuplan.api.services.spot_policy_solving import MOST_CELLS
from gpuplan.catalog.model.money import usd_exactly
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.model.ladder_replay import (
    LadderPlace,
    LadderRuleResult,
    LadderSimulation,
    LeftOutSet,
    ObtainedChoice,
    TraceOfChoice,
    ZoneSet,
)
from gpuplan.planner.model.plan import Plan, PlanAnswer
from gpuplan.planner.spot_policy.availability_traces import Trace
from gpuplan.planner.spot_policy.ladder_comparison import LadderOutcome, compare_ladder, together
from gpuplan.planner.spot_policy.ladder_rules import LadderTerms

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderReplays:
    """The traces to replay over, the most starts per set of zones, the rate at which on-demand is refused, and the
    most starts x steps x choices."""

    traces: tuple[Trace, ...]
    starts: int
    refused: float = 0.0
    most_cells: int = MOST_CELLS


def replay_ladder(answer: PlanAnswer, columns: Columns, asked: LadderReplays) -> LadderSimulation:
    """What the ladder of a planned answer would have got over the traces, beside its first choice and on-demand.

    Raises `UnusableInput` for a plan whose ladder cannot be replayed (`ladder_of_plan`), for traces that no set of zones
    covers it with, and for too many starts.
    """
    ladder = ladder_of_plan(answer, columns, asked.refused)
    plan, terms = ladder.plan, ladder.terms
    sets: list[ZoneSet] = []
    left_out: list[LeftOutSet] = []
    windows: list[Flags] = []
    for name, traces in _sets(asked.traces).items():
        assigned = _assigned(ladder, traces)
        why = _unfit(ladder, assigned, traces)
        up = _windows(ladder, assigned, asked.starts) if why is None else np.zeros((0, 0, 0), np.bool_)
        if len(up):
            windows.append(up)
            sets.append(ZoneSet(name=name, starts=len(up), traces=_listed(ladder, assigned)))
        else:
            why = why or f"is shorter than the deadline of {terms.run.deadline_hours:.4g} h"
            left_out.append(LeftOutSet(name=name, why=why))
    cells = sum(up.size for up in windows)
    if cells > asked.most_cells:
        message = f"{asked.starts} for so long a deadline are too many; at most {asked.starts * asked.most_cells // cells} are accepted"
        raise UnusableInput.at("starts", message=message)
    if not windows:
        reasons = "; ".join(f"{part.name} {part.why}" for part in left_out)
        raise UnusableInput.at("traces", message=f"no set of zones covers the ladder: {reasons}")
    return LadderSimulation(
        plan=plan.id,
        name=plan.job.get("name"),
        deadline_hours=terms.run.deadline_hours,
        try_minutes=round(terms.try_hours * 60, 6),
        refused=asked.refused,
        choices=tuple(_shown(*one) for one in _numbered(ladder)),
        runs=sum(map(len, windows)),
        sets=tuple(sets),
        left_out=tuple(left_out),
        rules=tuple(_rule(outcome, ladder.numbers) for outcome in compare_ladder(terms, np.concatenate(windows))),
        assumptions=tuple(_assumptions(plan, terms, sets)),
    )


def _sets(traces: Sequence[Trace]) -> dict[str, list[Trace]]:
    """Traces by the set that they were recorded in."""
    sets: dict[str, list[Trace]] = {}
    for trace in traces:
        sets.setdefault(zone_and_set(trace.name)[1], []).append(trace)
    return sets


def _numbered(ladder: LadderOfPlan) -> list[tuple[int, LadderChoice]]:
    """The choices with their numbers, in the order of these."""
    return sorted(zip(ladder.numbers, ladder.choices, strict=True), key=lambda one: one[0])


def _assigned(ladder: LadderOfPlan, traces: Sequence[Trace]) -> list[Trace | None]:
    """A trace per place: of its number, zone or region, else the next that is left; None for machines that are not interruptible."""
    by_name = {zone_and_set(trace.name)[0]: trace for trace in traces}
    places = list(zip(ladder.numbers, ladder.choices, strict=True))[:-1]
    named = [
        None if choice.permanent else next((by_name[name] for name in _names(choice, number) if name in by_name), None)
        for number, choice in places
    ]
    left = iter([trace for trace in traces if not any(trace is one for one in named)])
    return [
        trace if trace is not None or choice.permanent else next(left, None)
        for (_, choice), trace in zip(places, named, strict=True)
    ]


def _names(choice: LadderChoice, number: int) -> tuple[str, ...]:
    """What a trace may be called to be that of a choice."""
    return (str(number), choice.machines.zone, choice.machines.region)


def _unfit(ladder: LadderOfPlan, assigned: Sequence[Trace | None], traces: Sequence[Trace]) -> str | None:
    """Why a set of zones cannot stand for the ladder, or None."""
    spot = [(choice, trace) for choice, trace in zip(ladder.choices, assigned, strict=False) if not choice.permanent]
    if any(trace is None for _, trace in spot):
        return f"has too few zones: {len(traces)} for {len(spot)} interruptible choices"
    for choice, trace in spot:
        most = int(trace.available.max()) if trace is not None else 0
        if 1 < most < choice.machines.nodes:
            return f"counts at most {most} machines, and {choice.machines.instance_type} needs {choice.machines.nodes}"
    return None


def _nodes_in(choice: LadderChoice, trace: Trace | None) -> int:
    """Machines that a trace must count: one where it only says whether the request was obtained."""
    return choice.machines.nodes if trace is not None and int(trace.available.max()) > 1 else 1


def _windows(ladder: LadderOfPlan, assigned: Sequence[Trace | None], starts: int) -> Flags:
    return together(
        assigned,
        nodes=[_nodes_in(choice, trace) for choice, trace in zip(ladder.choices, assigned, strict=False)],
        step_hours=ladder.terms.run.step_hours,
        hours=ladder.terms.run.deadline_hours,
        most=starts,
    )


def _listed(ladder: LadderOfPlan, assigned: Sequence[Trace | None]) -> tuple[TraceOfChoice, ...]:
    """Which trace stood for which choice."""
    step_hours = ladder.terms.run.step_hours
    return tuple(
        TraceOfChoice(
            choice=number,
            trace=trace.name,
            stands_in=zone_and_set(trace.name)[0] not in _names(choice, number),
            up=round(float(trace.up(_nodes_in(choice, trace), step_hours).mean()), 4),
        )
        for number, choice, trace in zip(ladder.numbers, ladder.choices, assigned, strict=False)
        if trace is not None
    )


def _shown(number: int, choice: LadderChoice) -> LadderPlace:
    return LadderPlace(
        number=number,
        **{name: getattr(choice.machines, name) for name in MACHINE_NAMES},
        usd_per_hour=usd_exactly(choice.usd_per_hour),
        work_hours=round(choice.work_hours, 6),
    )


def _rule(outcome: LadderOutcome, numbers: Sequence[int]) -> LadderRuleResult:
    over = outcome.over_hindsight
    return LadderRuleResult(
        rule=outcome.rule,
        mean_usd=usd_exactly(outcome.mean_usd),
        p95_usd=usd_exactly(outcome.p95_usd),
        over_hindsight=None if over is None else round(over, 6),
        late_runs=outcome.late_runs,
        worst_late_hours=round(outcome.worst_late_hours, 6),
        mean_hours=round(outcome.mean_hours, 4),
        preemptions=round(outcome.preemptions, 4),
        obtained=tuple(
            ObtainedChoice(
                choice=number,
                first_share=round(use.share_first, 6),
                first_after_hours=None if use.mean_wait_hours is None else round(use.mean_wait_hours, 4),
                hours=round(use.mean_hours, 4),
            )
            for number, use in sorted(zip(numbers, outcome.uses, strict=True), key=lambda one: one[0])
        ),
    )


def _assumptions(plan: Plan, terms: LadderTerms, sets: Sequence[ZoneSet]) -> list[str]:
    """What the replay takes for granted."""
    every = terms.run.checkpoint_every_hours
    stand_ins = any(trace.stands_in for part in sets for trace in part.traces)
    asked = (
        "always obtained"
        if not terms.refused
        else f"refused in {terms.refused:.0%} of the requests, every {terms.run.step_hours * 60:.0f} min anew"
    )
    return [
        *(["traces of other zones or machines stand in for those of the ladder"] if stand_ins else []),
        "a trace of 0 and 1 says whether all nodes of its choice were there",
        f"machines that are not interruptible are {asked}, and kept to the end",
        "every rule switches to on-demand at the last moment that keeps the deadline",
        f"each start of machines takes {terms.run.changeover_hours:g} h, paid and without progress",
        f"a checkpoint every {every:.2g} h; a preemption loses the work since"
        if every
        else "a preemption loses only the restart",
        "the work takes its expected hours on every choice; costs are machine hours alone, without storage and transfer",
        f"prices are those of the plan, from snapshot {plan.snapshot_id}",
    ]
