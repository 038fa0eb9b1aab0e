"""Spot under a net in plans: how near its fast formula is, what plans gain by it, and what it takes in time.

1. Moments (`net.outcomes`) beside the exact run (`net_exact`), and that beside a simulation of the rule, preemption by
   preemption, on random pairs. Pairs whose standby is slower than spot are a group of their own: there moments are a
   bound, and the search prices every such pair that could be best exactly.
2. Varied jobs over the catalogue repeated to 100,000 offers: plans with and without a net, by wait for spot.
3. The lognormal that plans on spot alone state, beside the exact distribution.

`python -m benchmarks.spot_in_plan [JOBS]`
"""

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.jobs import varied_jobs
from benchmarks.plan_speed import repeated
from catalog.columns import Columns, columns_of
from catalog.embedded import embedded_snapshot
from catalog.interruptions import TRACE_WAIT_HOURS
from planner.answer import Planned
from planner.candidates.gather import Candidates, candidates, over
from planner.candidates.market import markets
from planner.choice import cheapest
from planner.cost.preemption import checkpoint_interval
from planner.job import TrainingJob
from planner.nets.fallback import fallback
from planner.nets.offers import cheapest_under_net
from planner.phases.cheapest import limit_micros
from planner.phases.columns import phase_columns
from planner.phases.search import cheapest_in_phases
from planner.plan import plan
from planner.question import Question
from planner.settings import PlannerSettings
from planner.spot.net import NetTerms, Pairs, outcomes
from planner.spot.net_exact import net_run
from planner.workload import work_of
from tests.planner.spot.nets import a_pair, simulate

Floats = NDArray[np.float64]
REPORT_SEED = 20_261_121
PAIRS, SIMULATED, RUNS = 400, 40, 4000
OFFERS = 100_000


def random_pairs(count: int) -> list[tuple[Pairs, NetTerms]]:
    """Pairs with deadlines that bind, from hardly any slack to twice the time of the standby."""
    draw = np.random.default_rng(REPORT_SEED)
    found = []
    for _ in range(count):
        work = 10 ** draw.uniform(0.5, 2.3)
        standby, wait = work * draw.uniform(0.5, 1.3), float(draw.choice([0.0, TRACE_WAIT_HOURS]))
        pair = a_pair(
            work=work,
            sigma=float(draw.choice([0.0, 0.1, 0.2])),
            rate=10 ** draw.uniform(-2, 0.3),
            write=10 ** draw.uniform(-3, -1),
            usd=1.0,
            standby_work=standby,
            standby_usd=draw.uniform(1.5, 5.0) * work / standby,
        )
        deadline = 1.0 + standby * draw.uniform(1.05, 2.0)
        terms = NetTerms(deadline_hours=deadline, confidence=0.5, setup_hours=0.25, restart_hours=0.25, wait_hours=wait)
        found.append((pair, terms))
    return found


def accuracy() -> None:
    """Moments against exact, exact against simulation."""
    errors: dict[str, list[float]] = {"as fast or faster": [], "slower than spot": []}
    fast, exact, deviations, shares = [], [], [], []
    for number, (pair, terms) in enumerate(random_pairs(PAIRS)):
        began = time.perf_counter()
        seen = outcomes(pair, terms)
        fast.append(time.perf_counter() - began)
        if not np.isfinite(seen.usd[0]):
            continue
        began = time.perf_counter()
        run = net_run(pair, terms, float(seen.interval_hours[0]))
        exact.append(time.perf_counter() - began)
        group = "slower than spot" if pair.standby_work_hours[0] > pair.work_hours[0] else "as fast or faster"
        errors[group].append(float(seen.usd[0]) / run.usd - 1.0)
        if number < SIMULATED:
            told = simulate(pair, terms, run.interval_hours, RUNS, seed=number)
            mean = float(np.exp(pair.log_sigma[0] ** 2 / 2))
            usd = told.spot_hours + told.standby_hours * pair.standby_usd_per_hour[0]
            usd = 0.25 + (usd - 0.25) / mean
            deviations.append((run.usd - usd.mean()) / (usd.std() / np.sqrt(RUNS)))
            shares.append(run.usd / usd.mean() - 1.0)
    print(
        f"{'standby':<18} {'pairs':>6} {'median':>9} {'p95 of |error|':>15} {'least':>9} {'most':>9}   cost by moments over exact"
    )
    for group, values in errors.items():
        found = np.array(values)
        print(
            f"{group:<18} {len(found):>6} {np.median(found):>9.3%} {np.quantile(np.abs(found), 0.95):>15.3%} "
            f"{found.min():>9.2%} {found.max():>9.2%}"
        )
    within = np.mean(np.abs(deviations) < 2.6)
    print(
        f"exact over simulation ({len(shares)} pairs x {RUNS:,} runs): mean {np.mean(shares):+.3%}, worst "
        f"{max(shares, key=abs):+.2%}; within 2.6 standard errors in {within:.0%}"
    )
    print(
        f"a pair takes {statistics.median(fast) * 1e3:.2f} ms by moments alone, {statistics.median(exact) * 1e3:.1f} ms exactly; ",
        end="",
    )
    many = random_pairs(1000)
    stacked = Pairs(
        **{name: np.concatenate([getattr(pair, name) for pair, _ in many]) for name in Pairs.__dataclass_fields__}
    )
    began = time.perf_counter()
    outcomes(stacked, many[0][1])
    print(f"{(time.perf_counter() - began) * 1e6 / len(many):.0f} us each where a thousand are priced together")


def asked(job: TrainingJob, columns: Columns, settings: PlannerSettings) -> Candidates:
    assert job.start is not None
    work = work_of(job.workload, job.training)
    market = markets(columns, (), settings, job.start)
    return candidates(Question(job=job, work=work, markets=market, start=job.start, settings=settings))


def timed(job: Callable[[], object]) -> float:
    began = time.perf_counter()
    job()
    return (time.perf_counter() - began) * 1e3


def gains(columns: Columns, jobs: list[TrainingJob], wait: float) -> None:
    """What plans cost on one configuration, with phases, and with a net; and how long the net is looked for."""
    settings = PlannerSettings(spot_wait_hours=wait)
    nets, backs, savings, beyond = [], [], [], []
    for job in jobs:
        found = asked(job, columns, settings)
        chosen = cheapest(found.table, over(found.table, job.deadline_hours, job.budget_usd) == 0)
        limit = limit_micros(found, chosen)
        nets.append(timed(lambda found=found, limit=limit: cheapest_under_net(found, limit)))  # type: ignore[misc]
        if chosen is not None:
            backs.append(timed(lambda found=found, chosen=chosen: fallback(found, chosen, 0)))  # type: ignore[misc]
        netted = cheapest_under_net(found, limit)
        if netted is None or not np.isfinite(limit):
            continue
        savings.append(1.0 - netted.found.run.usd / (limit / 1e6))
        # With waits the search for phases takes long where it finds nothing.
        phased = None if wait else cheapest_in_phases(found, limit)
        without = limit if phased is None else float(phased.found.micros)
        beyond.append(max(0.0, 1.0 - netted.found.run.usd / (without / 1e6)))
    most = max(savings, default=0.0)
    print(
        f"{wait:>6.2f} {len(jobs):>6} {len(savings):>8} {statistics.fmean(savings or [0.0]):>10.1%} {most:>8.1%} "
        f"{statistics.fmean(beyond or [0.0]):>10.1%} {statistics.median(nets):>10.2f} {max(nets):>9.1f} {statistics.median(backs):>12.1f}"
    )


def tight(jobs: list[TrainingJob], columns: Columns) -> list[TrainingJob]:
    """Jobs that may use spot, with a deadline of 1.1 to 2 times what the cheapest on-demand plan takes."""
    found, draw = [], np.random.default_rng(REPORT_SEED)
    for job in jobs:
        steady = replace(job.constraints, price_kinds=("on_demand",))
        outcome = plan(replace(job, deadline_hours=None, constraints=steady), columns, settings=PlannerSettings())
        if isinstance(outcome, Planned) and outcome.hours.confident < 5000:
            free = replace(job.constraints, price_kinds=())
            hours = outcome.hours.confident * draw.uniform(0.3, 1.5)
            found.append(replace(job, deadline_hours=max(hours, 2.0), constraints=free, budget_usd=None))
    return found


def lognormal(columns: Columns, jobs: list[TrainingJob], wait: float) -> None:
    """p95 of the hours that plans on spot state, over the exact one."""
    settings, errors = PlannerSettings(spot_wait_hours=wait), []
    for job in jobs:
        found = asked(job, columns, settings)
        table = found.table
        chosen = cheapest(table, over(table, job.deadline_hours, job.budget_usd) == 0)
        if chosen is None or not table.cluster_rate[chosen] > 0 or table.bill.hours[chosen] > 2000:
            continue
        run = phase_columns(found, table.take(np.array([chosen]))).run
        pair = a_pair(
            work=float(run.work_hours[0]),
            sigma=float(run.log_sigma[0]),
            rate=float(run.cluster_rate[0]),
            write=float(run.checkpoint_hours[0]),
            standby_work=float(run.work_hours[0]),
        )
        interval = max(float(checkpoint_interval(pair.work_hours, pair.checkpoint_hours, pair.rate)[0]), 1 / 120)
        # So much time that the standby is never called.
        far = 50.0 * float(table.bill.hours[chosen]) + 100.0
        terms = NetTerms(deadline_hours=far, confidence=0.9, setup_hours=0.25, restart_hours=0.25, wait_hours=wait)
        errors.append(float(table.bill.hours_p95[chosen]) / net_run(pair, terms, interval).hours_p95 - 1.0)
    each = np.array(errors)
    print(
        f"{wait:>6.2f} {len(each):>6} {np.median(each):>9.2%} {np.quantile(each, 0.05):>9.2%} "
        f"{np.quantile(each, 0.95):>9.2%} {each.min():>9.2%} {each.max():>9.2%}"
    )


def main() -> None:
    """Print the tables."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    accuracy()
    snapshot = embedded_snapshot()
    embedded = columns_of(snapshot.id, snapshot.observed_at, snapshot.instance_types, snapshot.offers)
    columns = repeated(embedded, OFFERS)
    jobs = [job for job in varied_jobs(count, seed=4) if job.deadline_hours is not None]
    close = tight(varied_jobs(count, seed=4), embedded)
    for title, some in (("Varied jobs", jobs), ("The same jobs with deadlines that bind", close)):
        print(
            f"\n{title}, {OFFERS:,} offers; savings over one configuration, and (without waits) over phases too, where a net is chosen"
        )
        print(
            f"{'wait h':>6} {'jobs':>6} {'netted':>8} {'saves':>10} {'most':>8} {'beyond':>10} {'median ms':>10} {'most ms':>9} {'fallback ms':>12}"
        )
        for wait in (0.0, TRACE_WAIT_HOURS):
            gains(columns, some, wait)
    print("\nStated p95 of plans on spot alone (a lognormal) over the exact one")
    print(f"{'wait h':>6} {'plans':>6} {'median':>9} {'p5':>9} {'p95':>9} {'least':>9} {'most':>9}")
    for wait in (0.0, TRACE_WAIT_HOURS):
        lognormal(embedded, varied_jobs(count, seed=4), wait)


if __name__ == "__main__":
    main()
