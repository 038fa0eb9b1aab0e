"""Prices, histories, explanations, watches, help and refusals as messages."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from api.render.machines import machines, place
from api.render.text import duration, located, number, plain, usd, usd_per_hour, when
from api.slack.blocks import Message, bullets, header, message, small, table, words
from catalog.errors import UnusableInput

Part = Mapping[str, Any]

MOST_PRICES = 15
MOST_FAULTS = 8


def refusal(error: UnusableInput) -> Message:
    """One line for each fault, naming the word and what is accepted."""
    lines = [plain(str(fault), limit=600) for fault in error.faults[:MOST_FAULTS]]
    if len(error.faults) > MOST_FAULTS:
        lines.append(f"and {len(error.faults) - MOST_FAULTS} more")
    return message(lines[0], [words(each) for each in lines])


def note(text: str) -> Message:
    """One sentence."""
    return message(text)


def price_message(name: str, rows: Sequence[Part], total: int, age: str) -> Message:
    """What an accelerator costs: of each provider and price kind the cheapest, by accelerator and hour."""
    shown = [
        (
            each["provider"],
            located(each["region"], each["zone"]),
            f"{each['instance_type']} ({number(each['accelerator_count'])} x {each['accelerator']})",
            str(each["price_kind"]).replace("_", " "),
            usd_per_hour(each["usd_per_hour"]),
            usd_per_hour(f"{float(each['usd_per_hour']) / float(each['accelerator_count']):.6f}"),
            str(each["observed_at"])[:10],
        )
        for each in rows[:MOST_PRICES]
    ]
    titles = ("provider", "where", "machine", "kind", "USD per node-hour", "per accelerator", "read")
    what = "the cheapest of each provider and price kind"
    blocks = [
        header(f"Prices of {plain(name, limit=50)}"),
        words(f"Of {number(total)} offers, {what}."),
        table(titles, shown, right=(4, 5)),
        small(age),
    ]
    best = rows[0]
    text = f"{name}: from {usd_per_hour(best['usd_per_hour'])} per node-hour, {best['instance_type']} in {located(best['region'], best['zone'])}"
    return message(text, blocks)


def history_message(name: str, rows: Sequence[Part], total: int) -> Message:
    """What an instance type has cost, the newest first."""
    shown = [
        (
            f"{each['provider']} {located(each['region'], each['zone'])}",
            str(each["price_kind"]).replace("_", " "),
            usd_per_hour(each["usd_per_hour"]),
            str(each["from"])[:10],
            "vanished" if each["vanished"] else "now" if each["until"] is None else str(each["until"])[:10],
        )
        for each in rows
    ]
    more = f"The newest {len(shown)} of {number(total)} prices." if total > len(shown) else f"{number(total)} prices."
    titles = ("where", "kind", "USD per node-hour", "from", "until")
    blocks = [header(f"What {plain(name, limit=40)} has cost"), words(more), table(titles, shown, right=(2,))]
    return message(f"What {name} has cost: {more}", blocks)


def why_message(answer: Part) -> Message:
    """Why a plan is what it is: the answer in sentences, and the figures of what it was held against."""
    why = answer["why"]
    about = why["about"]
    name = plain((why.get("job") or {}).get("name") or "this job")
    title = f"{name} and {about['named']['text']}" if about else f"Why {name} is planned as it is"
    blocks = [header(title), *bullets("In short", why["summary"], most=12)]
    plan = why["plan"]
    if plan:
        run = " then ".join(f"{machines(each)} in {place(each)}" for each in plan["phases"])
        blocks.append(words(f"The plan: {run}, {usd(plan['cost_usd'])}, {duration(plan['hours_confident'])}."))
    best = (about or {}).get("best") or {}
    if plan and best.get("plan") and best.get("extra"):
        blocks.append(_held_against(plan, best["plan"], best["extra"]))
    blocks += [*bullets("Warnings", why["warnings"]), small(f"{why['id']}, prices of snapshot {why['snapshot_id']}")]
    return message(f"{title}: {why['summary'][0]}" if why["summary"] else title, blocks)


def _held_against(plan: Part, other: Part, extra: Part) -> dict[str, Any]:
    rows: list[tuple[object, ...]] = [
        (part, usd(plan["breakdown"][part]), usd(amount), usd(extra["breakdown"][part]))
        for part, amount in other["breakdown"].items()
    ]
    rows.append(("total expected", usd(plan["cost_usd"]), usd(other["cost_usd"]), usd(extra["usd"])))
    times = duration(plan["hours_confident"]), duration(other["hours_confident"]), f"{extra['hours_confident']:+.3g} h"
    rows.append(("time at the asked confidence", *times))
    return table(("part", "the plan", "this", "more by"), rows, right=(1, 2, 3))


def watches_message(watches: Sequence[Part]) -> Message:
    """What a workspace watches."""
    if not watches:
        return note("Nothing is watched from this workspace yet: /gpuplan watch last")
    rows = [
        (
            each["id"],
            each["name"],
            f"{each['cheaper_by_percent']:g} %",
            each["state"],
            _last(each["last_told"]),
            when(each["checked_at"]) if each["checked_at"] else "not yet",
        )
        for each in watches
    ]
    titles = ("watch", "job", "told from", "state", "last told", "checked")
    return message(
        f"{len(watches)} watched", [header("Watched jobs"), table(titles, rows), small("/gpuplan unwatch ID ends one")]
    )


def _last(told: Part) -> str:
    return f"{usd(told['cost_usd'])} on {told['choice']}" if told.get("cost_usd") else "no plan possible"


def help_message(examples: Iterable[tuple[str, str]]) -> Message:
    """Every command with an example."""
    lines = [f"{example}: {what}" for example, what in examples]
    return message("What gpuplan can be asked", [header("gpuplan"), *bullets("What can be asked", lines, most=20)])
