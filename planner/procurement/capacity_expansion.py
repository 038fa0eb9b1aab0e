"""Solution of `expansion_model`: the cheapest machines and commitments under a fluctuating load.

Two exact reductions come first (`useful`). A source is useless if it saves less than F_l even when it works in every
hour on the job for which it saves most. It is also useless if another source of its kind that lasts as long is no worse
in F and in every t, v and a. Then column generation solves the linear relaxation. Sources are removed if their reduced
cost exceeds the difference between a known answer and the bound.
"""

import time
from dataclasses import dataclass, replace

import numpy as np
import pulp
from numpy.typing import NDArray

from gpuplan.planner.procurement.expansion_model import Built, Expansion, formulate, worth
from gpuplan.planner.strategies.single.choice_model import NotProvenError, highs_version

Floats = NDArray[np.float64]

#: Two plans are equal if their costs over the whole horizon differ by less than this, in USD.
RELATIVE_GAP = 1e-7
#: Seconds that all solutions of one question may take together.
TIME_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Expanded:
    """`units` [L]; `share` [B, L, J], the share of each block's runs on each source; cost, bound and proof.

    `missing_usd` [L]: for a source that no known answer uses, an answer with one unit of it costs at least this much
    more than the bound of the linear relaxation (0 if unknown).
    """

    units: Floats
    share: Floats
    objective_usd: float
    bound_usd: float
    gap: float
    variables: int
    solver: str
    missing_usd: Floats


def useful(given: Expansion) -> NDArray[np.bool_]:
    """[L]: sources that may lower the cost. Removing the others does not change the least cost.

    A machine-hour of l saves at most max_j (c_j - v_lj) / t_lj. If some job cannot be rented, the saving has no bound.
    """
    wanted = (given.runs_per_hour > 0).any(axis=0)
    able = np.isfinite(given.machine_hours) & wanted[None, :]
    with np.errstate(invalid="ignore"):
        saved = np.where(able, (given.rent_usd[None, :] - given.running_usd) / given.machine_hours, 0.0)
    most = saved.max(axis=1, initial=0.0) * (given.lasts @ given.hours)
    usable = (most > given.fixed_usd) & (given.most_units > 0)
    for source in np.flatnonzero(usable).tolist():
        usable[source] = False
        usable[source] = not _beaten(given, source, np.flatnonzero(usable))
    return usable


def _beaten(given: Expansion, source: int, rivals: NDArray[np.int64]) -> bool:
    """Whether one of the rivals, each without a limit on its units, is no worse than `source` in everything.

    A rival in whole units does not beat a source in fractional units.
    """
    no_worse = (
        np.isinf(given.most_units[rivals])
        & (~given.whole[rivals] | given.whole[source])
        & (given.fixed_usd[rivals] <= given.fixed_usd[source])
        & (given.machine_hours[rivals] <= given.machine_hours[source]).all(axis=1)
        & (given.running_usd[rivals] <= given.running_usd[source]).all(axis=1)
        & (given.uses[:, rivals] <= given.uses[:, [source]]).all(axis=0)
        & (given.lasts[rivals] >= given.lasts[source]).all(axis=1)
    )
    return bool(no_worse.any())


def expand(
    given: Expansion,
    *,
    reduce: bool = True,
    likely: NDArray[np.bool_] | None = None,
    most_shares: int | None = None,
) -> Expanded | None:
    """The cheapest units of every source, proven to within `RELATIVE_GAP` or as far as the time limit allows.

    A proof that needs more than `most_shares` shares of runs is not attempted. The answer is then the best one over the
    sources that come closest to breaking even, and the linear relaxation proves its gap.
    `reduce` may be switched off to check the reductions; `likely` [L] are the first sources, such as those of the
    answer to a similar question. Returns None if jobs that cannot be rented do not fit into the limits. Raises
    `NotProvenError` if HiGHS ends without a solution for another reason.
    """
    began = time.monotonic()
    must = ~np.isfinite(given.rent_usd)
    constant = float(given.hours @ (given.runs_per_hour @ np.where(must, 0.0, given.rent_usd)))
    forced = given.least_units > 0
    usable = (useful(given) if reduce else given.most_units > 0) | forced
    if not worth(given, usable).any() and not forced.any():
        return _nothing(given, constant) if not (must & (given.runs_per_hour > 0).any(axis=0)).any() else None
    relaxed = _priced(given, usable, likely) if reduce else None
    if relaxed is None:
        return _solved(given, usable, constant, TIME_LIMIT_S)
    for source, variable in relaxed.built.x.items():
        variable.cat = "Integer" if given.whole[source] else "Continuous"
    solution = _answer(given, relaxed.built, constant, _left(began))
    if solution is None:
        return _solved(given, usable, constant, _left(began))
    # An answer with one unit of a source costs at least the bound plus its reduced cost. If that exceeds the cost of an
    # answer that is already known, no cheaper answer uses the source.
    room = solution.objective_usd - constant - relaxed.bound_usd
    perhaps = usable & (relaxed.reduced_usd <= room + _PRICE_TOLERANCE * max(1.0, abs(solution.objective_usd)))
    dominated_offers_recheck = perhaps | relaxed.active
    missing = np.maximum(0.0, relaxed.reduced_usd)
    if not (perhaps & ~relaxed.active).any():
        return replace(solution, missing_usd=missing)
    if most_shares is None or _shares(given, dominated_offers_recheck) <= most_shares:
        proven = _solved(given, dominated_offers_recheck, constant, _left(began))
        return None if proven is None else replace(proven, missing_usd=missing)
    bound = min(solution.objective_usd, relaxed.bound_usd + constant)
    apart = (solution.objective_usd - bound) / max(abs(solution.objective_usd), 1e-9)
    return replace(solution, bound_usd=bound, gap=apart, missing_usd=missing)


def _shares(given: Expansion, usable: NDArray[np.bool_]) -> int:
    """The number of shares of runs in the model with these sources."""
    per_job = given.lasts.T.astype(np.float64) @ worth(given, usable).astype(np.float64)
    return round(float((per_job * (given.runs_per_hour > 0)).sum()))


def _left(began: float) -> float:
    return max(1.0, TIME_LIMIT_S - (time.monotonic() - began))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Relaxed:
    """The linear relaxation over all sources, solved with a few of them.

    `active` [L] marks the sources in the model. `bound_usd` excludes the constant. `reduced_usd` [L] is the reduced
    cost of one unit of each source: by how much it fails to break even.
    """

    active: NDArray[np.bool_]
    bound_usd: float
    reduced_usd: Floats
    built: Built


#: A price below this share of the objective counts as zero.
_PRICE_TOLERANCE = 1e-9
#: Most sources added in one round of column generation.
_MOST_AT_ONCE = 12
_MOST_ROUNDS = 60
#: Least number of first sources; the first integer answer uses them too.
_FEWEST = 4


def _priced(given: Expansion, usable: NDArray[np.bool_], likely: NDArray[np.bool_] | None) -> _Relaxed | None:
    """Column generation: the relaxation with a few sources gives prices by block and job; at these, arrays show which
    other sources would break even. None if the few sources cannot serve the jobs that cannot be rented.

    At prices mu_bj for a whole share of a block's runs, a unit of l earns in block b at most
    max_j (w_b d_bj (c_j - v_lj) - mu_bj) / (t_lj d_bj). Its reduced cost is F_l + sum_k lambda_k a_kl minus the sum.
    """
    active = usable & (
        _promising(given, usable) | ~given.whole | np.isfinite(given.most_units) | (given.least_units > 0)
    )
    if likely is not None:
        active |= usable & likely
    for _ in range(_MOST_ROUNDS):
        built = formulate(given, active)
        for variable in built.x.values():
            variable.cat = "Continuous"
        stats = built.problem.solve(pulp.HiGHS(msg=False, threads=1, timeLimit=TIME_LIMIT_S))
        if stats.status != pulp.LpSolveStatus.Optimal or stats.objective is None:
            return None
        reduced = _reduced(given, *_prices(given, built))
        scale = max(1.0, abs(float(stats.objective)))
        pays = usable & ~active & (reduced < -_PRICE_TOLERANCE * scale)
        if not pays.any():
            return _Relaxed(active=active, bound_usd=float(stats.objective), reduced_usd=reduced, built=built)
        best = np.argsort(np.where(pays, reduced, np.inf), kind="stable")[:_MOST_AT_ONCE]
        active[best[pays[best]]] = True
    return None


def _promising(given: Expansion, usable: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """[L]: the first sources: the cheapest of each job if busy all the time, every source for a job that cannot be
    rented, and those that would save most.
    """
    promising = np.zeros(len(usable), np.bool_)
    lasting = given.lasts @ given.hours
    per_hour = np.divide(given.fixed_usd, lasting, out=np.zeros(len(usable)), where=lasting > 0)
    able = np.isfinite(given.machine_hours) & usable[:, None]
    cost = np.where(able, np.where(able, given.machine_hours, 0.0) * per_hour[:, None] + given.running_usd, np.inf)
    for job in np.flatnonzero(able.any(axis=0)).tolist():
        promising[int(cost[:, job].argmin())] = True
        if not np.isfinite(given.rent_usd[job]):
            promising |= able[:, job]
    rented = np.where(np.isfinite(given.rent_usd), given.rent_usd, 0.0)
    saved = np.where(able, rented - np.where(able, cost, 0.0), 0.0).clip(min=0.0) @ (given.hours @ given.runs_per_hour)
    missing = max(0, _FEWEST - int(promising.sum()))
    promising[np.argsort(np.where(usable & ~promising, -saved, np.inf), kind="stable")[:missing]] = True
    return promising & usable


def _prices(given: Expansion, built: Built) -> tuple[Floats, Floats]:
    """Prices of a solved relaxation in USD: of all of each block's runs [B, J], and of each whole limit [K]."""
    price, limits = np.zeros(given.runs_per_hour.shape), np.zeros(len(given.available))
    for (at, job), row in built.runs.items():
        price[at, job] = -(row.pi or 0.0)
    for k, row in built.limits.items():
        limits[k] = max(0.0, -(row.pi or 0.0))
    return price, limits


def _reduced(given: Expansion, price: Floats, limits: Floats) -> Floats:
    """[L]: the reduced cost of one unit of each source at these prices."""
    rented = np.where(np.isfinite(given.rent_usd), given.rent_usd, 0.0)
    missing = given.fixed_usd.copy()
    for k in range(len(limits)):
        missing += given.uses[k] / (float(given.available[k]) or 1.0) * limits[k]
    demand = given.runs_per_hour
    for row in range(len(missing)):
        jobs = np.flatnonzero(np.isfinite(given.machine_hours[row]) & (given.machine_hours[row] > 0))
        if not len(jobs):
            continue
        gain = given.hours[:, None] * demand[:, jobs] * (rented[jobs] - given.running_usd[row, jobs]) - price[:, jobs]
        with np.errstate(divide="ignore", invalid="ignore"):
            earned = np.where(demand[:, jobs] > 0, gain / (given.machine_hours[row, jobs] * demand[:, jobs]), 0.0)
        missing[row] -= float((earned.max(axis=1).clip(min=0.0) * given.lasts[row]).sum())
    return missing


def _solved(given: Expansion, usable: NDArray[np.bool_], constant: float, time_limit_s: float) -> Expanded | None:
    """The model with the sources `kept`."""
    return _answer(given, formulate(given, usable), constant, time_limit_s)


def _answer(given: Expansion, built: Built, constant: float, time_limit_s: float) -> Expanded | None:
    """The solver's answer; None if jobs that cannot be rented do not fit."""
    stats = built.problem.solve(pulp.HiGHS(msg=False, threads=1, gapRel=RELATIVE_GAP, timeLimit=time_limit_s))
    if stats.status == pulp.LpSolveStatus.Infeasible:
        return None
    if not stats.has_solution or stats.objective is None:
        raise NotProvenError(f"HiGHS ended with status {stats.status.name} on a model of {len(built.y)} variables")
    share = np.zeros((len(given.hours), *given.machine_hours.shape))
    if built.y:
        b, source, job = built.at
        share[b, source, job] = np.clip([variable.varValue or 0.0 for variable in built.y], 0.0, 1.0)
    units = np.zeros(len(given.fixed_usd))
    for unit, variable in built.x.items():
        value = max(0.0, variable.varValue or 0.0)
        units[unit] = round(value) if given.whole[unit] else value
    objective = float(stats.objective) + constant
    bound = objective if stats.best_bound is None else min(objective, float(stats.best_bound) + constant)
    return Expanded(
        units=units,
        share=share,
        objective_usd=objective,
        bound_usd=bound,
        gap=(objective - bound) / max(abs(objective), 1e-9),
        variables=len(built.x) + len(built.y),
        solver=f"HiGHS {highs_version()} through PuLP {pulp.__version__}",
        missing_usd=np.zeros(len(given.fixed_usd)),
    )


def _nothing(given: Expansion, constant: float) -> Expanded:
    """Everything is rented: no source can lower the cost."""
    return Expanded(
        units=np.zeros(len(given.fixed_usd)),
        share=np.zeros((len(given.hours), *given.machine_hours.shape)),
        objective_usd=constant,
        bound_usd=constant,
        gap=0.0,
        variables=0,
        solver="none needed: no machine or term can save what it costs",
        missing_usd=np.maximum(
            0.0, _reduced(given, np.zeros(given.runs_per_hour.shape), np.zeros(len(given.available)))
        ),
    )
