"""Calibration of the chance of the deadline on availability traces: `python -m tools.benchmarks.deadline_calibration TRACES`.

Runs on spot that never take on-demand (`tools.fitting.spot_waits`) in sets of 1 to 6 zones recorded together, where
they take whichever is up. The modelled chance is that of a plan under the default settings, on old accelerators without a
published interruption rate, in so many zones. Bins of the modelled chance stand beside the share that ended in time, with
intervals from resampled days; a day of all zones recorded together is resampled as a whole. "Of the earlier halves" takes
mean waits and their spread from the earlier half of every trace and judges the later one.
"""

import sys
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.capacity_prior import OLD
from gpuplan.catalog.model.interruption_rates import WAIT_LOG_SPREAD
from gpuplan.catalog.model.spot_waits import spot_waits
from tools.fitting.capacity_prior import NamedTrace, named_traces
from tools.fitting.spot_waits import Attempts, attempts, fitted, half, mean_waits, sets_of, together

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


def over_zones(traces: Sequence[NamedTrace], zones: int) -> list[tuple[str, Attempts]]:
    """The runs over every set of so many zones recorded together, with the days on which they were recorded."""
    return [
        (some[0].day, one)
        for group in sets_of(traces)
        for some in combinations(group, zones)
        for one in attempts(together(some), some[0].nodes)
    ]


def by_default(zones: int) -> Chance:
    """The chance of a plan under the default settings."""
    table = spot_waits()
    wait = table.of_one_node(OLD, zones)
    return lambda one: one.chance(wait * one.nodes ** table.wait_node_exponent[OLD], WAIT_LOG_SPREAD)


def at_waits(wait_hours: float, spread: float) -> Chance:
    """The chance at this typical wait and log-spread per share of waiting."""
    return lambda one: one.chance(wait_hours, spread)


def main(folder: str) -> None:
    """Print all tables."""
    traces = named_traces(Path(folder))
    single = [trace for trace in traces if trace.nodes == 1]
    earlier, later = ([half(trace, number) for trace in single] for number in (0, 1))
    waits, share = mean_waits(earlier), spot_waits().typical_share
    spread = fitted([one for _, one in over_zones(earlier, 1)], share * waits[0][0])
    for zones in range(1, 7):
        where = f"one node in {zones} zone{'s' if zones > 1 else ''}"
        show(f"{where}, default settings, all days", over_zones(single, zones), by_default(zones))
    for zones in (1, 6):
        wait = share * waits[zones - 1][0]
        title = (
            f"{zones} zones, waits ({wait:.2g} h) and spread ({spread:g}) of the earlier halves, starts of the later"
        )
        show(title, over_zones(later, zones), at_waits(wait, spread))
    show("one node in one zone, back at once", over_zones(single, 1), at_waits(0.0, 0.0))
    several = [trace for trace in traces if trace.nodes > 1]
    show("several nodes in one zone, default settings", over_zones(several, 1), by_default(1))


if __name__ == "__main__":
    main(sys.argv[1])
