"""How likely machines are obtained, as a table, and what was not learned."""

from collections.abc import Sequence

from gpuplan.api.presentation.sections import Block, Heading, Sections, Tone, sections_of
from gpuplan.api.presentation.text_formatting import located, number, usd, when
from gpuplan.api.presentation.text_tables import bullets, footer, heading, listing
from gpuplan.api.schemas.watch_answers import NoCapacityAnswer, ReportedMachines, WantedCapacity
from gpuplan.planner.model.live_capacity import Capacity, CapacityAnswers, NotLearned

_TITLES = ("provider", "place", "machines", "kind", "published", "chance", "wait h", "losses/h", "asked", "notes")
MODELLED = "chance is gpuplan's reading of the published value; losses/h is per machine (docs/providers.md)"


def render_capacity(answer: CapacityAnswers) -> Sections:
    """The answers, most likely first, then the reasons for what was not learned."""
    rows = [
        (
            row.provider,
            located(row.region, row.zone),
            f"{row.nodes} x {row.instance_type}",
            row.price_kind,
            row.published,
            f"{row.probability:.0%}",
            "" if row.wait_hours is None else number(row.wait_hours),
            "" if row.interruptions_per_hour is None else f"{row.interruptions_per_hour:.4f}",
            when(row.asked_at),
            _notes(row),
        )
        for row in answer.answers
    ]
    blocks: list[Block | Heading] = []
    if rows:
        blocks += [listing(_TITLES, rows, right=(5, 6, 7)), footer(MODELLED)]
    if answer.not_learned:
        blocks += [heading("Not learned", "not-learned"), *bullets(_missing(answer.not_learned), Tone.WARNING)]
    return sections_of(*blocks)


def _notes(row: Capacity) -> str:
    others = [name for name in row.scored_types if name != row.instance_type]
    parts = [f"scored together with {', '.join(others)}"] if others else []
    parts += [f"lost: {row.interruptions_published}"] if row.interruptions_published else []
    parts += [f"runs {number(row.uptime_hours)} h"] if row.uptime_hours is not None else []
    parts += ["no quota for it"] if row.quota_available is False else []
    return "; ".join(parts)


def _missing(rows: Sequence[NotLearned]) -> list[str]:
    """A line for each reason, with what it holds for: `crusoe, nebius: publishes no such figure`."""
    of_reason: dict[str, list[str]] = {}
    for row in rows:
        place = located(row.region, "") if row.region else ""
        what = " ".join(part for part in (row.provider, place, row.instance_type) if part)
        part = "" if row.what in ("capacity", "price_kind") else f" ({row.what})"
        of_reason.setdefault(row.reason.removeprefix(f"{row.provider}: "), []).append(what + part)
    return [f"{', '.join(whats)}: {reason}" for reason, whats in of_reason.items()]


def in_one_line(reported: ReportedMachines, wanted: WantedCapacity) -> str:
    """What the clouds said, beside what is wanted."""
    wish = condition(wanted)
    if isinstance(reported, NoCapacityAnswer):
        return f"no answer about a place {wish.partition(', ')[2]}"
    cost = reported.usd_per_node_hour
    price = "without a price in the snapshot" if cost is None else f"{usd(cost)} per node-hour"
    booked = f", from {when(reported.starts_at)} on" if reported.starts_at else ""
    answered = f"{reported.source}: {reported.published}, asked {when(reported.asked_at)}"
    return f"{reported.choice}{booked}, chance {reported.chance:.2f} ({answered}), {price}; wanted {wish}"


def condition(wanted: WantedCapacity) -> str:
    """`a chance of 0.7 or more, at most $60.00 per node-hour`."""
    under = wanted.under_usd_per_node_hour
    price = "at any price" if under is None else f"at most {usd(under)} per node-hour"
    return f"a chance of {number(wanted.least_chance)} or more, {price}"
