"""Which candidates may be paired under a net, as arrays, and the cheapest of the pairs.

Interruptible configurations whose price kind sets no longest run, and standbys that are there at once and stay: no
interruption, no booking, no term to be paid for, no windows; of the same software stack and precision, in any place.
Offers are those that the screen leaves: of each machine, kind and provider none that another beats.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.candidates.configurations import run_of
from planner.candidates.gather import Candidates
from planner.pareto import group_of, nondominated
from planner.phases.columns import PhaseColumns, columns_of_table
from planner.phases.moves import Moves, moves
from planner.spot.net import NetTerms, Pairs
from planner.spot.net_exact import NetRun
from planner.spot.net_search import CheapestPair, Offered, PairSearch, Spots, Standbys, cheapest_pair

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Young's interval is near the best, not it: the bill of spot alone is a bound for pairs but for this.
_INTERVAL_WITHIN = 0.01
#: What rounding both legs to whole micro-dollars may take off.
_ROUNDING_USD = 2e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How spot machines start: hours until they can be had, and hours of set-up then."""

    delay_hours: float
    setup_hours: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Netted:
    """The cheapest pair: the columns it was chosen from, which two of them, what was compared, and how its spot starts.

    What is found counts its hours from when the spot machines can be had.
    """

    columns: PhaseColumns
    moving: Moves
    spot: int
    standby: int
    found: CheapestPair
    searched: PairSearch
    start: Start


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NetSearch:
    """The cheapest pair, if there is one, and what is proven of those that were not priced exactly.

    `left_open` of them were one too many; none costs less than `left_open_usd`.
    """

    best: Netted | None = None
    left_open: int = 0
    left_open_usd: float = np.inf


#: Where nothing may stand by.
NO_STANDBY = NetSearch()


def cheapest_under_net(found: Candidates, most_micros: float) -> Netted | None:
    """The cheapest pair that costs less than `most_micros` and the budget, or None if there is none."""
    return search_under_net(found, most_micros).best


def search_under_net(found: Candidates, most_micros: float) -> NetSearch:
    """The cheapest pair that costs less than `most_micros` and the budget, and what is proven of the others."""
    job, table = found.question.job, found.table
    if job.deadline_hours is None or job.constraints.max_phases < 2 or job.objective != "cost":
        return NO_STANDBY
    # What is stated is in whole micro-dollars, leg by leg: who makes a course of it holds that against the budget.
    below_usd = min(most_micros / 1e6, np.inf if job.budget_usd is None else job.budget_usd + _ROUNDING_USD)
    # What is in time by itself gains nothing from a net, and is there as a single configuration.
    late = table.bill.hours_kept > job.deadline_hours
    spots = late & (table.bill.cost_usd * (1.0 - _INTERVAL_WITHIN) < below_usd) & (table.cluster_rate > 0)
    cheapest, left_open, left_open_usd = None, 0, np.inf
    for start, alike in starts(found, spots):
        offered = Offers(found, alike, start)
        if not offered:
            continue
        searched = cheapest_pair(offered.offered, offered.terms, below_usd=below_usd)
        left_open, left_open_usd = left_open + searched.left_open, min(left_open_usd, searched.left_open_usd)
        best = searched.best
        if best is None or _too_much_carbon(found, offered, best):
            continue
        below_usd = best.run.usd
        cheapest = Netted(
            columns=offered.columns,
            moving=offered.moving,
            spot=int(offered.spots[best.spot]),
            standby=int(offered.standbys[best.standby]),
            found=best,
            searched=searched,
            start=start,
        )
    return NetSearch(best=cheapest, left_open=left_open, left_open_usd=left_open_usd)


def starts(found: Candidates, spots: NDArray[np.bool_]) -> list[tuple[Start, NDArray[np.bool_]]]:
    """The marked configurations of the table by how they start: all alike, but where a job is under way."""
    settings, table, job = found.question.settings, found.table, found.question.job
    if found.question.origin is None:
        return [(Start(delay_hours=0.0, setup_hours=settings.setup_hours), spots)]
    at = np.flatnonzero(spots)
    run = run_of(found.question, table.take(at), found.estimated, found.costs) if len(at) else None
    if run is None or run.takeover is None:
        return []
    ways = np.stack((run.takeover.delay_hours, run.setup_hours(settings)), axis=1)
    distinct, which = np.unique(ways, axis=0, return_inverse=True)
    found_ways = []
    for i, (delay, setup) in enumerate(distinct.tolist()):
        if job.deadline_hours is not None and delay + setup >= job.deadline_hours:
            continue
        marks = np.zeros(len(table), np.bool_)
        marks[at[which.reshape(-1) == i]] = True
        found_ways.append((Start(delay_hours=delay, setup_hours=setup), marks))
    return found_ways


class Offers:
    """What of the candidates may be paired: the columns `spots` and `standbys` of `columns`; false if nothing.

    Standbys that another beats (`worth_standing_by`) are left out, unless those `beaten` are asked for too.
    """

    def __init__(self, found: Candidates, spots: NDArray[np.bool_], start: Start, *, beaten: bool = False) -> None:
        table, job, settings = found.table, found.question.job, found.question.settings
        deadline = float("inf") if job.deadline_hours is None else job.deadline_hours
        self.start = start
        self.terms = NetTerms(
            deadline_hours=deadline - start.delay_hours,
            confidence=job.confidence,
            setup_hours=start.setup_hours,
            restart_hours=settings.restart_hours,
            wait_hours=settings.spot_wait_hours,
        )
        taken_away = table.cluster_rate > 0
        steady = ~taken_away & (table.bill.hours_median < deadline)
        self.any = bool((taken_away & spots).any() and steady.any())
        if not self.any:
            return
        every, place = columns_of_table(found)
        some = place[taken_away & spots]
        some = some[~np.isfinite(every.run.longest_hours[some])]
        others = _ready(every, place[steady])
        # A run moves within its own kin: what no spot can move to need not be compared.
        wanted = np.bincount(every.kin[some], minlength=int(every.kin.max()) + 1) > 0
        others = others[wanted[every.kin[others]]]
        others = others if beaten else worth_standing_by(every, others)
        self.any = bool(len(some) and len(others))
        if not self.any:
            return
        self.columns, self.spots, self.standbys = every, np.sort(some), others
        self.moving = moves(every, self.spots)
        self._changeover_hours = settings.setup_hours

    @property
    def offered(self) -> Offered:
        """All of these as arrays, element by element of `spots` and `standbys`."""
        k, m, kin = self.spots, self.standbys, self.columns.kin
        moving_usd, moving_hours = self._moving(k[:, None], m[None, :])
        return Offered(
            spots=Spots(**self._of_spots(k)),
            standbys=Standbys(
                fixed_usd=np.zeros(len(m)),
                changeover_hours=np.full(len(m), self._changeover_hours),
                **self._of_standbys(m),
            ),
            moving_usd=moving_usd,
            moving_hours=moving_hours,
            allowed=kin[k][:, None] == kin[m],
        )

    def beside_the_only_spot(self) -> Pairs:
        """The only one of `spots` with each of `standbys`: what cannot take over from it is not among these."""
        m = self.standbys
        k = np.repeat(self.spots, len(m))
        moving_usd, moving_hours = self._moving(k, m)
        return Pairs(
            spot=np.zeros(len(m), np.int64),
            standby=np.arange(len(m)),
            standby_fixed_usd=moving_usd,
            changeover_hours=self._changeover_hours + moving_hours,
            **self._of_spots(k),
            **{f"standby_{name}": values for name, values in self._of_standbys(m).items()},
        )

    def _of_spots(self, k: Ints) -> dict[str, Floats]:
        """The fields of `Spots` of these columns."""
        run = self.columns.run
        return {
            "work_hours": run.work_hours[k],
            "log_sigma": run.log_sigma[k],
            "rate": run.cluster_rate[k],
            "checkpoint_hours": run.checkpoint_hours[k],
            "usd_per_hour": run.nodes[k] * run.usd_per_node_hour[k],
            "storage_usd_per_hour": run.storage_usd_per_hour[k],
            "fixed_usd": run.egress_usd[k] + self.columns.first_usd[k],
            "step_hours": run.billing_step_hours[k],
            "minimum_hours": run.billing_minimum_hours[k],
        }

    def _of_standbys(self, m: Ints) -> dict[str, Floats]:
        """Those of `Standbys`, but for what rests on where the run comes from."""
        run = self.columns.run
        return {
            "work_hours": run.work_hours[m],
            "log_sigma": run.log_sigma[m],
            "usd_per_hour": run.nodes[m] * run.usd_per_node_hour[m],
            "storage_usd_per_hour": _by_the_hour(self.columns, m),
            "step_hours": run.billing_step_hours[m],
            "minimum_hours": run.billing_minimum_hours[m],
        }

    def _moving(self, k: Ints, m: Ints) -> tuple[Floats, Floats]:
        """What it costs to bring a run from spot k to standby m, and how long it takes: arrays that broadcast."""
        near = self.moving.near(k, m)
        usd = np.where(near, 0.0, self.moving.egress_usd(k, m) + self.columns.data_usd[m])
        return usd, np.where(near, 0.0, self.moving.far_hours)

    def __bool__(self) -> bool:
        """Whether anything may be paired."""
        return self.any


def _ready(columns: PhaseColumns, which: Ints) -> Ints:
    """Those of these columns that are there at once, without windows, a longest run, preemption or a term to be paid for."""
    run = columns.run
    endless, steady = ~np.isfinite(run.longest_hours[which]), run.cluster_rate[which] == 0
    held = columns.windowed[which] | columns.up[which] | (run.term_hours[which] != 0)
    return np.asarray(which[endless & steady & ~held])


def _by_the_hour(columns: PhaseColumns, which: Ints) -> Floats:
    """What these columns pay by the hour on the clock, not by billing steps: storage and power."""
    run = columns.run
    return run.storage_usd_per_hour[which] + run.nodes[which] * run.power_usd_per_node_hour[which]


def worth_standing_by(columns: PhaseColumns, standbys: Ints) -> Ints:
    """Those that no single other in the same place, of the same stack, beats in time, by the step and by the hour."""
    if not len(standbys):
        return standbys
    run = columns.run
    usd = run.nodes[standbys] * run.usd_per_node_hour[standbys]
    by_the_hour = _by_the_hour(columns, standbys)
    work = run.work_hours[standbys]
    alike = [
        each[standbys]
        for each in (columns.place, columns.kin, run.log_sigma, run.billing_step_hours, run.billing_minimum_hours)
    ]
    best = nondominated(work, usd, by_the_hour, group=group_of(*alike))
    return np.asarray(np.sort(standbys[best]))


def _too_much_carbon(found: Candidates, offers: Offers, best: CheapestPair) -> bool:
    """Whether the pair's expected carbon lies above the cap: each machine alone keeps it, a changeover may not."""
    cap = found.question.job.constraints.carbon_budget_kg
    at = int(offers.spots[best.spot]), int(offers.standbys[best.standby])
    return cap is not None and sum(carbon_of(offers.columns, *at, best.run, offers.start)) > cap


def carbon_of(columns: PhaseColumns, spot: int, standby: int, run: NetRun, start: Start) -> tuple[float, float]:
    """kg of either leg: what the whole job takes there, by the hours run, set-up left out as everywhere."""
    table, setup = columns.table, start.setup_hours
    per_hour = table.carbon_kg / table.bill.run_hours
    trained = max(run.standby_hours - run.switch_probability * run.changeover_hours, 0.0)
    return float(per_hour[spot] * (run.spot_hours - setup)), float(per_hour[standby] * trained)
