"""Capacity ladders replayed over public availability traces: `python -m tools.benchmarks.ladder_replay TRACES`.

Each set of zones that was recorded together (one zone is a set too) is one catalogue: every zone is a spot choice at the
same price, on-demand the last choice. Chances come from the earlier half of the traces: the prior fitted to all of them,
moved towards the zone's own frequency by what one quarter of the earlier half said of the next. Runs start every hour of the later half, with 4, 24 and 48 h of work and deadlines of 1.25, 1.5 and 2 times that. A ladder is followed at the start and after
every preemption; on-demand is kept once it is obtained. All rules switch to on-demand while there is time for it.

Printed: the share finished by the deadline if on-demand always exists, and if each request for it is refused at
`REFUSED`; the mean cost over that of the best single choice of the ladder in hindsight; the same for the first choice
alone and for on-demand; and the calibration of the chance of each try, with intervals from resampled days.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.capacity_prior import capacity_prior
from gpuplan.planner.availability.capacity_ladder import LadderChoices, followed, least_ladder
from gpuplan.planner.spot_policy.availability_traces import DEFAULT_STEP_HOURS
from gpuplan.planner.spot_policy.ladder_rules import LADDER_RULES, FirstOnly, LadderTerms
from gpuplan.planner.spot_policy.run_parameters import Place, SpotTerms
from gpuplan.planner.spot_policy.trace_replay import Replay, replay
from tools.fitting.capacity_prior import NamedTrace, fitted, named_traces

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

WORK_HOURS, SLACKS = (4.0, 24.0, 48.0), (1.25, 1.5, 2.0)
#: Price of spot where on-demand costs 1, and hours of a changeover and between checkpoints.
SPOT_PRICE, CHANGEOVER_HOURS, CHECKPOINT_HOURS = 0.3, 0.25, 0.5
#: Stated rate at which a request for on-demand is refused, every five minutes anew.
REFUSED = 0.5
#: Bins of chance, the fewest starts that are shown, and resamples of days.
BINS, FEWEST, RESAMPLES = 10, 200, 400
STEP = DEFAULT_STEP_HOURS


@dataclass(frozen=True, kw_only=True)
class ZoneSet:
    """Zones recorded together: their availability in the later half [steps, zones], and regions and chances before."""

    name: str
    up: Flags
    regions: tuple[str, ...]
    prior: float
    chances: Floats
    shared_share: float


def zone_sets(traces: Sequence[NamedTrace]) -> Iterator[ZoneSet]:
    """The sets of zones with their later halves, and what the earlier halves say."""
    minutes = capacity_prior().try_minutes
    before = [_part(trace, 0, 2) for trace in traces]
    constants = {name: values[0] for name, values in fitted(before, minutes).items()}
    trust = _trust(traces, constants, minutes)
    keys = [(trace.day, trace.card, trace.count, trace.nodes) for trace in traces]
    for key in dict.fromkeys(keys):
        mine = [number for number, other in enumerate(keys) if other == key]
        later = [_part(traces[number], 2, 4).trace.up(key[3], STEP) for number in mine]
        length = min(map(len, later))
        prior = _logit(_prior(constants, traces[mine[0]]))
        of_zone = np.array([_logit(before[number].chance(key[3], minutes)) for number in mine])
        yield ZoneSet(
            name=f"{key[0]} {key[3]} x {key[2]} {key[1]}, {len(mine)} zones",
            up=np.stack([up[:length] for up in later], axis=1),
            regions=tuple(traces[number].region for number in mine),
            prior=1 / (1 + np.exp(-prior)),
            chances=1 / (1 + np.exp(-(prior + trust * (of_zone - prior)))),
            shared_share=constants["shared_share"],
        )


def _prior(constants: dict[str, float], trace: NamedTrace) -> float:
    falls = trace.count ** constants["spot_size_exponent"] * trace.nodes ** constants["spot_node_exponent"]
    return float(constants["spot_chance"] / falls)


def _logit(chance: float) -> float:
    held = min(max(chance, 0.02), 0.98)
    return math.log(held / (1 - held))


def _trust(traces: Sequence[NamedTrace], constants: dict[str, float], minutes: float) -> float:
    """How far a zone's own quarter moves the expectation for the next, from the earlier half alone: a slope from 0 to 1."""
    moved = np.array(
        [
            [
                _logit(_part(trace, at, at + 1).chance(trace.nodes, minutes)) - _logit(_prior(constants, trace))
                for at in (0, 1)
            ]
            for trace in traces
        ]
    )
    return float(np.clip((moved[:, 0] @ moved[:, 1]) / (moved[:, 0] @ moved[:, 0]), 0.0, 1.0))


def _part(trace: NamedTrace, first: int, last: int) -> NamedTrace:
    """The quarters `first` to `last` of a trace."""
    count = len(trace.trace.available)
    part = trace.trace.available[count * first // 4 : count * last // 4]
    return replace(trace, trace=replace(trace.trace, available=part))


def choices_of(zones: ZoneSet, chances: Floats) -> LadderChoices:
    """The zones and on-demand as choices of a ladder.

    Zones of a region may differ in chance, so the region is short by the share of the refusals of its best zone.
    """
    groups = {region: number for number, region in enumerate(dict.fromkeys(zones.regions))}
    best = {r: max(c for c, of in zip(chances, zones.regions, strict=True) if of == r) for r in groups}
    short = np.array([zones.shared_share * (1 - best[region]) for region in zones.regions])
    count = len(zones.regions)
    given = chances / (1 - short)
    return LadderChoices(
        value=np.array([SPOT_PRICE] * count + [1.0]),
        last_position=np.full(count + 1, 9),
        pool=np.arange(count + 1),
        group=np.array([groups[region] for region in zones.regions] + [len(groups)]),
        state_chance=np.array([(1 - s, s, 0.0) for s in short] + [(1.0, 0.0, 0.0)]),
        obtained=np.array([(p, 0.0, 0.0) for p in given] + [(1.0, 1.0, 1.0)]),
    )


def terms_of(zones: ZoneSet, order: Sequence[int], work: float, slack: float) -> LadderTerms:
    """A run with a ladder over the zones of a set."""
    count = len(zones.regions)
    run = SpotTerms(
        work_hours=work,
        deadline_hours=work * slack,
        step_hours=STEP,
        changeover_hours=CHANGEOVER_HOURS,
        on_demand_usd_per_hour=1.0,
        places=tuple(Place(name=f"zone {i}", usd_per_hour=SPOT_PRICE) for i in range(count)),
        checkpoint_every_hours=CHECKPOINT_HOURS,
    )
    return LadderTerms(
        run=run,
        order=tuple(order),
        permanent=(False,) * count + (True,),
        try_hours=capacity_prior().try_minutes / 60,
    )


def starts(zones: ZoneSet, hours: float) -> Flags:
    """The window of every hourly start that the later half covers: [starts, steps, zones]."""
    steps, every = round(hours / STEP + 0.5), round(1 / STEP)
    last = len(zones.up) - steps
    return (
        np.stack([zones.up[at : at + steps] for at in range(0, max(last, 0), every)])
        if last > 0
        else zones.up[None][:0]
    )


def replays(terms: LadderTerms, up: Flags) -> dict[str, Replay]:
    """What each rule comes to, with on-demand always there, and refused."""
    return {
        f"{name}{' refused' if refused else ''}": replay(terms.run, up, rule(replace(terms, refused=refused)))
        for name, rule in LADDER_RULES.items()
        for refused in (0.0, REFUSED)
    }


def hindsight(terms: LadderTerms, up: Flags) -> Floats:
    """The cost of the best choice of the ladder alone, run by run: [starts]."""
    alone = [replay(terms.run, up, FirstOnly(replace(terms, order=(place,)))).usd for place in terms.order]
    return np.min(alone, axis=0)


def main(folder: str) -> None:
    """Print both tables."""
    sets = list(zone_sets(named_traces(Path(folder))))
    totals: dict[str, list[tuple[Flags, Floats]]] = {}
    tries: dict[str, list[tuple[float, Ints]]] = {"the prior alone": [], "the prior and the zone's own days": []}
    for zones in sets:
        choices = choices_of(zones, zones.chances)
        order = least_ladder(choices, len(choices) - 1).order
        for work in WORK_HOURS:
            for slack in SLACKS:
                terms, up = terms_of(zones, order, work, slack), starts(zones, work * slack)
                if not len(up):
                    continue
                best = hindsight(terms, up)
                for name, done in replays(terms, up).items():
                    totals.setdefault(name, []).append((done.late_hours <= 1e-9, done.usd / best))
                    totals.setdefault(f"{name} | {zones.name}", []).append(totals[name][-1])
        flat = choices_of(zones, np.full(len(zones.regions), zones.prior))
        for name, modelled in zip(tries, (flat, choices), strict=True):
            for order in permutations(range(len(zones.regions)), min(2, len(zones.regions))):
                tries[name] += _tries(zones, modelled, order)
    print(f"{'rule':60} {'starts':>8} {'in time':>8} {'cost over hindsight':>20}")
    for name, rows in totals.items():
        late, cost = np.concatenate([row[0] for row in rows]), np.concatenate([row[1] for row in rows])
        print(f"{name:60} {len(late):>8,} {late.mean():>8.2%} {cost.mean() - 1:>20.1%}")
    for name, rows_of in tries.items():
        print(f"\n{name}, every zone first and second")
        _calibration(rows_of)


def _tries(zones: ZoneSet, choices: LadderChoices, order: Sequence[int]) -> list[tuple[float, Ints]]:
    """Per step of the ladder: its chance when it is tried, and whether the starts that tried it got it, by day."""
    probes = round(capacity_prior().try_minutes / 60 / STEP)
    chances = followed(choices, tuple(order)).chance_when_tried
    up = starts(zones, (len(order) + 1) * probes * STEP)
    left, rows = np.ones(len(up), np.bool_), []
    for number, (zone, chance) in enumerate(zip(order, chances, strict=True)):
        got = up[:, number * probes : (number + 1) * probes, zone].any(axis=1)
        days = np.arange(len(up)) // 24
        rows.append((chance, np.stack((left, left & got, days), axis=1).astype(np.int64)))
        left = left & ~got
    return rows


def _calibration(tries: Sequence[tuple[float, Ints]]) -> None:
    print(f"{'chance':>10} {'tries':>7} {'modelled':>9} {'got':>7} {'95 % by days':>16}")
    draw = np.random.default_rng(11)
    for number in range(BINS):
        mine = [(chance, rows) for chance, rows in tries if number <= min(chance * BINS, BINS - 1e-9) < number + 1]
        if sum(int(rows[:, 0].sum()) for _, rows in mine) < FEWEST:
            continue
        tried = sum(int(rows[:, 0].sum()) for _, rows in mine)
        modelled = sum(chance * int(rows[:, 0].sum()) for chance, rows in mine) / tried
        # A day of one set of zones is resampled as a whole.
        days = np.concatenate([_by_day(rows) for _, rows in mine])
        picks = draw.integers(0, len(days), (RESAMPLES, len(days)))
        sums = days[picks].sum(axis=1)
        low, high = np.percentile(sums[:, 1] / np.maximum(sums[:, 0], 1), (2.5, 97.5))
        got = days[:, 1].sum() / tried
        print(
            f"{number / BINS:>4.1f}-{(number + 1) / BINS:.1f} {tried:>8,} {modelled:>9.2f} {got:>7.2f} {low:>8.2f}-{high:.2f}"
        )


def _by_day(rows: Ints) -> Ints:
    tried, got, day = (rows[:, i].astype(np.int64) for i in range(3))
    size = int(day.max(initial=0)) + 1
    return np.stack([np.bincount(day, weights=part, minlength=size).astype(np.int64) for part in (tried, got)], axis=1)


if __name__ == "__main__":
    main(sys.argv[1])
