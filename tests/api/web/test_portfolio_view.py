"""A portfolio's plan as the page shows it: bars below their machines, dates as they were said, words that claim no more."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from gpuplan.api.web.portfolio_view import MOST_BARS, Dates, in_order, job_lines, lanes
from gpuplan.planner.model.portfolio import ScheduledJob

START = datetime(2026, 11, 22, 8, tzinfo=UTC)


def job(number: int, **changes: Any) -> ScheduledJob:
    usual = ScheduledJob(
        job=number,
        name=f"job {number}",
        starts_at=START,
        finishes_at=START + timedelta(hours=2),
        finishes_by=START + timedelta(hours=3.5),
        confidence=0.9,
        slots=4,
        provider="aws",
        region="us-east-1",
        zone="use1-az1",
        instance_type="p4d.24xlarge",
        accelerator="A100-40GB-SXM",
        accelerators_per_node=8,
        nodes=2,
        slice_hosts=None,
        price_kind="spot",
        usd_per_node_hour=Decimal("3.125"),
        cost_usd=Decimal("12.5"),
        cost_p95_usd=Decimal("20.00"),
        hours=2.0,
        hours_confident=3.5,
        pools=(),
    )
    return replace(usual, **changes)


def test_jobs_on_one_kind_of_machine_in_one_place_share_a_lane() -> None:
    jobs = in_order([job(0), job(1, provider="gcp", zone=""), job(2, starts_at=START - timedelta(hours=1)), job(3)])
    drawn = lanes(jobs, {})
    assert [(lane.name, lane.style, [bar.href for bar in lane.bars]) for lane in drawn] == [
        ("aws us-east-1 use1-az1, spot: p4d.24xlarge", 0, ["#job-2", "#job-0", "#job-3"]),
        ("gcp us-east-1, spot: p4d.24xlarge", 1, ["#job-1"]),
    ]


def test_a_bar_says_everything_in_words() -> None:
    dates = {0: Dates(release=START, deadline=START + timedelta(hours=5))}
    [bar] = lanes([job(0)], dates)[0].bars
    assert bar.title == (
        "job 0: 2 x p4d.24xlarge, aws us-east-1 use1-az1, spot, $12.50, from 2026-11-22 08:00 UTC to"
        " 2026-11-22 10:00 UTC expected, 2026-11-22 11:30 UTC at 90 % confidence, not before 2026-11-22 08:00 UTC,"
        " due 2026-11-22 13:00 UTC"
    )
    assert (bar.reserved_until - bar.ends, bar.deadline) == (timedelta(minutes=90), START + timedelta(hours=5))


def test_a_line_says_how_much_time_is_left_before_the_deadline() -> None:
    tight, late, free = job_lines(
        [job(0), job(1), job(2)],
        {
            0: Dates(release=None, deadline=START + timedelta(hours=5)),
            1: Dates(release=None, deadline=START + timedelta(hours=3.5)),
        },
    )
    assert (tight.deadline, tight.spare, tight.cost) == ("2026-11-22 13:00", "1.5 h", "$12.50")
    assert late.spare == "0 s"
    assert (free.deadline, free.spare) == ("none", "")


def test_a_long_name_is_cut_in_the_drawing_and_one_from_right_to_left_is_kept_apart() -> None:
    [bar] = lanes([job(0, name="x" * 190)], {})[0].bars
    assert len(bar.name) < 80
    assert "x" * 190 in bar.title
    [bar] = lanes([job(0, name="\u0645\u0631\u062d\u0628\u0627\u202e")], {})[0].bars
    assert bar.name == "\u2068\u0645\u0631\u062d\u0628\u0627\ufffd\u2069 · 2 x p4d.24xlarge"


def test_no_more_bars_are_drawn_than_can_be_looked_at() -> None:
    jobs = [job(number) for number in range(MOST_BARS + 50)]
    assert sum(len(lane.bars) for lane in lanes(jobs, {})) == MOST_BARS
    assert len(job_lines(jobs, {})) == MOST_BARS + 50
