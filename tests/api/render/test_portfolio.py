"""A portfolio's answer in words: what is proven, in dollars of jobs that run, and what the search did."""

from typing import Any

from rich.console import Console

from api.render.portfolio import render_portfolio, sureness


def printed(body: dict[str, Any]) -> str:
    console = Console(width=160)
    with console.capture() as captured:
        console.print(render_portfolio({"portfolio": body, "meta": {"search_seconds": 1.5}}))
    return captured.get()


def body(left_out: int = 0, **proof: object) -> dict[str, Any]:
    certificate: dict[str, Any] = {
        "proven": False,
        "gap": 0.0123,
        "jobs_not_looked_at": 0,
        "configurations": 3,
        "columns": 9,
    }
    certificate |= {"objective_usd": "3144.00", "left_out_usd": "2400.00", "bound_usd": "3100.00"}
    reason = {"name": "big", "reason": "no room", "would_let_it_in": []}
    return {
        "name": "november", "cost_usd": "744.00", "start": "2026-11-21T12:00:00Z", "horizon_hours": 48.0,
        "snapshot_id": "s", "jobs": [], "left_out": [reason] * left_out, "pools": [], "assumptions": [], "warnings": [],
        "certificate": certificate | proof,
        "search": {"iterations_done": {"prices": 60, "dive": 0, "ruin and recreate": 0, "whole model": 1}},
    }  # fmt: skip


def test_the_plan_is_said_to_be_as_good_as_is_proven() -> None:
    assert sureness(body(proven=True)) == "proven the cheapest"
    assert sureness(body()) == "within 1.3 % of the least possible"
    assert sureness(body(jobs_not_looked_at=3)).endswith("3 were not, so nothing is proven of the whole")


def test_where_jobs_are_left_out_the_gap_is_told_in_dollars_since_a_share_would_be_one_of_penalties() -> None:
    assert sureness(body(1)) == "at most $44.00 above the cheapest, what leaving jobs out counts included"


def test_what_jobs_cost_and_what_leaving_others_out_counts_stand_apart_and_the_search_is_told_in_plain_words() -> None:
    shown = " ".join(printed(body(1)).split())
    assert "cost of the jobs that run $744.00" in shown
    assert "counted for jobs left out $2,400.00" in shown
    assert "1.5 s, 60 price updates, 1 exact model of all choices" in shown
    assert "dive" not in shown
    assert "ruin" not in shown
    assert "counted for jobs left out" not in printed(body())
