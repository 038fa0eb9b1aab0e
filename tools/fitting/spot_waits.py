"""Fit waits for preempted machines and joint losses to availability traces: `python -m tools.fitting.spot_waits TRACES`.

The table `catalog/data/spot_waits.csv` gets the mean wait per loss of a run on one node that takes whichever of 1 to 6
zones recorded together is up, over all such sets of zones, and how losses per hour and waits per loss change with nodes: the
exponents between one node and all of them, where every trace of several nodes counts alike.

The spread between zones and weeks is printed. A run stays in the zone of a trace: it works while the zone is up, saves at the interval of Young and Daly, and waits while
the zone is down. It starts at every hour at which the zone is up, with 4, 24 and 48 h of work and deadlines of 1.25, 1.5
and 2 times that. Given the rate in `gpuplan.catalog.model.interruption_rates` and the typical wait of the table, the
log-spread per share of waiting is the one under which the runs of one node that ended in time are likeliest.
"""

import csv
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.capacity_prior import OLD
from gpuplan.catalog.model.interruption_rates import DEFAULT_INTERRUPTIONS_PER_HOUR
from gpuplan.catalog.model.spot_waits import TABLE, spot_waits
from gpuplan.planner.cost.preemption_and_checkpoint_interval import checkpoint_interval, interrupted, wait_log_spread
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.spot_policy.availability_traces import DEFAULT_STEP_HOURS
from gpuplan.planner.spot_policy.run_parameters import Place, SpotTerms
from gpuplan.planner.spot_policy.trace_replay import WAITING, RunState, replay
from tools.fitting.capacity_prior import NamedTrace, named_traces

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

DATA = Path(__file__).resolve().parents[2] / "catalog" / "data" / TABLE
WORK_HOURS, SLACKS = (4.0, 24.0, 48.0), (1.25, 1.5, 2.0)
#: Hours to write a checkpoint, and the settings whose restart a run takes; a replayed run begins with a restart.
WRITE_HOURS, SETTINGS = 1 / 60, PlannerSettings()
SETUP_HOURS = SETTINGS.restart_hours
STEP = DEFAULT_STEP_HOURS
#: Log-spreads to choose from.
GRID = np.arange(0.25, 15.0, 0.25)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """Runs of `work_hours` on so many nodes with one deadline: which ended in time, and the day of each start."""

    nodes: int
    work_hours: float
    deadline_hours: float
    in_time: Flags
    days: Ints

    def chance(self, wait_hours: float, per_share: float) -> float:
        """The modelled chance, for a mean wait per loss and a log-spread per share of waiting."""
        rate, wait = np.array([rate_of(self.nodes)]), np.array([wait_hours])
        ran = interrupted(
            np.array([self.work_hours]), np.array([WRITE_HOURS]), SETTINGS.restart_hours, rate, wait_hours=wait
        )
        known = float(wait_log_spread(rate, wait)[0])
        asked = float(wait_log_spread(rate, wait, per_share=per_share, most=math.inf)[0])
        sigma = math.sqrt(float(ran.log_variance[0]) - known**2 + asked**2)
        room = (self.deadline_hours - SETUP_HOURS) / float(ran.run_hours[0] + ran.waiting_hours[0])
        return NormalDist().cdf(math.log(room) / sigma)


def rate_of(nodes: int) -> float:
    """Preemptions per hour of so many nodes without a published rate."""
    return DEFAULT_INTERRUPTIONS_PER_HOUR * float(nodes**SETTINGS.node_loss_exponent)


class AnyZone:
    """Stays where it runs, else takes the first zone that is up; never on-demand."""

    def decide(self, seen: RunState) -> Ints:
        """The zone of each run, or none."""
        first = np.where(seen.up.any(axis=1), seen.up.argmax(axis=1), WAITING)
        return np.where(seen.place == WAITING, first, seen.place)


def attempts(up: Flags, nodes: int) -> Iterator[Attempts]:
    """Runs of every length and deadline over zones up [steps, zones], each from every hour at which one is up."""
    rate = np.array([rate_of(nodes)])
    for work in WORK_HOURS:
        every = float(checkpoint_interval(np.array([work]), np.array([WRITE_HOURS]), rate)[0])
        for slack in SLACKS:
            steps = math.ceil(work * slack / STEP - 1e-9)
            begins = [at for at in range(0, len(up) - steps + 1, round(1 / STEP)) if up[at].any()]
            terms = SpotTerms(
                work_hours=work,
                deadline_hours=work * slack,
                step_hours=STEP,
                changeover_hours=SETTINGS.restart_hours,
                on_demand_usd_per_hour=1.0,
                places=tuple(Place(name=str(zone), usd_per_hour=1.0) for zone in range(up.shape[1])),
                checkpoint_every_hours=every,
            )
            if begins:
                done = replay(terms, np.stack([up[at : at + steps] for at in begins]), AnyZone())
                yield Attempts(
                    nodes=nodes,
                    work_hours=work,
                    deadline_hours=work * slack,
                    in_time=done.late_hours <= 1e-9,
                    days=np.array(begins) // round(24 / STEP),
                )


def half(trace: NamedTrace, number: int) -> NamedTrace:
    """The earlier (0) or later (1) half of a trace."""
    count = len(trace.trace.available)
    part = trace.trace.available[count * number // 2 : count * (number + 1) // 2]
    return replace(trace, trace=replace(trace.trace, available=part))


def in_zone(traces: Sequence[NamedTrace]) -> list[Attempts]:
    """The runs that stay in the zone of their trace."""
    return [one for trace in traces for one in attempts(trace.trace.up(trace.nodes, STEP)[:, None], trace.nodes)]


def fitted(runs: Sequence[Attempts], wait_hours: float) -> float:
    """The log-spread per share of waiting of greatest likelihood."""
    return max((_log_likelihood(runs, wait_hours, float(value)), float(value)) for value in GRID)[1]


def _log_likelihood(runs: Sequence[Attempts], wait_hours: float, per_share: float) -> float:
    total = 0.0
    for one in runs:
        chance = min(max(one.chance(wait_hours, per_share), 1e-6), 1 - 1e-6)
        good = int(one.in_time.sum())
        total += good * math.log(chance) + (len(one.in_time) - good) * math.log(1 - chance)
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """What one run over a trace sees: hours in which it is up, losses, and hours of waiting after them."""

    up_hours: float
    losses: int
    waited_hours: float


def losses_in(up: Flags, step_hours: float) -> Losses:
    """A run that stays in a zone until it is lost, and then takes the first that is up: `up` is [steps, zones]."""
    up_steps, losses, waited, zone = 0, 0, 0, None
    for first, row in zip(up.argmax(axis=1).tolist(), up.tolist(), strict=True):
        if zone is not None and row[zone]:
            up_steps += 1
            continue
        losses += zone is not None
        zone = first if row[first] else None
        up_steps += zone is not None
        # The first start is no wait for a preempted machine.
        waited += zone is None and losses > 0
    return Losses(up_hours=up_steps * step_hours, losses=losses, waited_hours=waited * step_hours)


def sets_of(traces: Sequence[NamedTrace]) -> list[list[NamedTrace]]:
    """The traces recorded together."""
    sets: dict[tuple[str, str, int, int], list[NamedTrace]] = {}
    for trace in traces:
        sets.setdefault((trace.day, trace.card, trace.count, trace.nodes), []).append(trace)
    return list(sets.values())


def together(zones: Sequence[NamedTrace]) -> Flags:
    """Whether each zone has all nodes, on the grid of replays: [steps, zones]."""
    ups = [zone.trace.up(zone.nodes, STEP) for zone in zones]
    return np.stack([up[: min(map(len, ups))] for up in ups], axis=1)


def mean_waits(traces: Sequence[NamedTrace], most: int = 6) -> list[tuple[float, float, float]]:
    """Hours per loss over all sets of 1, 2, ... zones recorded together, with the lowest and highest of a set."""
    singles, rows = [trace for trace in traces if trace.nodes == 1], []
    for count in range(1, most + 1):
        seen = [losses_in(together(zones), STEP) for group in sets_of(singles) for zones in combinations(group, count)]
        by_set = [one.waited_hours / one.losses for one in seen if one.losses]
        mean = sum(one.waited_hours for one in seen) / sum(one.losses for one in seen)
        rows.append((mean, min(by_set), max(by_set)))
    return rows


def node_exponents(traces: Sequence[NamedTrace]) -> dict[str, tuple[float, float, float]]:
    """How waits per loss and losses per hour change with nodes: mean, lowest and highest exponent of the traces."""
    waits, rises = [], []
    for trace in traces:
        if trace.nodes > 1:
            step = trace.trace.step_hours
            one, every = (losses_in((trace.trace.available >= nodes)[:, None], step) for nodes in (1, trace.nodes))
            rises.append(math.log(every.losses / every.up_hours * one.up_hours / one.losses) / math.log(trace.nodes))
            longer = every.waited_hours / every.losses * one.losses / one.waited_hours
            waits.append(math.log(longer) / math.log(trace.nodes))
    return {
        name: (sum(values) / len(values), min(values), max(values))
        for name, values in (("wait_node_exponent", waits), ("loss_node_exponent", rises))
    }


def fitted_rows(traces: Sequence[NamedTrace]) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Value, lowest and highest of each fitted row of the table, by name and number of zones."""
    means = {("mean_wait", str(number)): row for number, row in enumerate(mean_waits(traces), start=1)}
    return means | {(name, ""): row for name, row in node_exponents(traces).items()}


def write(rows_by_key: dict[tuple[str, str], tuple[float, float, float]]) -> None:
    """Write the fitted rows of the table, and print them."""
    with DATA.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["age_class"] in ("", OLD) and (row["name"], row["zones"]) in rows_by_key:
            row["value"], row["low"], row["high"] = (f"{x:.3g}" for x in rows_by_key[row["name"], row["zones"]])
            print(row["name"], row["zones"], row["value"], f"({row['low']} to {row['high']})")
    with DATA.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main(folder: str) -> None:
    """Write the table, and print the fitted spread: from all days, and from each half of them."""
    traces = named_traces(Path(folder))
    write(fitted_rows(traces))
    wait, single = spot_waits().of_one_node(OLD, 1), [trace for trace in traces if trace.nodes == 1]
    halves = [in_zone([half(trace, number) for trace in single]) for number in (0, 1)]
    for name, runs in (("all days", halves[0] + halves[1]), ("earlier half", halves[0]), ("later half", halves[1])):
        print(f"{name}: {fitted(runs, wait):.2f}")


if __name__ == "__main__":
    main(sys.argv[1])
