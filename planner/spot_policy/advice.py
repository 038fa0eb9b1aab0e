"""The next action of one run on interruptible machines, and the reasons in words."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.spot_policy import SpotAction
from gpuplan.planner.spot_policy.policy_solver import BARRED, grid_of, solve
from gpuplan.planner.spot_policy.run_parameters import ON_DEMAND
from gpuplan.planner.spot_policy.simple_rules import must_rescue
from gpuplan.planner.spot_policy.solved_policy import Policy
from gpuplan.planner.spot_policy.trace_replay import WAITING, RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One run as its user sees it: hours left, work left now and at the last checkpoint, its place, zones that are up.

    `at` is the name of a place, `ON_DEMAND`, or None for no machine; `data_at` is the place of the last checkpoint.
    `up_hours` has the hours for which zones have kept their present state, where known.
    """

    left_hours: float
    work_hours: float
    saved_work_hours: float
    up: frozenset[str]
    at: str | None = None
    data_at: str | None = None
    to_go_hours: float = 0.0
    checkpoint_age_hours: float = 0.0
    up_hours: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """`place` is the place to run at from now on.

    `checkpoint_first` says to write one before leaving; `rescue_in_hours` is how long on-demand can be put off.
    `expected_usd` is the expected remaining cost under the policy (None if only on-demand is left, or the time is too tight
    for the policy's steps); `on_demand_usd` is the cost of on-demand from now on.
    """

    action: SpotAction
    place: str | None
    checkpoint_first: bool
    rescue_in_hours: float
    expected_usd: float | None
    on_demand_usd: float
    reasons: tuple[str, ...]


def advise(policy: Policy, now: Situation) -> Advice:
    """The policy's decision for one run. Raises `UnusableInput` for contradictions and for runs that must be late."""
    terms, names = policy.terms, [*(place.name for place in policy.terms.places), ON_DEMAND]
    _check(policy, now, names)
    at = names.index(now.at) if now.at is not None else WAITING
    home = at if at >= 0 else names.index(now.data_at or ON_DEMAND)
    if 0 <= at < len(terms.places) and names[at] not in now.up:
        at, work = WAITING, now.saved_work_hours
    else:
        work = now.work_hours
    zones = names[:-1]
    rescue, staying = _needed(policy, now, at, home, work)
    seen = RunState(
        left_hours=now.left_hours,
        work_hours=np.array([work]),
        saved_work_hours=np.array([now.saved_work_hours]),
        place=np.array([at]),
        home=np.array([home]),
        to_go_hours=np.array([now.to_go_hours]),
        up=np.array([[zone in now.up for zone in zones]]),
        age_hours=np.array([[now.up_hours.get(zone, 0.0) for zone in zones]]),
        age_known=np.array([[zone in now.up_hours for zone in zones]]),
    )
    due = 0 < terms.checkpoint_every_hours <= now.checkpoint_age_hours + 1e-9
    # If on-demand would be late for certain, the running machine is the only way left.
    only = rescue > now.left_hours + 1e-9 >= staying
    target = at if only else int(policy.decide(seen)[0])
    forced = target == len(zones) and bool(must_rescue(terms, seen, np.array([at]))[0])
    if forced and 0 <= at < len(zones):
        # The age of the last checkpoint may be the only reason for the switch.
        saved = replace(seen, saved_work_hours=seen.work_hours)
        if (again := int(policy.decide(saved)[0])) == at:
            target, forced, due = again, False, True
    rescue_in = now.left_hours - now.saved_work_hours - terms.rescue_hours(home)
    place = names[target] if target >= 0 else None
    leaves = at >= 0 and target != at
    return Advice(
        action=_action(at, target, len(zones), due=due),
        place=place,
        checkpoint_first=leaves and work < now.saved_work_hours,
        rescue_in_hours=rescue_in,
        expected_usd=None if forced or only else _expected_usd(policy, seen),
        on_demand_usd=rescue * terms.on_demand_usd_per_hour + terms.moving_usd(home, len(zones)),
        reasons=tuple(_reasons(policy, now, target, at, rescue_in=rescue_in, forced=forced, due=due))
        + (
            ("on-demand can no longer meet the deadline: this machine, if it stays up, is the only way",)
            if only
            else ()
        ),
    )


def _expected_usd(policy: Policy, seen: RunState) -> float | None:
    """The policy's value of this state, by solving again from here: the table has only decisions."""
    terms = replace(policy.terms, work_hours=float(seen.work_hours[0]), deadline_hours=seen.left_hours)
    grid = grid_of(terms)
    if grid.work + grid.changeover[int(seen.home[0])][-1] > grid.steps or grid.work == 0:
        return None
    place, to_go = int(seen.place[0]), math.ceil(float(seen.to_go_hours[0]) / terms.step_hours - 1e-9)
    running = grid.running(place, min(to_go, grid.residuals - 1))
    mode = running if place >= 0 else grid.idle(int(seen.home[0]))
    value = float(solve(terms, policy.chains).value[mode, int(policy.states(seen)[0])])
    return value if value < BARRED else None


def _action(at: int, target: int, demand: int, *, due: bool) -> SpotAction:
    if target == WAITING:
        return "wait"
    if target == at:
        return "checkpoint" if due and at < demand else "stay"
    if target == demand:
        return "switch to on-demand"
    return "move" if at >= 0 else "start"


def _check(policy: Policy, now: Situation, names: list[str]) -> None:
    terms = policy.terms
    known = ", ".join(names[:-1])
    for field, given in (("up", now.up), ("since", frozenset(now.up_hours))):
        for name in sorted(given - set(names[:-1])):
            raise UnusableInput.at(field, message=f"{name!r} is not a place of this policy; its places are {known}")
    for field, where in (("at", now.at), ("data_at", now.data_at)):
        if where is not None and where not in names:
            message = f"{where!r} is not a place of this policy; write one of {known}, {ON_DEMAND}"
            raise UnusableInput.at(field, message=message)
    if now.work_hours > terms.work_hours + 1e-9 or now.saved_work_hours > terms.work_hours + 1e-9:
        message = (
            f"{max(now.work_hours, now.saved_work_hours):.4g} h are more than the {terms.work_hours:.4g} h of the run"
        )
        raise UnusableInput.at("work_left", message=message)
    if now.saved_work_hours < now.work_hours - 1e-9:
        message = f"{now.saved_work_hours:.4g} h left at the last checkpoint, but {now.work_hours:.4g} h now; it cannot be less"
        raise UnusableInput.at("saved_work_left", message=message)
    if now.left_hours > terms.deadline_hours + 1e-9:
        message = f"{now.left_hours:.4g} h to the deadline are more than the {terms.deadline_hours:.4g} h of the run"
        raise UnusableInput.at("time", message=message)


def _needed(policy: Policy, now: Situation, at: int, home: int, work: float) -> tuple[float, float]:
    """Hours to the end on-demand from here, and on the running machine (infinite if there is none).

    Raises `UnusableInput` if both are more than the hours left.
    """
    terms = policy.terms
    demand = len(terms.places)
    speed = terms.places[at].speed if 0 <= at < demand else 1.0
    staying = now.to_go_hours + work / speed if at >= 0 else float("inf")
    rescue = staying if at == demand else terms.rescue_hours(home) + work
    if min(rescue, staying) > now.left_hours + 1e-9:
        message = (
            f"{now.left_hours:.4g} h are left, but on-demand needs {rescue:.4g} h from now: the deadline cannot be "
            "met; go on-demand at once, or solve again for a later deadline"
        )
        raise UnusableInput.at("time", message=message)
    return rescue, staying


def _reasons(
    policy: Policy, now: Situation, target: int, at: int, *, rescue_in: float, forced: bool, due: bool
) -> list[str]:
    terms = policy.terms
    demand = len(terms.places)
    sentences = []
    if now.at is not None and now.at != ON_DEMAND and at == WAITING:
        sentences.append(f"{now.at} is gone: {now.saved_work_hours:.4g} h of work are left from the last checkpoint")
    if forced:
        sentences.append("safety margin: after another step elsewhere, on-demand could be too late")
    elif target == demand and at != demand:
        sentences.append("waiting for spot would cost more on average than on-demand hours do now")
    if target == WAITING:
        up = "no place is up" if not now.up else "no place that is up is worth its changeover and risk now"
        sentences.append(f"{up}, and on-demand can be put off for another {max(rescue_in, 0.0):.3g} h")
    elif target < demand:
        place, chain = terms.places[target], policy.chains[target]
        known = np.array([place.name in now.up_hours])
        state = int(chain.state(np.array([True]), np.array([now.up_hours.get(place.name, 0.0)]), known)[0])
        hazard = float(chain.moves[state, : chain.classes].sum()) / chain.step_hours
        share = place.usd_per_hour / place.speed / terms.on_demand_usd_per_hour
        sentences.append(
            f"{place.name} does an hour of work at {share:.0%} of the on-demand price, and goes down at {hazard:.2g} per hour now"
        )
        sentences.append(f"if it went down now, on-demand could still be put off for {max(rescue_in, 0.0):.3g} h")
    if due and target == at:
        older = now.checkpoint_age_hours >= terms.checkpoint_every_hours
        sentences.append(
            f"the last checkpoint is older than the best interval of {terms.checkpoint_every_hours:.3g} h"
            if older
            else "if the work since the last checkpoint were lost now, on-demand would be too late; write a checkpoint at once"
        )
    return sentences
