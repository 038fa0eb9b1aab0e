"""A portfolio as a stranger should read it: when each job runs and on what, who is left out, how sure that is."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from rich.console import Group, RenderableType

from api.render.machines import place, rented
from api.render.plan import sentences
from api.render.proven import within
from api.render.tables import bullets, cell, facts, footer, heading, listing
from api.render.text import duration, number, percent, plain, usd, when

Part = Mapping[str, Any]

#: What a search counts, as `iterations_done` names it and as a reader should meet it.
_WORK = {
    "prices": "price updates",
    "dive": "rounds of placing jobs by the lower bound",
    "ruin and recreate": "rearrangements of jobs",
    "rounds of cuts": "rounds of raising the lower bound",
    "likely columns": "exact models of the most promising choices",
    "neighbourhoods": "exact models of groups of jobs",
    "whole model": "exact model of all choices",
}


def render_portfolio(answer: Part) -> Group:
    """Every section of a portfolio's plan, the most important first."""
    body, meta = answer["portfolio"], answer["meta"]
    parts: list[RenderableType] = [*_headline(body), *_jobs(body), *_left_out(body), *_certificate(body, meta)]
    parts += [*_pools(body), *sentences(body)]
    parts.append(footer(f"prices of snapshot {body['snapshot_id']}"))
    return Group(*parts)


def _headline(body: Part) -> list[RenderableType]:
    total = len(body["jobs"]) + len(body["left_out"])
    return [
        cell(
            f"{plain(body['name'])}: {len(body['jobs'])} of {total} jobs run for {usd(body['cost_usd'])}", "bold green"
        ),
        cell(f"This plan is {sureness(body)}, from {when(body['start'])} over {duration(body['horizon_hours'])}."),
    ]


def sureness(body: Part) -> str:
    """How good the plan is, in words that claim no more than is proven.

    Where jobs are left out the distance is told in dollars: a share would be one of the penalties too.
    """
    proof = body["certificate"]
    if proof["proven"]:
        words = "proven the cheapest"
    elif body["left_out"]:
        above = Decimal(proof["objective_usd"]) - Decimal(proof["bound_usd"])
        words = f"at most {usd(above)} above the cheapest, what leaving jobs out counts included"
    else:
        words = within(float(proof["gap"]))
    if unseen := proof.get("jobs_not_looked_at"):
        return f"{words} for the jobs that were looked at; {number(unseen)} were not, so nothing is proven of the whole"
    return words


def _jobs(body: Part) -> list[RenderableType]:
    if not body["jobs"]:
        return []
    rows = [
        (
            plain(each["name"]),
            when(each["starts_at"]),
            when(each["finishes_by"]),
            rented(each),
            place(each),
            usd(each["cost_usd"]),
        )
        for each in sorted(body["jobs"], key=lambda each: (each["starts_at"], each["job"]))
    ]
    titles = ("job", "starts", "done by", "machines", "place", "cost")
    return [heading("Who runs when, and on what"), listing(titles, rows, right=(5,))]


def _left_out(body: Part) -> list[RenderableType]:
    if not body["left_out"]:
        return []
    said = []
    for each in body["left_out"]:
        ways = [f"{way['change']} (then it runs for {usd(way['run_usd'])})" for way in each["would_let_it_in"][:3]]
        what = f" It would run with {'; or '.join(ways)}." if ways else ""
        said.append(f"{plain(each['name'])}: {each['reason']}.{what}")
    return [heading("Left out"), *bullets(said, "yellow")]


def _certificate(body: Part, meta: Part) -> list[RenderableType]:
    proof, done = body["certificate"], body["search"]["iterations_done"]
    work = [f"{number(done[name])} {what}" for name, what in _WORK.items() if done.get(name)]
    rows = [("cost of the jobs that run", usd(body["cost_usd"]))]
    if body["left_out"]:
        rows += [
            ("counted for jobs left out", usd(proof["left_out_usd"])),
            ("objective, both together", usd(proof["objective_usd"])),
        ]
    rows += [
        ("lower bound", f"{usd(proof['bound_usd'])}, gap {percent(proof['gap'], 2)}"),
        ("chosen from", f"{number(proof['configurations'])} configurations, {number(proof['columns'])} starts"),
        ("search", ", ".join([f"{meta['search_seconds']:.1f} s", *work])),
    ]
    return [heading("How good that is"), facts(rows)]


def _pools(body: Part) -> list[RenderableType]:
    if not body["pools"]:
        return []
    rows = [
        (
            plain(each["pool"]),
            f"{number(each['most_used'])} of {number(each['most_available'])} {each['units']}",
            "closed" if each["utilisation"] is None else percent(each["utilisation"]),
            usd(f"{each['worth_usd_per_unit_hour']:.4f}"),
        )
        for each in body["pools"]
    ]
    titles = ("pool", "most used", "busy", "worth of one more, per hour")
    return [heading("Machines, quotas and commitments"), listing(titles, rows, right=(2, 3))]
