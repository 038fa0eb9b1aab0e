"""Pools as a portfolio sees them: own machines in their free windows, quotas by family and vCPU, held nodes."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import numpy as np
import pytest

from gpuplan.catalog.model.availability_windows import FreeSpan
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.snapshots.offer_columns import columns_of
from gpuplan.planner.candidates.candidate_set import candidates
from gpuplan.planner.candidates.machine_shapes import arranged
from gpuplan.planner.candidates.markets import rented
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.model.job import Constraints, Explicit, TrainingJob
from gpuplan.planner.model.learned import NOTHING
from gpuplan.planner.model.quota import Quota
from gpuplan.planner.model.settings import ExistingCommitment, PlannerSettings
from gpuplan.planner.performance.past_runs import PastRun
from gpuplan.planner.portfolio.instance_assembly import assemble
from gpuplan.planner.portfolio.portfolio_plan import Limits, plan_portfolio
from gpuplan.planner.portfolio.portfolio_request import Portfolio, PortfolioJob
from gpuplan.planner.portfolio.search_progress import Progress, Stage
from gpuplan.planner.portfolio.shared_pools import pools_of
from gpuplan.planner.workload import work_of
from tests.planner.plain_setup import plain_setup_hours
from tests.planner.spot_settings import replaced_at_once

START = datetime(2026, 11, 21, tzinfo=UTC)
SETTINGS = replaced_at_once(least_saving_of_a_move_percent=0.0)


def machine(name: str, provider: str = "aws", vcpus: float | None = 96.0) -> InstanceType:
    return InstanceType(
        provider=provider,
        name=name,
        accelerator="A100-40GB-SXM",
        accelerator_count=Fraction(8),
        vcpus=vcpus,
        intranode_gbs=300.0,
        scaleup_domain=8,
        network_gbps=400.0,
        clusters=True,
        source="drawn",
    )


def offer(instance_type: str, region: str, usd: float, kind: str = "on_demand") -> Offer:
    return Offer(
        provider="aws",
        region=region,
        instance_type=instance_type,
        price_kind=kind,
        usd_micros_per_hour=round(usd * 1e6),
        observed_at=START,
        source="drawn",
    )


COLUMNS = columns_of(
    "two-regions",
    START,
    [machine("p4d.24xlarge"), machine("p4de.24xlarge", vcpus=None)],
    [
        offer("p4d.24xlarge", "us-east-1", 20.0),
        offer("p4d.24xlarge", "eu-west-1", 25.0),
        offer("p4de.24xlarge", "us-east-1", 28.0),
        offer("p4d.24xlarge", "us-east-1", 12.0, "reserved_1y"),
    ],
)


def portfolio(count: int, quotas: tuple[Quota, ...] = (), slots: int = 24, kinds: tuple[str, ...] = ()) -> Portfolio:
    job = TrainingJob(
        name="job",
        workload=Explicit(total_flops=4e18, memory_gib=20.0),
        start=START,
        deadline_hours=3.0,
        constraints=Constraints(price_kinds=kinds),
    )
    return Portfolio(
        name="p",
        start=START,
        slot_hours=1.0,
        slots=slots,
        jobs=tuple(PortfolioJob(job=job) for _ in range(count)),
        quotas=quotas,
    )


def regions(asked: Portfolio, settings: PlannerSettings = SETTINGS, owned: tuple[OwnedMachine, ...] = ()) -> list[str]:
    answer = plan_portfolio(asked, COLUMNS, owned=owned, settings=settings, limits=Limits(iterations=50))
    return sorted(f"{job.region} {job.price_kind}" for job in answer.jobs)


def test_a_dearer_region_is_taken_once_the_quota_of_the_cheaper_one_is_used_up() -> None:
    assert set(regions(portfolio(2))) == {"us-east-1 on_demand"}
    quota = Quota(provider="aws", region="us-east-1", vcpus=96.0)
    regions_used = regions(portfolio(4, (quota,)))
    assert "eu-west-1 on_demand" in regions_used
    assert len(regions_used) == 4


def test_machines_whose_vcpus_nobody_states_are_not_taken_under_a_quota_of_vcpus() -> None:
    quota = Quota(provider="aws", region="us-east-1", vcpus=1e6)
    asked = portfolio(1, (quota,))
    options = assemble(asked, pools_of(asked, COLUMNS, (), SETTINGS), SETTINGS).options
    assert all(option.choice.instance_type.name == "p4d.24xlarge" for option in options)


def test_portfolios_under_many_quotas_leave_what_is_kept_for_single_plans() -> None:
    snapshot_arrays = arranged(COLUMNS)
    for most in range(1, 10):
        pools = pools_of(portfolio(1, (Quota(provider="aws", region="us-east-1", vcpus=most),)), COLUMNS, (), SETTINGS)
        assert all(market.snapshot.shapes is snapshot_arrays.shapes for market in pools.markets)
    assert arranged(COLUMNS) is snapshot_arrays


def test_a_portfolio_that_is_asked_again_finds_its_markets_again() -> None:
    quotas = (Quota(provider="aws", region="us-east-1", vcpus=96.0),)
    first, again = (pools_of(portfolio(jobs, quotas), COLUMNS, (), SETTINGS).markets for jobs in (1, 2))
    assert len(first) == 2
    assert all(one is other for one, other in zip(first, again, strict=True))
    assert pools_of(portfolio(1), COLUMNS, (), SETTINGS).markets == (rented(COLUMNS),)


def test_a_family_is_a_beginning_up_to_a_separator() -> None:
    quota = Quota(provider="aws", family="p4d", accelerators=8.0)
    asked = portfolio(1, (quota,))
    pools = pools_of(asked, COLUMNS, (), SETTINGS)
    matched = {
        market.columns.offer(i).instance_type
        for market, draws in zip(pools.markets, pools.of_type, strict=True)
        if draws
        for i in range(len(market.columns))
    }
    assert matched == {"p4d.24xlarge"}


def test_held_nodes_are_used_first_and_no_more_than_are_held() -> None:
    existing_commitment = ExistingCommitment(
        provider="aws", region="us-east-1", instance_type="p4d.24xlarge", price_kind="reserved_1y", nodes=1
    )
    regions_used = regions(
        portfolio(4, kinds=("on_demand", "reserved_1y")), replaced_at_once(held=(existing_commitment,))
    )
    assert regions_used.count("us-east-1 reserved_1y") >= 1
    assert len(regions_used) == 4
    assert "us-east-1 on_demand" in regions_used


def owned(*windows: FreeSpan) -> OwnedMachine:
    return OwnedMachine(
        instance_type=machine("lab", "local"),
        region="lab",
        machines=2,
        usd_per_hour_full=1.0,
        power_watts=3000.0,
        pue=1.2,
        usd_per_kwh=0.2,
        windows=windows,
    )


def test_owned_machines_count_only_in_slots_that_lie_wholly_in_a_window_and_windows_join_up() -> None:
    hour = timedelta(hours=1)
    first = FreeSpan(start=START + 2.5 * hour, end=START + 5 * hour)
    second = FreeSpan(start=START + 5 * hour, end=START + 7.5 * hour)
    pools = pools_of(portfolio(1), COLUMNS, (owned(first, second),), SETTINGS)
    assert np.flatnonzero(pools.capacity[0]).tolist() == [3, 4, 5, 6]
    assert pools.capacity[0].max() == 2.0


def test_owned_machines_that_are_free_win_and_those_that_are_busy_do_not_hold_a_job_up() -> None:
    later = FreeSpan(start=START + timedelta(hours=10), end=START + timedelta(hours=20))
    assert regions(portfolio(1), owned=(owned(),)) == ["lab owned"]
    assert regions(portfolio(1), owned=(owned(later),)) == ["us-east-1 on_demand"]


@pytest.mark.parametrize("quota", [Quota(provider="aws", accelerators=0.0), Quota(provider="aws", vcpus=0.0)])
def test_a_job_shut_out_by_a_quota_of_zero_is_let_in_by_nothing_it_is_told_of_but_the_quota(quota: Quota) -> None:
    answer = plan_portfolio(portfolio(1, (quota,)), COLUMNS, settings=SETTINGS, limits=Limits(iterations=50))
    left = answer.left_out[0]
    assert quota.name in left.would_let_it_in[0].change
    assert quota.name in left.reason


def test_what_the_user_s_own_runs_took_counts_for_every_job_of_a_portfolio() -> None:
    asked = portfolio(1)
    work = work_of(asked.jobs[0].job.workload, asked.jobs[0].job.training)
    slow = tuple(PastRun(task=work.task, accelerator="A100-40GB-SXM", log_hours=math.log(3.0)) for _ in range(20))
    plain, taught = (
        {option.choice.nodes: option.choice.hours.expected for option in assemble(variant, pools, SETTINGS).options}
        for variant in (asked, replace(asked, past_runs=slow))
        for pools in (pools_of(variant, COLUMNS, (), SETTINGS),)
    )
    both = plain.keys() & taught.keys()
    assert both
    setup = {nodes: plain_setup_hours("aws", "A100-40GB-SXM", "on_demand", nodes, SETTINGS) for nodes in both}
    assert all(taught[nodes] - setup[nodes] > 1.5 * (plain[nodes] - setup[nodes]) for nodes in both)


def unlike(count: int) -> Portfolio:
    """Jobs that share no configurations."""
    asked = portfolio(count)
    jobs = tuple(
        replace(
            job, job=replace(job.job, name=f"job {n}", workload=Explicit(total_flops=(4 + n) * 1e18, memory_gib=20))
        )
        for n, job in enumerate(asked.jobs)
    )
    return replace(asked, jobs=jobs)


def test_jobs_that_the_time_limit_leaves_no_time_for_are_named_and_the_others_planned() -> None:
    seconds = iter(range(1000))
    limits = Limits(time_limit_s=2.5)
    answer = plan_portfolio(unlike(6), COLUMNS, settings=SETTINGS, limits=limits, clock=lambda: next(seconds))
    assert 1 <= len(answer.jobs) < 6
    assert all("ended the search before it was evaluated" in job.reason for job in answer.left_out)
    assert f"{len(answer.left_out)} of 6 jobs were not evaluated" in answer.warnings[0]
    assert not answer.certificate.proven
    assert answer.certificate.jobs_not_looked_at == len(answer.left_out)


def test_who_watches_is_told_from_the_first_job_s_configurations_on_and_time_never_runs_backwards() -> None:
    progresses: list[Progress] = []
    plan_portfolio(unlike(3), COLUMNS, settings=SETTINGS, limits=Limits(iterations=5), report=progresses.append)
    before = [progress for progress in progresses if progress.stage is Stage.CONFIGURATIONS]
    assert [(progress.jobs_seen, progress.jobs_planned, progress.jobs) for progress in before] == [
        (n, 0, 3) for n in (0, 1, 2, 3, 3)
    ]
    assert all(
        (progress.cost_usd, progress.bound_usd, progress.gap) == (math.inf, 0.0, math.inf) for progress in before
    )
    assert progresses[: len(before)] == before
    assert all(math.isfinite(progress.cost_usd) and progress.jobs_seen == 3 for progress in progresses[len(before) :])
    assert [progress.elapsed_s for progress in progresses] == sorted(progress.elapsed_s for progress in progresses)


def test_jobs_alike_count_as_looked_at_once_one_of_them_is() -> None:
    progresses: list[Progress] = []
    plan_portfolio(portfolio(4), COLUMNS, settings=SETTINGS, limits=Limits(iterations=5), report=progresses.append)
    assert [progress.jobs_seen for progress in progresses if progress.stage is Stage.CONFIGURATIONS] == [0, 1, 4]


def test_a_cancel_is_heard_while_configurations_are_worked_out() -> None:
    progresses: list[Progress] = []
    answer = plan_portfolio(
        unlike(6),
        COLUMNS,
        settings=SETTINGS,
        limits=Limits(time_limit_s=60.0),
        report=progresses.append,
        cancelled=lambda: any(progress.jobs_seen == 2 for progress in progresses),
    )
    assert (len(answer.jobs), len(answer.left_out)) == (2, 4)
    assert progresses[-1].jobs_seen == 2


def test_quotas_that_never_bind_part_the_offers_and_change_no_configuration() -> None:
    quotas = (
        Quota(provider="aws", region="us-east-1", accelerators=1e6),
        Quota(provider="aws", family="p4d", accelerators=1e6),
    )
    plain, parted = (
        {
            (option.choice.instance_type.name, option.choice.nodes): (option.choice.cost.expected, option.slots)
            for option in sorted(
                assemble(asked, pools, SETTINGS).options, key=lambda option: option.choice.cost.expected, reverse=True
            )
        }
        for asked in (portfolio(1), portfolio(1, quotas))
        for pools in (pools_of(asked, COLUMNS, (), SETTINGS),)
    )
    assert plain
    assert {key: parted[key] for key in plain} == plain


def test_parts_of_a_snapshot_have_their_machine_shapes_in_common_so_that_each_is_estimated_once() -> None:
    asked = portfolio(1, (Quota(provider="aws", region="us-east-1", accelerators=8.0),))
    work = work_of(asked.jobs[0].job.workload, asked.jobs[0].job.training)
    pools = pools_of(asked, COLUMNS, (), SETTINGS)
    question = Question(
        job=asked.jobs[0].job, work=work, markets=pools.markets, start=START, settings=SETTINGS, learned=NOTHING
    )
    first, second = candidates(question).estimated
    assert first.estimates.step_seconds is second.estimates.step_seconds


def test_a_cancelled_portfolio_answers_with_what_it_has_and_one_with_time_has_no_warning() -> None:
    asked = unlike(3)
    limits = Limits(time_limit_s=60.0)
    ended = plan_portfolio(asked, COLUMNS, settings=SETTINGS, limits=limits, cancelled=lambda: True)
    assert len(ended.jobs) == 1
    assert "2 of 3 jobs were not evaluated" in ended.warnings[0]
    assert plan_portfolio(asked, COLUMNS, settings=SETTINGS, limits=limits).warnings == ()
