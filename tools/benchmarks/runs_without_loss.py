"""A law of hours on spot that never ends before its work: `python -m tools.benchmarks.runs_without_loss TRACES`.

A plan takes hours on spot as one lognormal, which puts runs before the hours H that they take without a loss, work and
checkpoints. Here only the hours beyond H are lognormal: with the mean L of a plan, a spread of its losses in a zone, and a
spread between zones in proportion to the share of L that is waiting. Both laws are compared on sets of 1 to 6 zones: with
constants of all days, and with those of the earlier half on the later. Beside them stand the shares in time of the earlier half
themselves: what no constants of it can do much better than on the later. docs/accuracy.md has the result.
"""

import math
import sys
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from gpuplan.catalog.model.capacity_prior import OLD
from gpuplan.catalog.model.spot_waits import spot_waits
from gpuplan.planner.cost.preemption_and_checkpoint_interval import checkpoint_interval, interrupted, wait_log_spread
from tools.benchmarks.deadline_calibration import over_zones
from tools.fitting.capacity_prior import NamedTrace, named_traces
from tools.fitting.spot_waits import (
    SETTINGS,
    SETUP_HOURS,
    STEP,
    WORK_HOURS,
    WRITE_HOURS,
    Attempts,
    half,
    mean_waits,
    rate_of,
)

ZONES = range(1, 7)
#: Grids of the share of the mean wait that counts, and of the spread per share of waiting.
WAIT_SHARES, SPREADS = (0.25, 0.35, 0.5, 0.75, 1.0, 1.5), np.arange(0, 12.1, 0.25).tolist()


class Cell(NamedTuple):
    """All starts of equal nodes, work and deadline: one set of their runs, the mean wait, starts, and those in time."""

    one: Attempts
    mean_wait: float
    starts: int
    in_time: int

    @property
    def key(self) -> tuple[float, ...]:
        """Its nodes, work, deadline, and by their mean wait its zones."""
        return self.one.nodes, self.one.work_hours, self.one.deadline_hours, self.mean_wait


#: The modelled chance of the deadline.
Chance = Callable[[Cell], float]


class Lognormal(NamedTuple):
    """The model of a plan: the share of the mean wait that counts, and the spread per share of waiting."""

    wait_share: float
    spread: float

    def chance(self, cell: Cell) -> float:
        """The modelled chance of the deadline."""
        return cell.one.chance(self.wait_share * cell.mean_wait, self.spread)


class Shifted(NamedTuple):
    """The share of the mean wait that counts, and the spread of lost hours per share of waiting among them."""

    wait_share: float
    spread: float

    def chance(self, cell: Cell) -> float:
        """The modelled chance of the deadline."""
        one = cell.one
        lossless, hours, waiting, variance = _hours(one.nodes, one.work_hours, self.wait_share * cell.mean_wait)
        lost, room = hours - lossless, one.deadline_hours - SETUP_HOURS - lossless
        if room <= 0:
            return 0.0
        in_zone = math.log1p(variance / lost**2)
        sigma = math.hypot(math.sqrt(in_zone), self.spread * waiting / lost)
        return NormalDist().cdf((math.log(room / lost) + in_zone / 2) / sigma)


@cache
def _hours(nodes: int, work_hours: float, wait_hours: float) -> tuple[float, float, float, float]:
    """Hours of a run that loses nothing, hours on average, those of them spent waiting, and their variance in a zone."""
    rate, work, wait, write = (np.array([x]) for x in (rate_of(nodes), work_hours, wait_hours, WRITE_HOURS))
    ran = interrupted(work, write, SETTINGS.restart_hours, rate, wait_hours=wait)
    hours, waiting = float((ran.run_hours + ran.waiting_hours)[0]), float(ran.waiting_hours[0])
    in_zone = float((ran.log_variance - wait_log_spread(rate, wait) ** 2)[0])
    lossless = work_hours * (1 + WRITE_HOURS / float(checkpoint_interval(work, write, rate)[0]))
    return lossless, hours, waiting, hours**2 * math.expm1(in_zone)


def cells(traces: Sequence[NamedTrace], zones: int, mean_wait: float) -> list[Cell]:
    """The starts over all sets of so many zones recorded together."""
    by_key: dict[tuple[int, float, float], Cell] = {}
    for _, one in over_zones(traces, zones):
        key = one.nodes, one.work_hours, one.deadline_hours
        before = by_key.get(key, Cell(one, mean_wait * one.nodes ** spot_waits().wait_node_exponent[OLD], 0, 0))
        starts, good = before.starts + len(one.in_time), before.in_time + int(one.in_time.sum())
        by_key[key] = before._replace(starts=starts, in_time=good)
    return list(by_key.values())


def likeliest[Model: (Lognormal, Shifted)](some: Sequence[Cell], grid: Sequence[Model]) -> Model:
    """The model under which the shares in time are likeliest; every cell counts alike."""

    def fit(model: Model) -> float:
        total = 0.0
        for cell in some:
            chance, share = min(max(model.chance(cell), 1e-3), 1 - 1e-3), cell.in_time / cell.starts
            total += share * math.log(chance) + (1 - share) * math.log(1 - chance)
        return total

    return max(grid, key=fit)


def as_before(groups: dict[str, list[Cell]]) -> Chance:
    """The share in time of the same starts in these groups."""
    shares = {cell.key: cell.in_time / cell.starts for some in groups.values() for cell in some}
    return lambda cell: shares[cell.key]


def show(title: str, groups: dict[str, list[Cell]], chance: Chance) -> None:
    """Print modelled minus true shares in points, by work and deadline, and their root mean square."""
    print(f"\n{title}")
    every: list[float] = []
    for name, some in groups.items():
        errors = [100 * (chance(cell) - cell.in_time / cell.starts) for cell in some]
        every += errors
        print(f"{name:>8}: {_root(errors):4.1f}   ", " ".join(f"{error:+3.0f}" for error in errors))
    print(f"     all: {_root(every):4.1f}")


def _root(errors: Sequence[float]) -> float:
    return math.sqrt(sum(error**2 for error in errors) / len(errors))


def show_lossless(traces: Sequence[NamedTrace]) -> None:
    """Print how many starts are followed by no loss for some hours of work, beside independent losses."""
    for hours, nodes in product(WORK_HOURS, sorted({trace.nodes for trace in traces})):
        lossless = _hours(nodes, hours, 0.0)[0]
        steps = round(lossless / STEP)
        ups = [trace.trace.up(nodes, STEP) for trace in traces if trace.nodes == nodes]
        starts = [up[at : at + steps] for up in ups for at in range(0, len(up) - steps + 1, round(1 / STEP)) if up[at]]
        lossless_share, independent = np.mean([start.all() for start in starts]), math.exp(-rate_of(nodes) * lossless)
        print(f"{hours:>4g} h, {nodes:>2} nodes: no loss {lossless_share:.3f}, independent losses {independent:.3f}")


def main(folder: str) -> None:
    """Print shares without a loss, and the errors of both models."""
    traces = named_traces(Path(folder))
    show_lossless(traces)
    single, several = ([trace for trace in traces if (trace.nodes > 1) == joint] for joint in (False, True))
    halves = [[half(trace, number) for trace in single] for number in (0, 1)]
    waits, earlier_waits = spot_waits().mean_hours, [wait for wait, _, _ in mean_waits(halves[0])]
    whole = {f"{zones} zones": cells(single, zones, waits[zones - 1]) for zones in ZONES}
    earlier, later = (
        {f"{zones} zones": cells(part, zones, earlier_waits[zones - 1]) for zones in ZONES} for part in halves
    )
    nodes = {"nodes": cells(several, 1, waits[0])}
    nodes_halves = [{"nodes": cells([half(trace, number) for trace in several], 1, waits[0])} for number in (0, 1)]
    show("shares of the earlier half, judged on later", later | nodes_halves[1], as_before(earlier | nodes_halves[0]))
    lognormals = [Lognormal(spot_waits().typical_share, spread) for spread in SPREADS]
    shifted = [Shifted(*values) for values in product(WAIT_SHARES, SPREADS)]
    for name, fit_to, judged in (("all days", whole, whole | nodes), ("earlier half, judged on later", earlier, later)):
        some = [cell for group in fit_to.values() for cell in group]
        for model in (likeliest(some, lognormals), likeliest(some, shifted)):
            show(f"{model}, {name}", judged, model.chance)


if __name__ == "__main__":
    main(sys.argv[1])
