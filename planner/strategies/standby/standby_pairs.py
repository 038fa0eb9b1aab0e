"""Which candidates form a pair of spot and standby, as arrays, and the cheapest of the pairs.

Spot machines are interruptible configurations without a longest run. Standbys are available at once and stay: no
interruption, no booking, no term, no windows. Both have the same software stack and precision, in any region. Only
screened offers take part: of each machine, price kind and provider those that no other dominates.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.candidates.configurations import run_of
from gpuplan.planner.candidates.pareto_filter import group_of, nondominated
from gpuplan.planner.cost.preemption_and_checkpoint_interval import wait_log_spread
from gpuplan.planner.strategies.phased.migration_costs import Moves, moves
from gpuplan.planner.strategies.phased.phase_columns import PhaseColumns, columns_of_table
from gpuplan.planner.strategies.standby.exact_standby_run import StandbyRun
from gpuplan.planner.strategies.standby.offered_pairs import Offered, Standbys
from gpuplan.planner.strategies.standby.spot_standby_pairs import Pairs, Spots, StandbyTerms
from gpuplan.planner.strategies.standby.standby_search import CheapestPair, PairSearch, cheapest_pair

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Marks = NDArray[np.bool_]

#: Young's interval is near the optimum: the cost of spot alone, less this part, is a bound for pairs.
_INTERVAL_WITHIN = 0.01
#: The most that rounding both legs to whole micro-dollars subtracts.
_ROUNDING_USD = 2e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StandbyPlan:
    """The cheapest pair: its columns, the two of them, the search, and the hours until its spot machines are available.

    Hours of the run count from then.
    """

    columns: PhaseColumns
    moving: Moves
    spot: int
    standby: int
    pair: CheapestPair
    searched: PairSearch
    delay_hours: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StandbySearch:
    """The cheapest pair, if there is one, and a bound on the pairs that were not priced exactly.

    `left_open` pairs were beyond the limit of the search; none costs less than `left_open_usd`.
    """

    best: StandbyPlan | None = None
    left_open: int = 0
    left_open_usd: float = np.inf


#: For jobs that cannot use a standby.
NO_STANDBY = StandbySearch()


def search_standby_plans(candidates: Candidates, most_micros: float, using: Marks | None = None) -> StandbySearch:
    """The cheapest pair that costs less than `most_micros` and the budget, and a bound on the pairs left open.

    `using` marks configurations of one offer: then only pairs with one of these, in the role that it can have, are searched.
    """
    job, table = candidates.question.job, candidates.table
    if job.deadline_hours is None or job.constraints.max_phases < 2 or job.objective != "cost":
        return NO_STANDBY
    # Stated costs are whole micro-dollars per leg: the caller compares the rounded schedule with the budget.
    below_usd = min(most_micros / 1e6, np.inf if job.budget_usd is None else job.budget_usd + _ROUNDING_USD)
    # Skip spot runs that already meet the deadline: they are candidates as single configurations.
    late = table.cost_breakdown.hours_at_confidence > job.deadline_hours
    spots = late & (table.cost_breakdown.cost_usd * (1.0 - _INTERVAL_WITHIN) < below_usd) & (table.cluster_rate > 0)
    standbys = None
    if using is not None and (table.cluster_rate[using] > 0).any():
        spots &= using
    elif using is not None:
        standbys = using
    cheapest, left_open, left_open_usd = None, 0, np.inf
    for delay_hours, alike in starts(candidates, spots):
        offered = Offers(candidates, alike, delay_hours, only=standbys)
        if not offered:
            continue
        searched = cheapest_pair(offered.offered, offered.terms, below_usd=below_usd, all_or_few=using is not None)
        left_open, left_open_usd = left_open + searched.left_open, min(left_open_usd, searched.left_open_usd)
        best = searched.best
        if best is None or _too_much_carbon(candidates, offered, best):
            continue
        below_usd = best.run.usd
        cheapest = StandbyPlan(
            columns=offered.columns,
            moving=offered.moving,
            spot=int(offered.spots[best.spot]),
            standby=int(offered.standbys[best.standby]),
            pair=best,
            searched=searched,
            delay_hours=delay_hours,
        )
    return StandbySearch(best=cheapest, left_open=left_open, left_open_usd=left_open_usd)


def starts(candidates: Candidates, spots: Marks) -> list[tuple[float, Marks]]:
    """The marked configurations by the hours until they are available: one group, unless a job is running."""
    table, job = candidates.table, candidates.question.job
    if candidates.question.origin is None:
        return [(0.0, spots)]
    at = np.flatnonzero(spots)
    run = run_of(candidates.question, table.take(at), candidates.estimated, candidates.costs) if len(at) else None
    if run is None or run.takeover is None:
        return []
    delays, deadline = run.takeover.delay_hours, np.inf if job.deadline_hours is None else job.deadline_hours
    begins = delays + run.setup_hours < deadline
    starts = []
    for delay in np.unique(delays[begins]).tolist():
        marks = np.zeros(len(table), np.bool_)
        marks[at[begins & (delays == delay)]] = True
        starts.append((delay, marks))
    return starts


class Offers:
    """The candidates that can form a pair: the columns `spots` and `standbys` of `columns`; false if there are none.

    Standbys that another one beats (`worth_a_standby`) are left out, unless `beaten` is true, and all but `only` if given.
    """

    def __init__(
        self,
        candidates: Candidates,
        spots: Marks,
        delay_hours: float,
        *,
        beaten: bool = False,
        only: Marks | None = None,
    ) -> None:
        table, job, settings = candidates.table, candidates.question.job, candidates.question.settings
        deadline = float("inf") if job.deadline_hours is None else job.deadline_hours
        self.terms = StandbyTerms(
            deadline_hours=deadline - delay_hours,
            confidence=job.confidence,
            restart_hours=settings.restart_hours,
        )
        taken_away = table.cluster_rate > 0
        steady = ~taken_away & (table.cost_breakdown.hours_median < deadline)
        if only is not None:
            steady &= only
        self.any = bool((taken_away & spots).any() and steady.any())
        if not self.any:
            return
        every, place = columns_of_table(candidates)
        some = place[taken_away & spots]
        some = some[~np.isfinite(every.run.longest_hours[some])]
        others = _ready(every, place[steady])
        # A run moves only within its migration class: skip standbys of classes without a spot configuration.
        wanted = np.bincount(every.migration_class[some], minlength=int(every.migration_class.max()) + 1) > 0
        others = others[wanted[every.migration_class[others]]]
        others = others if beaten else worth_a_standby(every, others)
        self.any = bool(len(some) and len(others))
        if not self.any:
            return
        self.columns, self.spots, self.standbys = every, np.sort(some), others
        self.moving = moves(every, self.spots)

    @property
    def offered(self) -> Offered:
        """All of these as arrays, in the order of `spots` and `standbys`."""
        k, m, migration_class = self.spots, self.standbys, self.columns.migration_class
        _, first, origin = np.unique(
            np.stack((self.columns.place[k], migration_class[k])), axis=1, return_index=True, return_inverse=True
        )
        origins = k[first]
        moving_usd, moving_hours = self._moving(origins[:, None], m[None, :])
        return Offered(
            spots=Spots(**self._of_spots(k)),
            standbys=Standbys(
                fixed_usd=np.zeros(len(m)),
                changeover_hours=self.columns.run.setup_hours[m],
                **self._of_standbys(m),
            ),
            origin=origin.reshape(-1),
            moving_usd=moving_usd,
            moving_hours=moving_hours,
            allowed=migration_class[origins][:, None] == migration_class[m],
        )

    def beside_the_only_spot(self) -> Pairs:
        """The only spot configuration with each of `standbys`, all of its migration class."""
        m = self.standbys
        k = np.repeat(self.spots, len(m))
        moving_usd, moving_hours = self._moving(k, m)
        return Pairs(
            spot=np.zeros(len(m), np.int64),
            standby=np.arange(len(m)),
            standby_fixed_usd=moving_usd,
            changeover_hours=self.columns.run.setup_hours[m] + moving_hours,
            **self._of_spots(k),
            **{f"standby_{name}": values for name, values in self._of_standbys(m).items()},
        )

    def _of_spots(self, k: Ints) -> dict[str, Floats]:
        """The fields of `Spots` of these columns."""
        run = self.columns.run
        return {
            "setup_hours": run.setup_hours[k],
            "work_hours": run.work_hours[k],
            "log_sigma": run.log_sigma[k],
            "wall_log_sigma": np.hypot(run.log_sigma[k], wait_log_spread(run.cluster_rate[k], run.wait_hours[k])),
            "rate": run.cluster_rate[k],
            "wait_hours": run.wait_hours[k],
            "checkpoint_hours": run.checkpoint_hours[k],
            "usd_per_hour": run.nodes[k] * run.usd_per_node_hour[k],
            "storage_usd_per_hour": run.storage_usd_per_hour[k],
            "fixed_usd": run.egress_usd[k] + self.columns.first_usd[k],
            "step_hours": run.billing_step_hours[k],
            "minimum_hours": run.billing_minimum_hours[k],
        }

    def _of_standbys(self, m: Ints) -> dict[str, Floats]:
        """The fields of `Standbys` of these columns, except those that depend on the spot machine."""
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
        """USD and hours to move a run from spot k to standby m: arrays that broadcast."""
        near = self.moving.near(k, m)
        usd = np.where(near, 0.0, self.moving.egress_usd(k, m) + self.columns.data_usd[m])
        return usd, np.where(near, 0.0, self.moving.far_hours)

    def __bool__(self) -> bool:
        """Whether there is any pair."""
        return self.any


def _ready(columns: PhaseColumns, which: Ints) -> Ints:
    """The columns that are available at once, without windows, a longest run, preemption or a term."""
    run = columns.run
    endless, steady = ~np.isfinite(run.longest_hours[which]), run.cluster_rate[which] == 0
    excluded = columns.windowed[which] | columns.up[which] | (run.term_hours[which] != 0)
    return np.asarray(which[endless & steady & ~excluded])


def _by_the_hour(columns: PhaseColumns, which: Ints) -> Floats:
    """What these columns pay per hour of wall time, not per billing step: storage and power."""
    run = columns.run
    return run.storage_usd_per_hour[which] + run.nodes[which] * run.power_usd_per_node_hour[which]


def worth_a_standby(columns: PhaseColumns, standbys: Ints) -> Ints:
    """Standbys that no other of the same region and stack beats in hours, price per step and set-up."""
    if not len(standbys):
        return standbys
    run = columns.run
    usd = run.nodes[standbys] * run.usd_per_node_hour[standbys]
    alike = [_by_the_hour(columns, standbys)] + [
        values[standbys]
        for values in (
            columns.place,
            columns.migration_class,
            run.log_sigma,
            run.billing_step_hours,
            run.billing_minimum_hours,
        )
    ]
    best = nondominated(run.work_hours[standbys], usd, run.setup_hours[standbys], group=group_of(*alike))
    return np.asarray(np.sort(standbys[best]))


def _too_much_carbon(candidates: Candidates, offers: Offers, best: CheapestPair) -> bool:
    """Whether the pair's expected carbon exceeds the cap: each machine alone keeps it, but a changeover may not."""
    cap = candidates.question.job.constraints.carbon_budget_kg
    at = int(offers.spots[best.spot]), int(offers.standbys[best.standby])
    return cap is not None and sum(carbon_of(offers.columns, *at, best.run)) > cap


def carbon_of(columns: PhaseColumns, spot: int, standby: int, run: StandbyRun) -> tuple[float, float]:
    """Expected kg of each leg: that of the whole job on it, scaled by the hours run; set-up does not count."""
    table, setup = columns.table, float(columns.run.setup_hours[spot])
    per_hour = table.carbon_kg / table.cost_breakdown.run_hours
    trained = max(run.standby_hours - run.switch_probability * run.changeover_hours, 0.0)
    return float(per_hour[spot] * (run.spot_hours - setup)), float(per_hour[standby] * trained)
