"""A portfolio's answer in words: what is proven, in dollars of jobs that run, and what the search did."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from rich.console import Console

from gpuplan.api.cli.sections import print_sections
from gpuplan.api.presentation.portfolio import render_portfolio, sureness
from gpuplan.planner.model.portfolio import (
    PortfolioAnswer,
    PortfolioCertificate,
    PortfolioMeta,
    PortfolioPlan,
    PortfolioSettings,
    RejectedJob,
    SearchEffort,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def printed(body: PortfolioPlan) -> str:
    meta = PortfolioMeta(created_at=NOW, milliseconds=1.0, search_seconds=1.5, version="1")
    console = Console(width=160)
    with console.capture() as captured:
        print_sections(render_portfolio(PortfolioAnswer(portfolio=body, meta=meta)), on=console)
    return captured.get()


def body(left_out: int = 0, **proof: Any) -> PortfolioPlan:
    certificate = PortfolioCertificate(
        objective_usd=Decimal("3144.00"),
        left_out_usd=Decimal("2400.00"),
        bound_usd=Decimal("3100.00"),
        gap=0.0123,
        proven=False,
        jobs_not_looked_at=0,
        columns=9,
        configurations=3,
    )
    big = RejectedJob(job=0, name="big", value_usd=None, reason="no room", would_let_it_in=())
    steps = {"prices": 60, "dive": 0, "ruin and recreate": 0, "whole model": 1}
    return PortfolioPlan(
        name="november",
        snapshot_id="s",
        currency="USD",
        start=NOW,
        slot_hours=1.0,
        horizon_hours=48.0,
        settings=PortfolioSettings(cost_basis="full", goodput=0.8),
        cost_usd=Decimal("744.00"),
        budget_usd=None,
        certificate=replace(certificate, **proof),
        search=SearchEffort(time_limit_s=None, iterations=1, seed=0, iterations_done=steps),
        jobs=(),
        left_out=(big,) * left_out,
        pools=(),
        assumptions=(),
        warnings=(),
    )


def test_the_plan_is_said_to_be_as_good_as_is_proven() -> None:
    assert sureness(body(proven=True)) == "proven the cheapest"
    assert sureness(body()) == "within 1.3 % of the least possible"
    assert sureness(body(jobs_not_looked_at=3)).endswith("3 were not, so nothing is proven for all jobs")


def test_where_jobs_are_left_out_the_gap_is_told_in_dollars_since_a_share_would_be_one_of_penalties() -> None:
    assert sureness(body(1)) == "at most $44.00 above the cheapest, including the penalties of jobs left out"


def test_what_jobs_cost_and_what_leaving_others_out_counts_stand_apart_and_the_search_is_told_in_plain_words() -> None:
    shown = " ".join(printed(body(1)).split())
    assert "cost of the jobs that run $744.00" in shown
    assert "penalties of jobs left out $2,400.00" in shown
    assert "1.5 s, 60 price updates, 1 exact model of all choices" in shown
    assert "dive" not in shown
    assert "ruin" not in shown
    assert "penalties of jobs left out" not in printed(body())
