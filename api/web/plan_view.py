"""Data for the page of a saved answer: the presentation's sections, charts and links."""

from dataclasses import dataclass
from datetime import datetime

from gpuplan.api.presentation.charts.drawing import Figure
from gpuplan.api.presentation.infeasibility import in_the_way, no_way_out, render_infeasible
from gpuplan.api.presentation.optimality_phrases import best_of, deciding_ladder
from gpuplan.api.presentation.phrases import identity, job_name, machines, offer, place_and_kind, rented
from gpuplan.api.presentation.plan import render_plan
from gpuplan.api.presentation.plan_charts import frontier_figure, phases_figure
from gpuplan.api.presentation.text_formatting import duration, number, usd
from gpuplan.api.services.catalogue import PricesSince
from gpuplan.api.services.service_context import days_between
from gpuplan.api.web.answer_card import AnswerCard, answer_card, glance
from gpuplan.api.web.form_words import in_form_words, label_of, sections_in_form_words
from gpuplan.api.web.job_form import stated
from gpuplan.api.web.page_rendering import Context
from gpuplan.api.web.plan_exports import Offered, handovers
from gpuplan.api.web.text_sections import Section, keyed, sections
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.plan import Alternative, Infeasible, InfeasibleAnswer, Plan, PlanAnswer, PlannedAnswer

#: Sortable columns of the alternatives.
SORTS = ("label", "cost", "extra", "time")
#: Sections by position on the page.
_PLACES = (
    "cost",
    "sure",
    "moved",
    "prices",
    "schedule",
    "proof",
    "runs",
    "fallback",
    "ladder",
    "commitments",
    "assumptions",
)
#: Sections that the page renders itself.
_RENDERED_BY_PAGE = ("alternatives", "frontier", "warnings", "conflicts", "ways_out")


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link that changes the job, with its effect."""

    href: str
    words: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternativeRow:
    """A configuration with the labels that it has, and a link that plans on it; none for the plan's own."""

    labels: tuple[str, ...]
    misses: str
    what: str
    where: str
    cost: str
    extra: str
    time: str
    href: str | None
    current: bool


# Views are without slots: templates get their attributes by `vars`.
@dataclass(frozen=True, kw_only=True)
class BodyView:
    """What the pages of both kinds of answers show: warnings, the age of the prices, and whether newer ones exist."""

    base: str
    warnings: list[str]
    observed: datetime | None
    age_hours: float | None
    prices_since: PricesSince


@dataclass(frozen=True, kw_only=True)
class CardView:
    """The card of a plan."""

    plan: Plan
    name: str
    best: str
    card: AnswerCard
    rent: list[str]
    glance: list[tuple[str, str, str]]
    stated: list[tuple[str, str, bool]]


@dataclass(frozen=True, kw_only=True)
class PlanView(BodyView, CardView):
    """The page of a plan."""

    placed: dict[str, list[Section]]
    others: list[Section]
    frontier: Figure | None
    timeline: Figure | None
    deadline: object
    budget: object
    what_if: list[Link]
    alternatives: list[AlternativeRow]
    sort: str | None
    handovers: list[Offered]
    proof: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """A relaxation: requirements with old and new value, the cost and machines of the plan, and a link that plans so."""

    gives: list[tuple[str, str, str]]
    cost: str
    on: str
    href: str


@dataclass(frozen=True, kw_only=True)
class InfeasibleView(BodyView):
    """The page of an infeasible job."""

    plan: Infeasible
    name: str
    lead: list[str]
    conflicts: list[str]
    ways_out: list[WayOut]
    no_way_out: str
    others: list[Section]


def planned_view(answer: PlannedAnswer, *, sort: str | None, now: datetime, prices_since: PricesSince) -> PlanView:
    """The page of a plan. Raises `UnusableInput` at `sort` for an unknown column."""
    plan = answer.plan
    all_sections = sections_in_form_words(sections(render_plan(plan, answer.meta)))
    base = f"/plans/{plan.id}"
    return PlanView(
        placed={key: keyed(all_sections, key) for key in _PLACES},
        others=[
            section for section in all_sections if section.title and section.key not in (*_PLACES, *_RENDERED_BY_PAGE)
        ],
        frontier=frontier_figure(plan, f"{base}/if?point="),
        timeline=phases_figure(plan),
        deadline=plan.job.get("deadline"),
        budget=plan.job.get("budget_usd"),
        what_if=what_if_links(plan, base),
        alternatives=alternatives(plan, base, sort),
        sort=sort,
        handovers=handovers(plan),
        proof=proof_sentence(plan),
        **vars(card_view(plan, base)),
        **vars(body_view(plan, base, now, prices_since)),
    )


def live_view(answer: PlanAnswer, base: str) -> Context:
    """The card while a deadline is dragged; for an infeasible job its first sentences."""
    if isinstance(answer, InfeasibleAnswer):
        lead = sections_in_form_words(sections(render_infeasible(answer.infeasible)))[0]
        return {"lead": [row[0] for block in lead.blocks for row in block.rows], "live": True}
    return {"lead": None, "live": True, **vars(card_view(answer.plan, base))}


def card_view(plan: Plan, base: str) -> CardView:
    """The card of a plan."""
    return CardView(
        plan=plan,
        name=job_name(plan.job),
        best=best_of(plan),
        card=answer_card(plan, base),
        rent=[f"{machines(phase)} in {place_and_kind(phase)}" for phase in plan.phases],
        glance=glance(plan),
        stated=[(label, in_form_words(value), assumed) for label, value, assumed in stated(plan.job)],
    )


def infeasible_view(body: Infeasible, *, now: datetime, prices_since: PricesSince) -> InfeasibleView:
    """The page of an infeasible job."""
    all_sections = sections_in_form_words(sections(render_infeasible(body)))
    base = f"/plans/{body.id}"
    return InfeasibleView(
        plan=body,
        name=job_name(body.job),
        lead=[row[0] for block in all_sections[0].blocks for row in block.rows] if not all_sections[0].title else [],
        conflicts=[in_the_way(names, body.searched_nodes, label_of) for names in body.conflicts],
        ways_out=ways_out(body, base),
        no_way_out=no_way_out(body.searched_nodes),
        others=[section for section in all_sections if section.title and section.key not in _RENDERED_BY_PAGE],
        **vars(body_view(body, base, now, prices_since)),
    )


def body_view(body: Plan | Infeasible, base: str, now: datetime, prices_since: PricesSince) -> BodyView:
    """What the pages of both kinds of answers show."""
    oldest = min((phase.price_observed_at for phase in body.phases), default=None) if isinstance(body, Plan) else None
    return BodyView(
        base=base,
        warnings=[in_form_words(warning) for warning in body.warnings],
        observed=oldest,
        age_hours=None if oldest is None else 24 * days_between(now, oldest),
        prices_since=prices_since,
    )


def what_if_links(plan: Plan, base: str) -> list[Link]:
    """Links that plan with more or less time, or without requirements, with their effect."""
    sensitivity = plan.sensitivity
    moves = (plan.job.get("constraints") or {}).get("max_phases") != 1
    least, most = ("at least ", "at most ") if moves else ("", "")
    links = []
    if cheaper := sensitivity.next_cheaper:
        hours = cheaper.deadline_hours
        detail = f"a deadline of {duration(hours)} saves {least}{usd(cheaper.saves_usd)}"
        links.append(Link(href=f"{base}/if?deadline_hours={hours!r}", words="Cheaper, with more time", detail=detail))
    if faster := sensitivity.next_faster:
        hours = faster.deadline_hours
        detail = f"a deadline of {duration(hours)} costs {most}{usd(faster.costs_usd)} more"
        links.append(Link(href=f"{base}/if?deadline_hours={hours!r}", words="Faster", detail=detail))
    job = plan.job
    if job.get("deadline") is not None or job.get("budget_usd") is not None:
        links.append(Link(href=f"{base}/if?any_speed=true", words="Cheapest at any speed", detail="without a deadline"))
    if not plan.frontier:
        links.append(Link(href=f"{base}/if?frontier=true", words="Cost against time", detail="Pareto frontier"))
    return links


def alternatives(plan: Plan, base: str, sort: str | None) -> list[AlternativeRow]:
    """Alternatives without duplicates, with all labels, in the requested order, with links that plan on them."""
    if sort is not None and sort.removeprefix("-") not in SORTS:
        accepted = ", ".join(f"{name}, -{name}" for name in SORTS)
        raise UnusableInput.at("sort", message=f"is not a column; accepted: {accepted}")
    chosen = identity(plan.phases[0]) if len(plan.phases) == 1 else None
    alike: dict[tuple[object, ...], list[tuple[int, Alternative]]] = {}
    for indexed in enumerate(plan.alternatives):
        alike.setdefault(identity(indexed[1]), []).append(indexed)
    if sort is not None:
        by = sort.removeprefix("-")
        ordered = sorted(alike.values(), key=lambda group: _sort_key(group, by), reverse=sort.startswith("-"))
        return [_alternative(group, base, chosen) for group in ordered]
    return [_alternative(group, base, chosen) for group in alike.values()]


def _labels(group: list[tuple[int, Alternative]]) -> tuple[str, ...]:
    return tuple(alternative.label.replace("_", " ") for _, alternative in group)


def _sort_key(group: list[tuple[int, Alternative]], by: str) -> tuple[str, float]:
    _, first = group[0]
    figures = {"cost": float(first.cost_usd), "extra": float(first.extra_usd), "time": first.hours}
    return (", ".join(_labels(group)), 0.0) if by == "label" else ("", figures[by])


def _alternative(group: list[tuple[int, Alternative]], base: str, chosen: tuple[object, ...] | None) -> AlternativeRow:
    index, first = group[0]
    current = identity(first) == chosen
    return AlternativeRow(
        labels=_labels(group),
        misses=first.misses,
        what=rented(first),
        where=place_and_kind(first),
        cost=usd(first.cost_usd),
        extra="this plan" if current else usd(first.extra_usd),
        time=duration(first.hours),
        href=None if current else f"{base}/if?alternative={index}",
        current=current,
    )


def proof_sentence(plan: Plan) -> str | None:
    """The certificate as a sentence, for plans of least cost."""
    proof = plan.certificate
    if proof.objective.of != "cost":
        return None
    looked = (
        f"{number(proof.offers_considered)} offers give {number(proof.configurations_considered)} configurations"
        " of machine, node count, place and price kind that could run this job."
    )
    # The comparisons beyond single configurations are listed below the sentence.
    those = "no plan of those compared" if proof.over else "none of them"
    if (ladder := deciding_ladder(plan)) is not None:
        least = (
            "the proven least"
            if ladder.gap == 0
            else f"and no ladder with as certain a last choice less than {usd(ladder.bound_usd)}"
        )
        return (
            f"{looked} {those.capitalize()} can cost less than {usd(proof.bound_usd)} if obtained. With refusals, trying"
            f" these machines first costs {usd(ladder.objective_usd)} on average, {least}."
        )
    if proof.gap == 0:
        return f"{looked} An exact search proves that {those} costs less than {usd(proof.objective_usd)}."
    return (
        f"{looked} {those.capitalize()} can cost less than {usd(proof.bound_usd)};"
        f" this plan costs {usd(proof.objective_usd)}."
    )


def ways_out(infeasible: Infeasible, base: str) -> list[WayOut]:
    """The relaxations of an infeasible job."""
    return [
        WayOut(
            gives=[(label_of(name), asked, needed) for name, asked, needed in relaxation.one_by_one()],
            cost=usd(relaxation.cost_usd),
            on=offer(relaxation.plan),
            href=f"{base}/if?way_out={index}",
        )
        for index, relaxation in enumerate(infeasible.relaxations)
    ]
