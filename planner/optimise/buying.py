"""The cheapest machines to own and to commit to under a load that comes and goes: the model of `buying_model`, solved.

Two exact reductions come first (`useful`): a source that saves less than F_l even if it works in every hour on the job
that it saves most for is never worth having, nor is one that another of its kind beats in F, every t, v and a, for as
long. Then the linear relaxation is solved by column generation, and a source is left out whose reduced cost is more than
what lies between its bound and a known answer.
"""

import time
from dataclasses import dataclass, replace

import numpy as np
import pulp
from numpy.typing import NDArray

from planner.optimise.buying_model import Built, Expansion, formulate, worth
from planner.optimise.single import NotProvenError, highs_version

Floats = NDArray[np.float64]

#: USD of the whole horizon within which two plans are the same.
RELATIVE_GAP = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Expanded:
    """`units` [L]; `share` [B, L, J], the part of each block's runs that each source does; cost, bound and proof.

    `missing_usd` [L]: an answer with one unit of a source that is in none so far costs at least so much more than the
    bound of the linear relaxation (0 where nothing is known).
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
    """[L]: sources that may be worth having; without the others the least cost is the same.

    A machine-hour of l saves at most max_j (c_j - v_lj) / t_lj. Where some job cannot be rented nothing bounds it.
    """
    wanted = (given.runs_per_hour > 0).any(axis=0)
    able = np.isfinite(given.machine_hours) & wanted[None, :]
    with np.errstate(invalid="ignore"):
        saved = np.where(able, (given.rent_usd[None, :] - given.running_usd) / given.machine_hours, 0.0)
    most = saved.max(axis=1, initial=0.0) * (given.lasts @ given.hours)
    kept = (most > given.fixed_usd) & (given.most_units > 0)
    for each in np.flatnonzero(kept).tolist():
        kept[each] = False
        kept[each] = not _beaten(given, each, np.flatnonzero(kept))
    return kept


def _beaten(given: Expansion, source: int, rivals: NDArray[np.int64]) -> bool:
    """Whether one of the rivals, of which any number can be had, is no worse than `source` in everything.

    A rival that comes whole alone does not beat what a fraction can be had of.
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
    gap: float = RELATIVE_GAP,
    likely: NDArray[np.bool_] | None = None,
    most_shares: int | None = None,
    time_limit_s: float = 60.0,
) -> Expanded | None:
    """The cheapest units of every source, proven to within `gap` or as far as the time limit allows.

    With `most_shares` a proof that would need more shares of runs than that is not made: the answer is then the best of
    the sources that come closest to paying, and its gap is what the linear relaxation proves.
    `reduce` may be switched off to check the reductions; `likely` [L] are sources to begin with, such as those of an
    answer to nearly the same question. None if jobs that cannot be rented do not fit into the limits. Raises
    `NotProvenError` if HiGHS ends otherwise without a solution.
    """
    began = time.monotonic()
    must = ~np.isfinite(given.rent_usd)
    constant = float(given.hours @ (given.runs_per_hour @ np.where(must, 0.0, given.rent_usd)))
    forced = given.least_units > 0
    kept = (useful(given) if reduce else given.most_units > 0) | forced
    if not worth(given, kept).any() and not forced.any():
        return _nothing(given, constant) if not (must & (given.runs_per_hour > 0).any(axis=0)).any() else None
    relaxed = _priced(given, kept, likely, time_limit_s) if reduce else None
    if relaxed is None:
        return _solved(given, kept, constant, gap, time_limit_s)
    for each, variable in relaxed.built.x.items():
        variable.cat = "Integer" if given.whole[each] else "Continuous"
    found = _answer(given, relaxed.built, constant, gap, _left(time_limit_s, began))
    if found is None:
        return _solved(given, kept, constant, gap, _left(time_limit_s, began))
    # One unit of a source costs at least the bound and what it is priced at; where that is more than an answer
    # already known, no cheaper one has it.
    room = found.objective_usd - constant - relaxed.bound_usd
    perhaps = kept & (relaxed.reduced_usd <= room + _PRICE_TOLERANCE * max(1.0, abs(found.objective_usd)))
    wider = perhaps | relaxed.active
    missing = np.maximum(0.0, relaxed.reduced_usd)
    if not (perhaps & ~relaxed.active).any():
        return replace(found, missing_usd=missing)
    if most_shares is None or _shares(given, wider) <= most_shares:
        proven = _solved(given, wider, constant, gap, _left(time_limit_s, began))
        return None if proven is None else replace(proven, missing_usd=missing)
    bound = min(found.objective_usd, relaxed.bound_usd + constant)
    apart = (found.objective_usd - bound) / max(abs(found.objective_usd), 1e-9)
    return replace(found, bound_usd=bound, gap=apart, missing_usd=missing)


def _shares(given: Expansion, kept: NDArray[np.bool_]) -> int:
    """How many shares of runs the model with these sources has."""
    per_job = given.lasts.T.astype(np.float64) @ worth(given, kept).astype(np.float64)
    return round(float((per_job * (given.runs_per_hour > 0)).sum()))


def _left(time_limit_s: float, began: float) -> float:
    return max(1.0, time_limit_s - (time.monotonic() - began))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Relaxed:
    """The linear relaxation over all sources, solved with few of them: `active` [L] those in it, its `bound_usd` less
    the constant, by how much one unit of each source misses paying (`reduced_usd` [L]), and the model itself.
    """

    active: NDArray[np.bool_]
    bound_usd: float
    reduced_usd: Floats
    built: Built


#: USD, relative to the objective, within which a price is zero.
_PRICE_TOLERANCE = 1e-9
#: Sources that come in at once where more than that would pay.
_MOST_AT_ONCE = 12
_MOST_ROUNDS = 60
#: Sources to begin with at least: they are those of the first whole answer too.
_FEWEST = 4


def _priced(
    given: Expansion, kept: NDArray[np.bool_], likely: NDArray[np.bool_] | None, time_limit_s: float
) -> _Relaxed | None:
    """Column generation: the relaxation with few sources gives every block and job a price, and at these prices
    arrays say which other source would pay. None where the few are not enough to serve what must be owned.

    At prices mu_bj for a whole share of a block's runs, a unit of l earns in block b at most
    max_j (w_b d_bj (c_j - v_lj) - mu_bj) / (t_lj d_bj), and misses paying by F_l + sum_k lambda_k a_kl less the sum.
    """
    active = kept & (_promising(given, kept) | ~given.whole | np.isfinite(given.most_units) | (given.least_units > 0))
    if likely is not None:
        active |= kept & likely
    for _ in range(_MOST_ROUNDS):
        built = formulate(given, active)
        for variable in built.x.values():
            variable.cat = "Continuous"
        stats = built.problem.solve(pulp.HiGHS(msg=False, threads=1, timeLimit=time_limit_s))
        if stats.status != pulp.LpSolveStatus.Optimal or stats.objective is None:
            return None
        reduced = _reduced(given, *_prices(given, built))
        scale = max(1.0, abs(float(stats.objective)))
        pays = kept & ~active & (reduced < -_PRICE_TOLERANCE * scale)
        if not pays.any():
            return _Relaxed(active=active, bound_usd=float(stats.objective), reduced_usd=reduced, built=built)
        best = np.argsort(np.where(pays, reduced, np.inf), kind="stable")[:_MOST_AT_ONCE]
        active[best[pays[best]]] = True
    return None


def _promising(given: Expansion, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """[L]: the cheapest source of each job when busy all the time, all that can do a job which cannot be rented, and
    those that would then save most.
    """
    found = np.zeros(len(kept), np.bool_)
    lasting = given.lasts @ given.hours
    per_hour = np.divide(given.fixed_usd, lasting, out=np.zeros(len(kept)), where=lasting > 0)
    able = np.isfinite(given.machine_hours) & kept[:, None]
    cost = np.where(able, np.where(able, given.machine_hours, 0.0) * per_hour[:, None] + given.running_usd, np.inf)
    for job in np.flatnonzero(able.any(axis=0)).tolist():
        found[int(cost[:, job].argmin())] = True
        if not np.isfinite(given.rent_usd[job]):
            found |= able[:, job]
    rented = np.where(np.isfinite(given.rent_usd), given.rent_usd, 0.0)
    saved = np.where(able, rented - np.where(able, cost, 0.0), 0.0).clip(min=0.0) @ (given.hours @ given.runs_per_hour)
    more = max(0, _FEWEST - int(found.sum()))
    found[np.argsort(np.where(kept & ~found, -saved, np.inf), kind="stable")[:more]] = True
    return found & kept


def _prices(given: Expansion, built: Built) -> tuple[Floats, Floats]:
    """Of a solved relaxation: USD of a whole share of each block's runs [B, J], and of all there is of each limit [K]."""
    price, limits = np.zeros(given.runs_per_hour.shape), np.zeros(len(given.available))
    for (at, job), row in built.runs.items():
        price[at, job] = -(row.pi or 0.0)
    for k, row in built.limits.items():
        limits[k] = max(0.0, -(row.pi or 0.0))
    return price, limits


def _reduced(given: Expansion, price: Floats, limits: Floats) -> Floats:
    """[L]: by how much a unit of each source misses paying at these prices."""
    rented = np.where(np.isfinite(given.rent_usd), given.rent_usd, 0.0)
    missing = given.fixed_usd.copy()
    for k in range(len(limits)):
        missing += given.uses[k] / (float(given.available[k]) or 1.0) * limits[k]
    demand = given.runs_per_hour
    for each in range(len(missing)):
        jobs = np.flatnonzero(np.isfinite(given.machine_hours[each]) & (given.machine_hours[each] > 0))
        if not len(jobs):
            continue
        gain = given.hours[:, None] * demand[:, jobs] * (rented[jobs] - given.running_usd[each, jobs]) - price[:, jobs]
        with np.errstate(divide="ignore", invalid="ignore"):
            earned = np.where(demand[:, jobs] > 0, gain / (given.machine_hours[each, jobs] * demand[:, jobs]), 0.0)
        missing[each] -= float((earned.max(axis=1).clip(min=0.0) * given.lasts[each]).sum())
    return missing


def _solved(
    given: Expansion, kept: NDArray[np.bool_], constant: float, gap: float, time_limit_s: float
) -> Expanded | None:
    """The model with the sources `kept`."""
    return _answer(given, formulate(given, kept), constant, gap, time_limit_s)


def _answer(given: Expansion, built: Built, constant: float, gap: float, time_limit_s: float) -> Expanded | None:
    """What the solver finds; None where jobs that cannot be rented do not fit."""
    stats = built.problem.solve(pulp.HiGHS(msg=False, threads=1, gapRel=gap, timeLimit=time_limit_s))
    if stats.status == pulp.LpSolveStatus.Infeasible:
        return None
    if not stats.has_solution or stats.objective is None:
        raise NotProvenError(f"HiGHS ended with status {stats.status.name} on a model of {len(built.y)} variables")
    share = np.zeros((len(given.hours), *given.machine_hours.shape))
    if built.y:
        b, source, job = built.at
        share[b, source, job] = np.clip([variable.varValue or 0.0 for variable in built.y], 0.0, 1.0)
    units = np.zeros(len(given.fixed_usd))
    for each, variable in built.x.items():
        value = max(0.0, variable.varValue or 0.0)
        units[each] = round(value) if given.whole[each] else value
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
    """Everything rented: no source is worth a variable."""
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
