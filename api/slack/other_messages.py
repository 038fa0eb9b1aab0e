"""Messages for prices, histories, explanations, watches, help and errors."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpuplan.api.presentation.explanation import compared_costs
from gpuplan.api.presentation.phrases import job_name, machines, place_and_kind
from gpuplan.api.presentation.text_formatting import duration, located, number, plain, usd, usd_per_hour, when
from gpuplan.api.presentation.watches import last_reported, threshold
from gpuplan.api.schemas.catalogue import OfferRow
from gpuplan.api.schemas.prices import PriceRow
from gpuplan.api.schemas.watch_answers import Watch
from gpuplan.api.slack.block_kit import Message, bullets, header, message, small, table, words
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.explanation import Extra, ShortPlan, WhyAnswer

Part = Mapping[str, Any]

MOST_PRICES = 15
MOST_FAULTS = 8


def refusal(error: UnusableInput) -> Message:
    """One line per fault, with the word and the accepted values."""
    lines = [plain(str(fault), limit=600) for fault in error.faults[:MOST_FAULTS]]
    if len(error.faults) > MOST_FAULTS:
        lines.append(f"and {len(error.faults) - MOST_FAULTS} more")
    return message(lines[0], [words(line) for line in lines])


def note(text: str) -> Message:
    """One sentence."""
    return message(text)


def price_message(name: str, rows: Sequence[OfferRow], total: int, age: str) -> Message:
    """Prices of an accelerator: the cheapest per provider and price kind, by accelerator-hour."""
    shown = [
        (
            row.provider,
            located(row.region, row.zone),
            f"{row.instance_type} ({number(row.accelerator_count)} x {row.accelerator})",
            row.price_kind.replace("_", " "),
            usd_per_hour(row.usd_per_hour),
            usd_per_hour(f"{float(row.usd_per_hour) / row.accelerator_count:.6f}"),
            row.observed_at[:10],
        )
        for row in rows[:MOST_PRICES]
    ]
    titles = ("provider", "where", "machine", "kind", "USD per node-hour", "per accelerator", "observed")
    what = "the cheapest per provider and price kind"
    blocks = [
        header(f"Prices of {plain(name, limit=50)}"),
        words(f"Of {number(total)} offers, {what}."),
        table(titles, shown, right=(4, 5)),
        small(age),
    ]
    best = rows[0]
    text = f"{name}: from {usd_per_hour(best.usd_per_hour)} per node-hour, {best.instance_type} in {located(best.region, best.zone)}"
    return message(text, blocks)


def history_message(name: str, rows: Sequence[PriceRow], total: int) -> Message:
    """Prices of an instance type over time, newest first."""
    shown = [
        (
            f"{row.provider} {located(row.region, row.zone)}",
            row.price_kind.replace("_", " "),
            usd_per_hour(row.usd_per_hour),
            row.from_[:10],
            "vanished" if row.vanished else "now" if row.until is None else row.until[:10],
        )
        for row in rows
    ]
    summary = (
        f"The newest {len(shown)} of {number(total)} prices." if total > len(shown) else f"{number(total)} prices."
    )
    titles = ("where", "kind", "USD per node-hour", "from", "until")
    blocks = [header(f"Price history of {plain(name, limit=40)}"), words(summary), table(titles, shown, right=(2,))]
    return message(f"Price history of {name}: {summary}", blocks)


def why_message(answer: WhyAnswer) -> Message:
    """An explanation: the answer in sentences, and the figures of the compared plan."""
    why, about, plan = answer.why, answer.why.about, answer.why.plan
    name = job_name(why.job)
    title = f"{name} and {about.named.text}" if about else f"Why {name} has this plan"
    blocks = [header(title), *bullets("In short", why.summary, most=12)]
    if plan:
        run = " then ".join(f"{machines(phase)} in {place_and_kind(phase)}" for phase in plan.phases)
        blocks.append(words(f"The plan: {run}, {usd(plan.cost_usd)}, {duration(plan.hours_confident)}."))
        if about and about.best and about.best.plan and about.best.extra:
            blocks.append(_compared_with(plan, about.best.plan, about.best.extra))
    blocks += [*bullets("Warnings", why.warnings), small(f"{why.id}, prices of snapshot {why.snapshot_id}")]
    return message(f"{title}: {why.summary[0]}" if why.summary else title, blocks)


def _compared_with(plan: ShortPlan, other: ShortPlan, extra: Extra) -> JsonObject:
    rows = compared_costs(plan, other, extra)
    times = duration(plan.hours_confident), duration(other.hours_confident), f"{extra.hours_confident:+.3g} h"
    rows.append(("time at requested confidence", *times))
    return table(("part", "the plan", "this", "more by"), rows, right=(1, 2, 3))


def watches_message(watches: Sequence[Watch]) -> Message:
    """The watches of a workspace."""
    if not watches:
        return note("This workspace has no watches yet: /gpuplan watch last")
    rows = [
        (
            watch.id,
            watch.name,
            threshold(watch),
            watch.state,
            last_reported(watch),
            when(watch.checked_at) if watch.checked_at else "not yet",
        )
        for watch in watches
    ]
    titles = ("watch", "job", "notifies of", "state", "last notified", "checked")
    return message(
        f"{len(watches)} watched", [header("Watched jobs"), table(titles, rows), small("/gpuplan unwatch ID ends one")]
    )


def help_message(examples: Iterable[tuple[str, str]]) -> Message:
    """All commands with an example."""
    lines = [f"{example}: {what}" for example, what in examples]
    return message("Commands of gpuplan", [header("gpuplan"), *bullets("Commands", lines, most=20)])
