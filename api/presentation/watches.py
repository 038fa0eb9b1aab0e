"""Sections for watches: their start, notifications sent, and failed deliveries."""

from collections.abc import Mapping
from typing import Any

from gpuplan.api.presentation.infeasibility import conflicts_in_short
from gpuplan.api.presentation.sections import Block, Heading, Sections, Tone, sections_of
from gpuplan.api.presentation.text_formatting import number, plain, usd, when
from gpuplan.api.presentation.text_tables import bullets, cell, facts, footer, heading, listing
from gpuplan.api.presentation.watched_capacity import condition, in_one_line

Part = Mapping[str, Any]

_TITLES = ("watch", "name", "state", "last notified", "on", "channels", "checked")


def render_added(answer: Part) -> Sections:
    """A watch that was just added."""
    reported = answer["last_told"]
    if "capacity" in answer:
        return _added_capacity(answer)
    rows = [
        ("channels", ", ".join(answer["channels"])),
        (
            "notifies",
            f"when the plan gets {number(answer['cheaper_by_percent'])} % cheaper or dearer, loses its offer,",
        ),
        ("", "becomes impossible, or possible again"),
        ("starts from", last_reported(answer)),
        ("plan", reported["plan_id"]),
    ]
    parts: list[Block | Heading] = [cell(f"Watching {answer['name']} as {answer['id']}", Tone.GOOD), facts(rows)]
    parts += bullets(answer["warnings"], Tone.WARNING)
    return sections_of(*parts, footer(f"End it with: gpuplan watch remove {answer['id']}"))


def _added_capacity(answer: Part) -> Sections:
    rows = [
        ("channels", ", ".join(answer["channels"])),
        ("notifies", f"when a cloud gives {condition(answer['capacity'])}, and when none does any more"),
        ("now", last_reported(answer)),
    ]
    parts: list[Block | Heading] = [cell(f"Watching {answer['name']} as {answer['id']}", Tone.GOOD), facts(rows)]
    parts += bullets(answer["warnings"], Tone.WARNING)
    closing = f"Checked after each refresh and by gpuplan watch check --capacity; end it with: gpuplan watch remove {answer['id']}"
    return sections_of(*parts, footer(closing))


def render_watches(answer: Part) -> Sections:
    """All watches as a table."""
    watches = answer["watches"]
    if not watches:
        return sections_of(cell("Nothing is watched: gpuplan watch add JOB.yaml --channel NAME"))
    rows = [
        (
            watch["id"],
            watch["name"],
            "problem" if watch["problem"] else watch["state"],
            _cost(watch["last_told"]),
            watch["last_told"].get("choice", ""),
            ", ".join(watch["channels"]),
            when(watch["checked_at"]) if watch["checked_at"] else "not yet",
        )
        for watch in watches
    ]
    problems = bullets((f"{watch['id']}: {watch['problem']}" for watch in watches if watch["problem"]), Tone.WARNING)
    return sections_of(listing(_TITLES, rows, right=(3,)), *problems)


def render_watch(answer: Part) -> Sections:
    """One watch and its notifications."""
    rows = [
        ("name", answer["name"]),
        ("state", answer["state"]),
        ("channels", ", ".join(answer["channels"])),
        ("notifies of", threshold(answer)),
        ("last notified", last_reported(answer)),
        ("plan", answer["last_told"].get("plan_id")),
        ("checked", when(answer["checked_at"]) if answer["checked_at"] else "not yet"),
        ("problem", answer["problem"]),
    ]
    notifications = answer["notifications"]
    sentences = [
        f"{when(notification['created_at'])} to {notification['channel']}, {_state(notification)}: {notification['summary']}"
        for notification in notifications
    ]
    return sections_of(
        cell(answer["id"], Tone.STRONG), facts(rows), heading("Notifications"), *bullets(sentences or ["none yet"])
    )


def render_check(answer: Part) -> Sections:
    """Changes found by a check of all watches, and notifications sent."""
    sent = answer["deliveries"]
    title = (
        f"{number(answer['checked'])} {_watches(answer['checked'])} on snapshot {answer['snapshot_id']}: "
        f"{number(len(answer['told']))} changed, {number(sent['sent'])} sent, {number(len(sent['failed']))} not"
    )
    parts: list[Block | Heading] = [cell(title, Tone.STRONG), *bullets(change["summary"] for change in answer["told"])]
    parts += bullets(
        (f"{problem['watch']} could not be planned: {problem['problem']}" for problem in answer["problems"]), Tone.BAD
    )
    if sent["held_elsewhere"]:
        parts += bullets([f"{number(sent['held_elsewhere'])} are being sent by another process"], Tone.WARNING)
    return sections_of(*parts)


def check_lines(answer: Part) -> list[str]:
    """A check in sentences: changes, and failed deliveries."""
    return [*(change["summary"] for change in answer["told"]), *undelivered(answer)]


def undelivered(answer: Part) -> list[str]:
    """One line per undelivered message and per job that could not be planned."""
    lines = [
        f"{failure['watch']}: {failure['event']} not delivered to {failure['channel']}"
        f"{'' if failure['final'] else ', tried again at the next run'}: {failure['error']}"
        for failure in answer["deliveries"]["failed"]
    ]
    return lines + [f"{problem['watch']}: could not be planned: {problem['problem']}" for problem in answer["problems"]]


def threshold(watch: Part) -> str:
    """What a watch notifies of, in short."""
    if "capacity" in watch:
        return condition(watch["capacity"])
    return f"{number(watch['cheaper_by_percent'])} %"


def _cost(part: Part) -> str:
    if "obtainable" in part["outcome"]:
        return f"chance {part['chance']:.2f}" if "chance" in part else "no chance"
    return usd(part["cost_usd"]) if part["outcome"] == "planned" else "no plan"


def last_reported(watch: Part) -> str:
    """What a watch last notified of, or started from."""
    part = watch["last_told"]
    if "capacity" in watch:
        return in_one_line(part, watch["capacity"])
    if part["outcome"] == "planned":
        return f"{usd(part['cost_usd'])} on {part['choice']}"
    return f"no plan ({conflicts_in_short(part['conflicts'], part.get('searched_nodes'))})"


def _state(part: Part) -> str:
    state = str(part["state"]).replace("_", " ")
    return state if part["state"] == "delivered" or not part["last_error"] else f"{state} ({plain(part['last_error'])})"


def _watches(count: int) -> str:
    return "watch planned" if count == 1 else "watches planned"
