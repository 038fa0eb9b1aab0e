"""Sections for a portfolio plan: schedule, jobs left out, optimality and shared resources."""

from gpuplan.api.presentation.optimality_phrases import within
from gpuplan.api.presentation.phrases import place_and_kind, rented
from gpuplan.api.presentation.sections import Block, Heading, Sections, Tone, sections_of
from gpuplan.api.presentation.text_formatting import duration, number, percent, plain, usd, when
from gpuplan.api.presentation.text_tables import bullets, cell, facts, footer, heading, listing, sentences
from gpuplan.planner.model.portfolio import PortfolioAnswer, PortfolioMeta, PortfolioPlan

#: Search steps: the keys of `iterations_done` and their descriptions.
_WORK = {
    "prices": "price updates",
    "dive": "rounds of placing jobs by the lower bound",
    "ruin and recreate": "rearrangements of jobs",
    "rounds of cuts": "rounds of raising the lower bound",
    "likely columns": "exact models of the most promising choices",
    "neighbourhoods": "exact models of groups of jobs",
    "whole model": "exact model of all choices",
}


def render_portfolio(answer: PortfolioAnswer) -> Sections:
    """All sections of a portfolio plan, most important first."""
    body, meta = answer.portfolio, answer.meta
    parts: list[Block | Heading] = [*_headline(body), *_jobs(body), *_left_out(body), *_certificate(body, meta)]
    parts += [*_pools(body), *sentences(body.warnings, body.assumptions)]
    parts.append(footer(f"prices of snapshot {body.snapshot_id}"))
    return sections_of(*parts)


def _headline(body: PortfolioPlan) -> list[Block | Heading]:
    total = len(body.jobs) + len(body.left_out)
    return [
        cell(f"{plain(body.name)}: {len(body.jobs)} of {total} jobs run for {usd(body.cost_usd)}", Tone.GOOD),
        cell(f"This plan is {sureness(body)}, from {when(body.start)} over {duration(body.horizon_hours)}."),
    ]


def sureness(body: PortfolioPlan) -> str:
    """The proven optimality of the plan in words.

    With jobs left out the gap is in dollars: a percentage would include their penalties.
    """
    proof = body.certificate
    if proof.proven:
        words = "proven the cheapest"
    elif body.left_out:
        above = proof.objective_usd - proof.bound_usd
        words = f"at most {usd(above)} above the cheapest, including the penalties of jobs left out"
    else:
        words = within(proof.gap)
    if unseen := proof.jobs_not_looked_at:
        return f"{words} for the jobs that were evaluated; {number(unseen)} were not, so nothing is proven for all jobs"
    return words


def _jobs(body: PortfolioPlan) -> list[Block | Heading]:
    if not body.jobs:
        return []
    rows = [
        (
            plain(job.name),
            when(job.starts_at),
            when(job.finishes_by),
            rented(job),
            place_and_kind(job),
            usd(job.cost_usd),
        )
        for job in sorted(body.jobs, key=lambda job: (job.starts_at, job.job))
    ]
    titles = ("job", "starts", "done by", "machines", "place", "cost")
    return [heading("Schedule", "schedule"), listing(titles, rows, right=(5,))]


def _left_out(body: PortfolioPlan) -> list[Block | Heading]:
    if not body.left_out:
        return []
    reasons = []
    for job in body.left_out:
        ways = [f"{way.change} (then it runs for {usd(way.run_usd)})" for way in job.would_let_it_in[:3]]
        what = f" It would run with {'; or '.join(ways)}." if ways else ""
        reasons.append(f"{plain(job.name)}: {job.reason}.{what}")
    return [heading("Left out", "left_out"), *bullets(reasons, Tone.WARNING)]


def _certificate(body: PortfolioPlan, meta: PortfolioMeta) -> list[Block | Heading]:
    proof, done = body.certificate, body.search.iterations_done
    work = [f"{number(done[name])} {what}" for name, what in _WORK.items() if done.get(name)]
    rows = [("cost of the jobs that run", usd(body.cost_usd))]
    if body.left_out:
        rows += [
            ("penalties of jobs left out", usd(proof.left_out_usd)),
            ("objective (sum of both)", usd(proof.objective_usd)),
        ]
    rows += [
        ("lower bound", f"{usd(proof.bound_usd)}, gap {percent(proof.gap, 2)}"),
        ("chosen from", f"{number(proof.configurations)} configurations, {number(proof.columns)} starts"),
        ("search", ", ".join([f"{meta.search_seconds:.1f} s", *work])),
    ]
    return [heading("Optimality"), facts(rows)]


def _pools(body: PortfolioPlan) -> list[Block | Heading]:
    if not body.pools:
        return []
    rows = [
        (
            plain(row.pool),
            f"{number(row.most_used)} of {number(row.most_available)} {row.units}",
            "closed" if row.utilisation is None else percent(row.utilisation),
            usd(f"{row.worth_usd_per_unit_hour:.4f}"),
        )
        for row in body.pools
    ]
    titles = ("pool", "most used", "busy", "value of one more, per hour")
    return [heading("Machines, quotas and commitments"), listing(titles, rows, right=(2, 3))]
