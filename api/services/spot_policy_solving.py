"""Runs on interruptible machines: solve a policy, ask it what to do now, replay it over traces."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gpuplan.api.schemas.availability_trace_files import distinct, read_traces, trace_files
from gpuplan.api.schemas.spot_policy_requests import SituationDocument
from gpuplan.api.schemas.spot_run import SpotRequest, SpotRunDocument, spot_request
from gpuplan.api.services.spot_policy_file import StoredPolicy
from gpuplan.catalog.model.money import usd_exactly
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.spot_policy import (
    PolicyDecision,
    PolicyExpectation,
    RuleResult,
    Simulation,
    SpotPlace,
    Traced,
)
from gpuplan.planner.spot_policy.advice import Situation, advise
from gpuplan.planner.spot_policy.availability_traces import Trace, windows
from gpuplan.planner.spot_policy.policy_comparison import Compared, compare
from gpuplan.planner.spot_policy.solved_policy import make_policy

MOST_STARTS = 5_000
#: Runs times steps times places: a few hundred megabytes of availability at most.
MOST_CELLS = 200_000_000


def solved(request: SpotRequest) -> StoredPolicy:
    """The policy of a request."""
    policy = make_policy(request.terms, request.chains)
    return StoredPolicy(name=request.name, policy=policy, assumptions=request.assumptions)


def about(stored_policy: StoredPolicy) -> PolicyExpectation:
    """What a policy was computed for, and what it expects."""
    policy, terms = stored_policy.policy, stored_policy.policy.terms
    demand = terms.on_demand_usd_per_hour * (terms.work_hours + terms.changeover_hours)
    return PolicyExpectation(
        name=stored_policy.name,
        work_hours=terms.work_hours,
        deadline_hours=terms.deadline_hours,
        changeover_hours=terms.changeover_hours,
        step_hours=terms.step_hours,
        checkpoint_every_hours=terms.checkpoint_every_hours,
        on_demand_usd_per_hour=terms.on_demand_usd_per_hour,
        places=tuple(
            SpotPlace(
                name=place.name,
                usd_per_hour=place.usd_per_hour,
                speed=round(place.speed, 6),
                availability=round(chain.availability, 4),
                preemptions_per_up_hour=round(chain.preemptions_per_up_hour, 4),
            )
            for place, chain in zip(terms.places, policy.chains, strict=True)
        ),
        expected_usd=usd_exactly(policy.expected_usd),
        on_demand_usd=usd_exactly(demand),
        deadline_kept="always: on-demand is taken in time whatever the places do",
        assumptions=stored_policy.assumptions,
    )


def decision(stored_policy: StoredPolicy, now: SituationDocument) -> PolicyDecision:
    """What to do now, and why. Raises `UnusableInput` for contradictions and for runs that must be late."""
    advice = advise(stored_policy.policy, _situation(stored_policy, now))
    return PolicyDecision(
        action=advice.action,
        place=advice.place,
        checkpoint_first=advice.checkpoint_first,
        on_demand_within_hours=round(advice.rescue_in_hours, 6),
        expected_usd=None if advice.expected_usd is None else usd_exactly(advice.expected_usd),
        on_demand_usd=usd_exactly(advice.on_demand_usd),
        decide_again_in_hours=stored_policy.policy.terms.step_hours,
        reasons=advice.reasons,
        assumptions=stored_policy.assumptions,
    )


def _situation(stored_policy: StoredPolicy, now: SituationDocument) -> Situation:
    return Situation(
        left_hours=stored_policy.policy.terms.deadline_hours - now.time,
        work_hours=now.work_left,
        saved_work_hours=now.work_left if now.saved_work_left is None else now.saved_work_left,
        up=frozenset(now.up),
        at=now.at,
        data_at=now.data_at,
        to_go_hours=now.starts_in,
        checkpoint_age_hours=now.checkpoint_age,
        up_hours=dict(now.since),
    )


def traces_of(given: Sequence[str], *, field: str) -> tuple[Trace, ...]:
    """The traces of files and folders given as FILE, FOLDER or PLACE=FILE, no two of one name. Raises `UnusableInput`."""
    gathered: list[Trace] = []
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            for file in trace_files(Path(text), field=field):
                gathered += read_traces(file, field=field)
            continue
        traces = read_traces(Path(path), field=field)
        if len(traces) != 1:
            message = f"{path} holds {len(traces)} zones, so it cannot be {name} alone; give it without PLACE="
            raise UnusableInput.at(field, message=message)
        gathered.append(replace(traces[0], name=name.strip()))
    return distinct(tuple(gathered), field=field)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replays:
    """What to replay: the traces to judge on and to fit on, how many starts, and the most that may be (`MOST_CELLS`)."""

    judged: tuple[Trace, ...]
    fitted: tuple[Trace, ...]
    starts: int
    seed: int
    most_cells: int = MOST_CELLS


def simulate(run: SpotRunDocument, asked: Replays) -> Simulation:
    """Cost and lateness of a run's policy over many starts, beside simple rules and the omniscient optimum.

    With one place, each trace is a place of its own to be judged in turn; with several, traces and places have the
    same names, and all are replayed together.
    """
    names = [place.name for place in run.places]
    request = spot_request(run, fitting=fitting_of(run, asked.fitted))
    terms = request.terms
    sets: list[tuple[Trace, ...]]
    if len(names) == 1:
        sets = [(trace,) for trace in asked.judged]
    else:
        sets = [tuple(_one(asked.judged, name) for name in names)]
    steps = terms.deadline_hours / terms.step_hours
    if asked.starts * steps * len(sets) * len(names) > asked.most_cells:
        most = int(asked.most_cells // (steps * len(sets) * len(names)))
        message = (
            f"{asked.starts} for so long a run are too many; at most {most} are accepted, or more with a longer step"
        )
        raise UnusableInput.at("starts", message=message)
    parts = [
        windows(
            traces,
            nodes=request.nodes,
            step_hours=terms.step_hours,
            hours=terms.deadline_hours,
            starts=asked.starts,
            seed=asked.seed + i,
        )
        for i, traces in enumerate(sets)
    ]
    solved_policy = solved(request)
    up = np.concatenate(parts)
    return Simulation(
        policy=about(solved_policy),
        runs=len(up),
        seed=asked.seed,
        traces=tuple(
            Traced(
                name=trace.name,
                hours=round(trace.hours, 3),
                up=round(float(trace.up(request.nodes, terms.step_hours).mean()), 4),
            )
            for trace in asked.judged
        ),
        rules=tuple(map(_row, compare(terms, up, solved_policy.policy))),
    )


def fitting_of(run: SpotRunDocument, traces: Sequence[Trace]) -> dict[str, tuple[Trace, ...]]:
    """The traces that each place's chain is fitted on: those of its name, all of them where there is one place.

    Raises `UnusableInput` for a trace that belongs to no place.
    """
    names = [place.name for place in run.places]
    if len(names) == 1:
        return {names[0]: tuple(traces)}
    for trace in traces:
        if trace.name not in names:
            message = f"{trace.name!r} is no place of the run; its places are {', '.join(names)}"
            raise UnusableInput.at("fit", message=message)
    return {name: _named(traces, name) for name in names}


def _row(compared: Compared) -> RuleResult:
    return RuleResult(
        rule=compared.rule,
        mean_usd=usd_exactly(compared.mean_usd),
        p95_usd=usd_exactly(compared.p95_usd),
        over_omniscient=round(compared.over_omniscient, 6),
        late_runs=compared.late_runs,
        worst_late_hours=round(compared.worst_late_hours, 6),
        spot_hours=round(compared.spot_hours, 4),
        on_demand_hours=round(compared.on_demand_hours, 4),
        preemptions=round(compared.preemptions, 4),
    )


def _named(traces: Sequence[Trace], name: str) -> tuple[Trace, ...]:
    return tuple(trace for trace in traces if trace.name == name)


def _one(traces: Sequence[Trace], name: str) -> Trace:
    matching = _named(traces, name)
    if not matching:
        given = ", ".join(trace.name for trace in traces)
        raise UnusableInput.at("traces", message=f"no trace is named {name!r} like the place; given are {given}")
    return matching[0]
