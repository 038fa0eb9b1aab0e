"""The card at the top of a plan's page: what to rent, the next choices, and cards of alternatives that differ in kind."""

from dataclasses import dataclass

from gpuplan.api.presentation.phrases import (
    configuration_beside,
    deadline_at,
    job_name,
    kind,
    machines,
    mean_leaves_outages_out,
    place,
    price,
    price_estimate,
)
from gpuplan.api.presentation.sections import Notes
from gpuplan.api.presentation.short_plan import (
    MOST_ALTERNATIVES,
    NAME_LENGTH,
    different_alternatives,
    hours_more,
    obtained_note,
    short_plan,
    shown_choices,
    usd_more,
)
from gpuplan.api.presentation.text_formatting import chance, duration, number, percent, usd, when
from gpuplan.api.web.form_words import in_form_words
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.planner.model.plan import Plan
from gpuplan.planner.model.shared import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """An alternative: its kind, machines and place, the differences to the plan, and the link that plans on it."""

    label: str
    what: str
    extra: str
    hours: str
    href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A heading with sentences, the first `steps` of them in order; without sentences it is not shown."""

    title: str
    sentences: tuple[str, ...]
    steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCard:
    """The parts of the card. `rent` has machines, place with price, and the estimate of the price; one row per phase."""

    name: str
    offers: str
    rent: tuple[tuple[str, str, str], ...]
    after: tuple[Notice, ...]
    before: Notice
    cards: tuple[Card, ...]


def answer_card(plan: Plan, base: str) -> AnswerCard:
    """The card of a plan."""
    notices = {
        section.key: Notice(
            title=section.title,
            sentences=tuple(
                in_form_words(sentence)
                for part in section.parts
                if isinstance(part, Notes)
                for sentence in part.sentences
            ),
            steps=len(shown_choices(plan)) if section.key == "next" else 0,
        )
        for section in short_plan(plan)
    }
    nothing = Notice(title="", sentences=())
    return AnswerCard(
        name=job_name(plan.job, limit=NAME_LENGTH),
        offers=number(plan.certificate.offers_considered),
        rent=tuple(_rent(phase, len(plan.phases)) for phase in plan.phases),
        after=tuple(notices[key] for key in ("next", "behind") if key in notices),
        before=notices.get("first", nothing),
        cards=_cards(plan, base),
    )


def _rent(phase: Phase, phases: int) -> tuple[str, str, str]:
    owned = price_kinds()[phase.price_kind].owned
    paid = "your own" if owned else f"{kind(phase)} at {price(phase)}"
    if phase.is_standby:
        paid += f", standby for {chance(phase.probability)} of runs"
    elif phases > 1:
        paid += f", {percent(phase.share)} of the work in {duration(phase.hours)}"
    return machines(phase), f"{place(phase)}, {paid}", price_estimate(phase) or ""


def _cards(plan: Plan, base: str) -> tuple[Card, ...]:
    """Three alternatives within the requirements, or two and the cheapest for code of another framework."""
    other = plan.other_framework
    most = MOST_ALTERNATIVES if other is None else MOST_ALTERNATIVES - 1
    cards = [
        Card(
            label=label,
            what=configuration_beside(plan, alternative),
            extra=usd_more(alternative.extra_usd),
            hours=hours_more(alternative.hours - plan.hours.expected),
            href=f"{base}/if?alternative={plan.alternatives.index(alternative)}",
        )
        for label, alternative in different_alternatives(plan, most)
    ]
    if other is not None:
        cards.append(
            Card(
                label=f"for {other.framework} code",
                what=configuration_beside(plan, other),
                extra=usd_more(other.extra_usd),
                hours=hours_more(other.hours - plan.hours.expected),
                href=f"{base}/if?framework=true",
            )
        )
    return tuple(cards)


def glance(plan: Plan) -> list[tuple[str, str, str]]:
    """Key figures of the answer: label, figure and note."""
    cost, hours, probability, ladder = plan.cost_usd, plan.hours, plan.deadline_probability, plan.capacity_ladder
    outages = "; only this counts rare outages of days" if mean_leaves_outages_out(plan) else ""
    rows = [
        ("Expected cost", usd(cost.expected), f"95 % of runs: {usd(cost.p95)} at most"),
        ("Expected time", duration(hours.expected), f"95 % of runs: {duration(hours.p95)} at most{outages}"),
        ("Done", when(plan.finishes_at)[:10], when(plan.finishes_at)[11:]),
    ]
    if probability is not None:
        due = deadline_at(plan)
        rows.append(("Meets the deadline", chance(probability), f"by {when(due)}" if due else ""))
    if ladder and ladder.chance < 1.0:
        rows.append(
            (
                "Obtained at once",
                percent(ladder.chance),
                obtained_note(plan, ladder),
            )
        )
    if plan.carbon_kg is not None:
        rows.append(("Carbon", f"{number(plan.carbon_kg)} kg", "CO2e"))
    return rows
