"""Watches for people: what they start from, what was told, and what could not be sent."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType

from api.render.infeasible import conflicts_in_short
from api.render.tables import bullets, cell, facts, footer, heading, listing
from api.render.text import number, plain, usd, when

Part = Mapping[str, Any]

_TITLES = ("watch", "name", "state", "last told", "on", "channels", "checked")


def render_added(answer: Part) -> Group:
    """A watch just added."""
    told = answer["last_told"]
    rows = [
        ("channels", ", ".join(answer["channels"])),
        ("tells", f"when the plan gets {number(answer['cheaper_by_percent'])} % cheaper or dearer, loses its offer,"),
        ("", "becomes impossible, or possible again"),
        ("starts from", _last_told(told)),
        ("plan", told["plan_id"]),
    ]
    parts: list[RenderableType] = [cell(f"Watching {answer['name']} as {answer['id']}", "bold green"), facts(rows)]
    parts += bullets(answer["warnings"], "yellow")
    return Group(*parts, footer(f"End it with: gpuplan watch remove {answer['id']}"))


def render_watches(answer: Part) -> RenderableType:
    """Every watch."""
    watches = answer["watches"]
    if not watches:
        return cell("No job is watched: gpuplan watch add JOB.yaml --channel NAME")
    rows = [
        (
            each["id"],
            each["name"],
            "problem" if each["problem"] else each["state"],
            _cost(each["last_told"]),
            each["last_told"].get("choice", ""),
            ", ".join(each["channels"]),
            when(each["checked_at"]) if each["checked_at"] else "not yet",
        )
        for each in watches
    ]
    problems = bullets((f"{each['id']}: {each['problem']}" for each in watches if each["problem"]), "yellow")
    return Group(listing(_TITLES, rows, right=(3,)), *problems)


def render_watch(answer: Part) -> Group:
    """One watch, and what it had to say."""
    rows = [
        ("name", answer["name"]),
        ("state", answer["state"]),
        ("channels", ", ".join(answer["channels"])),
        ("threshold", f"{number(answer['cheaper_by_percent'])} %"),
        ("last told", _last_told(answer["last_told"])),
        ("plan", answer["last_told"]["plan_id"]),
        ("checked", when(answer["checked_at"]) if answer["checked_at"] else "not yet"),
        ("problem", answer["problem"]),
    ]
    said = answer["notifications"]
    sentences = [f"{when(each['created_at'])} to {each['channel']}, {_state(each)}: {each['summary']}" for each in said]
    return Group(cell(answer["id"], "bold"), facts(rows), heading("Told"), *bullets(sentences or ["nothing yet"]))


def render_check(answer: Part) -> Group:
    """What a check of all watches found and sent."""
    sent = answer["deliveries"]
    title = (
        f"{number(answer['checked'])} {_watches(answer['checked'])} on snapshot {answer['snapshot_id']}: "
        f"{number(len(answer['told']))} changed, {number(sent['sent'])} sent, {number(len(sent['failed']))} not"
    )
    parts: list[RenderableType] = [cell(title, "bold"), *bullets(each["summary"] for each in answer["told"])]
    parts += bullets((f"{each['watch']} could not be planned: {each['problem']}" for each in answer["problems"]), "red")
    if sent["held_elsewhere"]:
        parts += bullets([f"{number(sent['held_elsewhere'])} are in the hands of another process"], "yellow")
    return Group(*parts)


def check_lines(answer: Part) -> list[str]:
    """A check in sentences: what was told, and what could not be."""
    return [*(each["summary"] for each in answer["told"]), *undelivered(answer)]


def undelivered(answer: Part) -> list[str]:
    """One line for each message of a check that has not arrived, and for each job that could not be planned."""
    lines = [
        f"{each['watch']}: {each['event']} not told to {each['channel']}"
        f"{'' if each['final'] else ', tried again at the next run'}: {each['error']}"
        for each in answer["deliveries"]["failed"]
    ]
    return lines + [f"{each['watch']}: could not be planned: {each['problem']}" for each in answer["problems"]]


def _cost(told: Part) -> str:
    return usd(told["cost_usd"]) if told["outcome"] == "planned" else "no plan"


def _last_told(told: Part) -> str:
    if told["outcome"] == "planned":
        return f"{usd(told['cost_usd'])} on {told['choice']}"
    return f"no plan ({conflicts_in_short(told)})"


def _state(each: Part) -> str:
    state = str(each["state"]).replace("_", " ")
    return state if each["state"] == "delivered" or not each["last_error"] else f"{state} ({plain(each['last_error'])})"


def _watches(count: int) -> str:
    return "watch planned" if count == 1 else "watches planned"
