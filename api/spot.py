"""Runs on interruptible machines at the doors: solve a policy, ask it what to do now, replay it over traces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from api.documents.spot_run import SpotRequest, parse_spot_run
from api.documents.traces import distinct, read_traces
from api.spot_policy_file import KeptPolicy
from catalog.errors import UnusableInput
from planner.spot.advice import Situation, advise
from planner.spot.compare import Compared, compare
from planner.spot.policy import make_policy
from planner.spot.traces import Trace, windows

Document = dict[str, Any]

MOST_STARTS = 5_000
#: Runs times steps times places: a few hundred megabytes of availability at most.
MOST_CELLS = 200_000_000


def solved(request: SpotRequest) -> KeptPolicy:
    """The policy of a request."""
    policy = make_policy(request.terms, request.chains)
    return KeptPolicy(name=request.name, policy=policy, assumptions=request.assumptions)


def about(kept: KeptPolicy) -> Document:
    """What a policy was computed for, and what it expects."""
    policy, terms = kept.policy, kept.policy.terms
    demand = terms.on_demand_usd_per_hour * (terms.work_hours + terms.changeover_hours)
    return {
        "name": kept.name,
        "work_hours": terms.work_hours,
        "deadline_hours": terms.deadline_hours,
        "changeover_hours": terms.changeover_hours,
        "step_hours": terms.step_hours,
        "checkpoint_every_hours": terms.checkpoint_every_hours,
        "on_demand_usd_per_hour": terms.on_demand_usd_per_hour,
        "places": [
            {
                "name": place.name,
                "usd_per_hour": place.usd_per_hour,
                "speed": round(place.speed, 6),
                "availability": round(chain.availability, 4),
                "preemptions_per_up_hour": round(chain.preemptions_per_up_hour, 4),
            }
            for place, chain in zip(terms.places, policy.chains, strict=True)
        ],
        "expected_usd": f"{policy.expected_usd:.6f}",
        "on_demand_usd": f"{demand:.6f}",
        "deadline_kept": "always: on-demand is taken in time whatever the places do",
        "assumptions": list(kept.assumptions),
    }


def decision(kept: KeptPolicy, now: Situation) -> Document:
    """What to do now, and why."""
    advice = advise(kept.policy, now)
    return {
        "action": advice.action,
        "place": advice.place,
        "checkpoint_first": advice.checkpoint_first,
        "on_demand_within_hours": round(advice.rescue_in_hours, 6),
        "expected_usd": None if advice.expected_usd is None else f"{advice.expected_usd:.6f}",
        "on_demand_usd": f"{advice.on_demand_usd:.6f}",
        "decide_again_in_hours": kept.policy.terms.step_hours,
        "reasons": list(advice.reasons),
        "assumptions": list(kept.assumptions),
    }


def traces_of(given: Sequence[str], *, field: str) -> tuple[Trace, ...]:
    """The traces of files given as FILE or PLACE=FILE, no two of one name. Raises `UnusableInput`."""
    found: list[Trace] = []
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            found += read_traces(Path(text), field=field)
            continue
        traces = read_traces(Path(path), field=field)
        if len(traces) != 1:
            message = f"{path} holds {len(traces)} zones, so it cannot be {name} alone; give it without PLACE="
            raise UnusableInput.at(field, message=message)
        found.append(replace(traces[0], name=name.strip()))
    return distinct(tuple(found), field=field)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replays:
    """What to replay: the traces to judge on and to fit on, how many starts, and the most that may be (`MOST_CELLS`)."""

    judged: tuple[Trace, ...]
    fitted: tuple[Trace, ...]
    starts: int
    seed: int
    most_cells: int = MOST_CELLS


def simulate(document: Mapping[str, Any], asked: Replays) -> Document:
    """Cost and lateness of a run's policy over many starts, beside simple rules and the omniscient optimum.

    With one place, each trace is a place of its own to be judged in turn; with several, traces and places have the
    same names, and all are replayed together.
    """
    names = _place_names(document)
    request = parse_spot_run(document, fitting=fitting_of(document, asked.fitted))
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
    kept = solved(request)
    up = np.concatenate(parts)
    return {
        "policy": about(kept),
        "runs": len(up),
        "seed": asked.seed,
        "traces": [
            {
                "name": trace.name,
                "hours": round(trace.hours, 3),
                "up": round(float(trace.up(request.nodes, terms.step_hours).mean()), 4),
            }
            for trace in asked.judged
        ],
        "rules": [_row(each) for each in compare(terms, up, kept.policy)],
    }


def fitting_of(document: Mapping[str, Any], traces: Sequence[Trace]) -> dict[str, tuple[Trace, ...]]:
    """The traces that each place's chain is fitted on: those of its name, all of them where there is one place.

    Raises `UnusableInput` for a trace that belongs to no place.
    """
    names = _place_names(document)
    if len(names) == 1:
        return {names[0]: tuple(traces)}
    for trace in traces:
        if trace.name not in names:
            message = f"{trace.name!r} is no place of the run; its places are {', '.join(names)}"
            raise UnusableInput.at("fit", message=message)
    return {name: _named(traces, name) for name in names}


def _row(each: Compared) -> Document:
    return {
        "rule": each.rule,
        "mean_usd": f"{each.mean_usd:.6f}",
        "p95_usd": f"{each.p95_usd:.6f}",
        "over_omniscient": round(each.over_omniscient, 6),
        "late_runs": each.late_runs,
        "worst_late_hours": round(each.worst_late_hours, 6),
        "spot_hours": round(each.spot_hours, 4),
        "on_demand_hours": round(each.on_demand_hours, 4),
        "preemptions": round(each.preemptions, 4),
    }


def _place_names(document: Mapping[str, Any]) -> list[str]:
    """The places' names, or one stand-in where the document is yet to be refused."""
    places = document.get("places")
    named = places if isinstance(places, list) else []
    return [str(each["name"]).strip() for each in named if isinstance(each, dict) and "name" in each] or [""]


def _named(traces: Sequence[Trace], name: str) -> tuple[Trace, ...]:
    return tuple(trace for trace in traces if trace.name == name)


def _one(traces: Sequence[Trace], name: str) -> Trace:
    found = _named(traces, name)
    if not found:
        given = ", ".join(trace.name for trace in traces)
        raise UnusableInput.at("traces", message=f"no trace is named {name!r} like the place; given are {given}")
    return found[0]
