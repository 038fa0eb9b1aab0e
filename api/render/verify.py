"""A verification as a stranger should read it: right or wrong, which figures, what was checked and what is believed."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType

from api.render.tables import bullets, cell, facts, footer, heading, listing
from api.render.text import number, plain

Part = Mapping[str, Any]

#: More wrong figures than these are counted.
MOST_SHOWN = 25


def render_verification(answer: Part) -> Group:
    """The verdict first, then what is wrong, what each check rests on, and what nobody checked."""
    found, meta = answer["verification"], answer["meta"]
    parts: list[RenderableType] = [*_headline(answer["outcome"], found), *_wrong(found), *_checks(found)]
    parts += [*_covers(found), heading("Taken on trust"), *bullets(found["taken_on_trust"])]
    parts.append(footer(f"snapshot {found['snapshot_id']}, checked in {meta['milliseconds'] / 1e3:.1f} s"))
    return Group(*parts)


def _headline(outcome: str, found: Part) -> list[RenderableType]:
    figures = number(sum(each["figures"] for each in found["checks"]))
    if outcome == "verified":
        said = f"{plain(found['id'])}: verified, {figures} figures hold"
        return [cell(said, "bold green")]
    count = found["wrong_count"]
    return [cell(f"{plain(found['id'])}: not verified, {number(count)} of {figures} figures are wrong", "bold red")]


def _wrong(found: Part) -> list[RenderableType]:
    if not found["wrong"]:
        return []
    rows = [
        (plain(each["figure"], limit=60), _value(each["stated"]), _value(each["found"]), plain(each["why"], limit=200))
        for each in found["wrong"][:MOST_SHOWN]
    ]
    more = found["wrong_count"] - len(rows)
    rest = [cell(f"and {number(more)} more; --json names the first hundred")] if more > 0 else []
    return [heading("What is wrong"), listing(("figure", "stated", "found", "why"), rows), *rest]


def _value(value: object) -> str:
    return "" if value is None else plain(value, limit=40)


def _checks(found: Part) -> list[RenderableType]:
    rows = [
        (
            each["check"],
            "holds" if each["passed"] else f"{number(each['wrong'])} wrong",
            number(each["figures"]),
            each["basis"],
            each["says"],
        )
        for each in found["checks"]
    ]
    meanings = [f"{name}: {meaning}" for name, meaning in found["bases"].items()]
    titles = ("check", "", "figures", "basis", "that")
    return [heading("What was checked"), listing(titles, rows, right=(2,)), *bullets(meanings)]


def _covers(found: Part) -> list[RenderableType]:
    """What the bound was held against."""
    rows = [
        (name.replace("_", " "), number(value) if isinstance(value, int) else plain(value, limit=400))
        for name, value in found["covers"].items()
        if not isinstance(value, dict | list)
    ]
    marks = found["covers"].get("marks", {})
    said = [f"{number(count)} configurations break {plain(mark)}" for mark, count in marks.items()]
    return [heading("What the bound was held against"), facts(rows), *bullets(said)]
