"""Calibration of the chance of the deadline on availability traces: `python -m tools.benchmarks.deadline_calibration TRACES`.

Runs on spot that never take on-demand (`tools.fitting.spot_waits`): in one zone, where they wait after a preemption, and in
the zones of a set of three and more, where they take whichever is up. The modelled chance is that of a plan on machines
without a published interruption rate: with `spot_wait_hours` of one zone, and with the default, machines that are back at
once. Bins of the modelled chance stand beside the share that ended in time, with intervals from resampled days; a day of
all zones recorded together is resampled as a whole. "By date" fits the spread of waits to the earlier half of every trace
and judges the later one.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.interruption_rates import ONE_ZONE_WAIT_HOURS, WAIT_LOG_SPREAD
from tools.fitting.capacity_prior import NamedTrace, named_traces
from tools.fitting.spot_waits import STEP, Attempts, attempts, fitted, half

Ints = NDArray[np.int64]
Chance = Callable[[Attempts], float]

BINS, FEWEST, RESAMPLES = 10, 200, 1000


def by_day(groups: Sequence[tuple[str, Attempts]], chance: Chance) -> dict[tuple[str, int], Ints]:
    """Per day of a set: starts, runs in time, and the sum of modelled chances in ppm, by bin: [bins, 3]."""
    days: dict[tuple[str, int], Ints] = {}
    for name, one in groups:
        modelled = chance(one)
        at = min(int(modelled * BINS), BINS - 1)
        for day in np.unique(one.days).tolist():
            good = one.in_time[one.days == day]
            row = days.setdefault((name, day), np.zeros((BINS, 3), np.int64))
            row[at] += (len(good), int(good.sum()), round(modelled * 1e6) * len(good))
    return days


def show(title: str, groups: Sequence[tuple[str, Attempts]], chance: Chance) -> None:
    """Print the bins with enough starts."""
    rows = np.array(list(by_day(groups, chance).values()))
    draw = np.random.default_rng(5)
    sums = np.array([rows[draw.integers(0, len(rows), len(rows))].sum(axis=0) for _ in range(RESAMPLES)])
    low, high = np.percentile(sums[:, :, 1] / np.maximum(sums[:, :, 0], 1), (2.5, 97.5), axis=0)
    print(
        f"\n{title}, {len(rows)} days\n{'chance':>8} {'starts':>7} {'modelled':>9} {'in time':>8} {'95 % by days':>13}"
    )
    for number, (count, good, ppm) in enumerate(rows.sum(axis=0).tolist()):
        if count >= FEWEST:
            model, share = ppm / count / 1e6, good / count
            fits = abs(model - share) <= 0.05 or low[number] <= model <= high[number]
            print(
                f"{number / BINS:>4.1f}-{(number + 1) / BINS:.1f} {count:>7,} {model:>9.3f} {share:>8.3f} "
                f"{low[number]:>6.3f}-{high[number]:.3f} {'' if fits else 'missed'}"
            )


def in_zones(traces: Sequence[NamedTrace]) -> list[tuple[str, Attempts]]:
    """The runs in the zone of every trace, with the days on which it was recorded."""
    return [
        (trace.day, one)
        for trace in traces
        for one in attempts(trace.trace.up(trace.nodes, STEP)[:, None], trace.nodes)
    ]


def over_sets(traces: Sequence[NamedTrace]) -> list[tuple[str, Attempts]]:
    """The runs over three and more zones recorded together."""
    sets: dict[tuple[str, str, int], list[NamedTrace]] = {}
    for trace in traces:
        sets.setdefault((trace.day, trace.card, trace.count), []).append(trace)
    groups = []
    for (day, _, _), zones in sets.items():
        if len(zones) >= 3:
            ups = [zone.trace.up(zone.nodes, STEP) for zone in zones]
            length = min(map(len, ups))
            groups += [(day, one) for one in attempts(np.stack([up[:length] for up in ups], axis=1), zones[0].nodes)]
    return groups


def main(folder: str) -> None:
    """Print all tables."""
    traces = named_traces(Path(folder))
    single = [trace for trace in traces if trace.nodes == 1]
    earlier, later = (in_zones([half(trace, number) for trace in single]) for number in (0, 1))
    both, wait = earlier + later, ONE_ZONE_WAIT_HOURS
    show("one node in one zone, as fitted to all days", both, lambda one: one.chance(wait, WAIT_LOG_SPREAD))
    spread = fitted([one for _, one in earlier], wait)
    show(f"one node in one zone, by date ({spread:g})", later, lambda one: one.chance(wait, spread))
    show("one node in one zone, without the spread", both, lambda one: one.chance(wait, 0.0))
    show("one node in one zone, back at once", both, lambda one: one.chance(0.0, 0.0))
    show("one node over several zones, back at once", over_sets(single), lambda one: one.chance(0.0, 0.0))
    several = in_zones([trace for trace in traces if trace.nodes > 1])
    show("several nodes in one zone", several, lambda one: one.chance(wait, WAIT_LOG_SPREAD))
    show("several nodes in one zone, back at once", several, lambda one: one.chance(0.0, 0.0))


if __name__ == "__main__":
    main(sys.argv[1])
