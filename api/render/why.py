"""An explanation as a stranger should read it: the answer in sentences, then the figures behind it."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType

from api.render.frontier import thinned
from api.render.infeasible import in_the_way
from api.render.machines import machines, place, price, rented
from api.render.tables import bullets, cell, facts, footer, heading, listing
from api.render.text import duration, more_hours, more_or_less, number, plain, usd, usd_per_hour

Part = Mapping[str, Any]


def render_why(answer: Part) -> Group:
    """Every section of an explanation."""
    why = answer["why"]
    parts: list[RenderableType] = [*_headline(why), *bullets(why["summary"])]
    parts += _plan(why["plan"])
    if why["infeasible"]:
        parts += _ruled_out("Why there is no plan", why["infeasible"])
    if why["about"]:
        parts += _about(why["about"], why["plan"])
    parts += [*_requirements(why["requirements"]), *_steps(why["steps"]), *_frontier(why["frontier"])]
    for title, style in (("warnings", "yellow"), ("assumptions", "")):
        if why[title]:
            parts += [heading(title.capitalize()), *bullets(why[title], style)]
    parts.append(footer(f"{why['id']}, prices of snapshot {why['snapshot_id']}"))
    return Group(*parts)


def _headline(why: Part) -> list[RenderableType]:
    name = plain((why.get("job") or {}).get("name") or "this job")
    about = why["about"]
    if about is None:
        return [cell(f"Why {name} is planned as it is", "bold green")]
    return [cell(f"{name} and {plain(about['named']['text'])}", "bold green")]


def _dollars(value: object) -> str:
    """A sum with its sign before the dollar, also below a cent."""
    text = str(value)
    return f"-{usd(text[1:])}" if text.startswith("-") else usd(text)


def _run(phases: Sequence[Part]) -> str:
    return " then ".join(f"{machines(each)}, {place(each)}" for each in phases)


def _plan(plan: Part | None) -> list[RenderableType]:
    if plan is None:
        return []
    rows = [
        ("machines", _run(plan["phases"])),
        ("cost", usd(plan["cost_usd"])),
        ("time at the asked confidence", duration(plan["hours_confident"])),
        ("carbon", _kg(plan["carbon_kg"])),
    ]
    return [heading("The plan"), facts(rows)]


def _kg(value: float | None) -> str | None:
    return None if value is None else f"{number(value)} kg CO2e"


def _about(about: Part, plan: Part | None) -> list[RenderableType]:
    named = about["named"]
    what = plain(named["text"])
    meant = f"{named['field'].replace('_', ' ')}: {', '.join(plain(name) for name in named['names'])}"
    parts: list[RenderableType] = [heading(f"About {what}"), facts([("taken as", plain(meant, limit=300))])]
    if about["verdict"] not in {"chosen", "absent"}:
        parts += _held_against(f"The best plan on {what}", about["best"], plan)
    if about["wins_at"]:
        parts += _wins_at(about["wins_at"])
    if about["joins_at"]:
        parts += _joins_at(about["joins_at"])
    if about["without"]:
        parts += _held_against(f"The best plan without {what}", about["without"], plan)
    return parts


def _held_against(title: str, other: Part | None, plan: Part | None) -> list[RenderableType]:
    """Another outcome, part by part against the plan."""
    if other is None:
        return []
    if other["plan"] is None:
        return _ruled_out(f"{title}: none", other["ruled_out"])
    found, extra = other["plan"], other["extra"]
    parts: list[RenderableType] = [heading(title), facts([("machines", _run(found["phases"]))])]
    if plan is None or extra is None:
        return [*parts, facts([("cost", usd(found["cost_usd"])), ("time", duration(found["hours_confident"]))])]
    rows: list[tuple[object, ...]] = [
        (part, usd(plan["breakdown"][part]), usd(amount), usd(extra["breakdown"][part]))
        for part, amount in found["breakdown"].items()
    ]
    rows.append(("total expected", usd(plan["cost_usd"]), usd(found["cost_usd"]), usd(extra["usd"])))
    rows.append(
        (
            "time at the asked confidence",
            duration(plan["hours_confident"]),
            duration(found["hours_confident"]),
            more_hours(extra["hours_confident"]),
        )
    )
    rows.append(
        (
            "carbon, kg CO2e",
            number(plan["carbon_kg"]),
            number(found["carbon_kg"]),
            number(extra["carbon_kg"]),
        )
    )
    return [*parts, listing(("part", "the plan", "this", "more by"), rows, right=(1, 2, 3))]


def _wins_at(each: Part) -> list[RenderableType]:
    on = each["on"]
    rows = [
        ("offer", f"{rented(on)}, {place(on)}"),
        ("price now", price(on)),
        ("wins at", f"{usd_per_hour(each['usd_per_node_hour'])} per node-hour or less"),
        ("or with", f"{number(each['discount_percent'])} % off every offer of it"),
    ]
    return [heading("The price at which it would win"), facts(rows)]


def _joins_at(each: Part) -> list[RenderableType]:
    on = each["on"]
    rows = [
        ("offer", f"{rented(on)}, {place(on)}"),
        ("price now", usd_per_hour(each["now_usd_per_node_hour"])),
        ("used at", f"{usd_per_hour(each['usd_per_node_hour'])} per node-hour or less"),
    ]
    return [heading("The price at which part of the plan would run on it"), facts(rows)]


def _ruled_out(title: str, found: Part) -> list[RenderableType]:
    """Conflicts and the least ways out, with how far each requirement is missed."""
    said = [in_the_way(each, found.get("searched_nodes")) for each in found["conflicts"]]
    parts: list[RenderableType] = [heading(title), *bullets(said)]
    rows: list[tuple[object, ...]] = []
    for each in found["relaxations"]:
        names, asked, needed = (
            str(each["requirement"]).split(" + "),
            str(each["from"]).split("; "),
            str(each["to"]).split("; "),
        )
        for i, (name, now, then) in enumerate(zip(names, asked, needed, strict=True)):
            cost = ("", "") if i else (usd(each["cost_usd"]), _or_blank(each["extra_usd"]))
            rows.append((f"and {name}" if i else name, now, then, _short(each["short_by"].get(name)), *cost))
    if rows:
        titles = ("give way in", "now", "would have to be", "short by", "then costs", "more by")
        parts += [listing(titles, rows, right=(3, 4, 5))]
    return parts


def _short(each: Part | None) -> str:
    return "" if each is None else _amount(each["value"], each["unit"])


def _or_blank(value: object) -> str:
    return "" if value is None else usd(value)


def _amount(value: float, unit: str) -> str:
    """A figure in its unit."""
    if unit == "USD":
        return usd(value)
    return duration(value) if unit == "hours" else f"{number(value)} {unit}"


def _requirements(found: Sequence[Part]) -> list[RenderableType]:
    rows: list[tuple[object, ...]] = []
    for each in found:
        gain = each["gain"]
        if each["binds"]:
            told = f"saves {_amount(gain['value'], gain['unit'])}"
            rows.append((each["requirement"], each["asked"], told, each["needed"], rented(each["plan"])))
        else:
            rows.append((each["requirement"], each["asked"], "does not bind", "", ""))
    if not rows:
        return []
    titles = ("requirement", "asked", "given up", "would have to be", "for")
    return [heading("What binds"), listing(titles, rows)]


def _steps(steps: Part | None) -> list[RenderableType]:
    if steps is None:
        return []
    rows = [
        (f"a deadline of {duration(each['deadline_hours'])}", usd(each["extra_usd"]), rented(each["plan"]))
        for each in (*reversed(steps["faster"]), *steps["slower"])
    ]
    parts: list[RenderableType] = []
    if rows:
        parts += [heading("The next steps of cost against time"), listing(("with", "more by", "on"), rows, right=(1,))]
    changes = [(_asked(each), _changed(each)) for each in steps["changes"]]
    changes += [
        (f"one more {each['unit'].rpartition(' ')[2]}", f"of {each['requirement']} is worth {_dual(each)}")
        for each in steps["duals"]
        if each["value"]
    ]
    if changes:
        parts += [heading("If something moved"), facts(changes)]
    return parts


def _dual(each: Part) -> str:
    unit = each["unit"].partition(" per ")[0]
    return f"{_amount(each['value'], unit)} on the line between the best trades"


def _asked(each: Part) -> str:
    by = each["by"]
    if by["unit"] == "USD":
        return more_or_less(_dollars(by["value"]))
    return more_or_less(more_hours(by["value"]))


def _changed(each: Part) -> str:
    if not each["possible"]:
        return (
            "no run on one configuration costs that little"
            if each["requirement"] == "budget_usd"
            else "no plan keeps that deadline"
        )
    on = " then ".join(rented(phase) for phase in each["phases"])
    if float(each["extra_usd"]) == 0 and abs(each["extra_hours"]) < 1e-6:
        return "changes nothing"
    kg, longer = each["extra_carbon_kg"], more_hours(each["extra_hours"])
    carbon = "" if not kg else f", {more_or_less(f'{number(kg)} kg CO2e')}"
    hours = f", {more_or_less(longer)}" if longer != "0 s" else ""
    needs = f", needs a deadline of {duration(each['deadline_hours'])}" if each["requirement"] == "budget_usd" else ""
    return f"{more_or_less(_dollars(each['extra_usd']))}{hours}{carbon}{needs}: {on}"


def _frontier(frontier: Part) -> list[RenderableType]:
    points = frontier["points"]
    parts: list[RenderableType] = []
    if points:
        knee = frontier["knee"]
        named = None if knee is None else points[knee]
        rows = [_point(each, each is named) for each in _with(thinned(points), named)]
        titles = ("", "time", "cost", "kg CO2e", "machines")
        title = f"Cost against time against carbon ({len(points)} best {'trade' if len(points) == 1 else 'trades'})"
        parts += [heading(title), listing(titles, rows, right=(1, 2, 3))]
        parts += bullets([f"knee: {frontier['knee_rule']}"]) if named is not None else []
    if frontier["unknown_carbon"]:
        parts += bullets(frontier["unknown_carbon"])
    return parts


def _with(shown: Sequence[Part], named: Part | None) -> list[Part]:
    """The points shown, the knee always among them, fastest first."""
    if named is None or any(each is named for each in shown):
        return list(shown)
    return sorted([*shown, named], key=lambda each: float(each["hours_confident"]))


def _point(each: Part, named: bool) -> tuple[object, ...]:
    mark = f"knee ({number(each['factor'])} x the best)" if named else "" if each["within"] else "outside"
    where = f"{rented(each)}, {place(each)}"
    return mark, duration(each["hours_confident"]), usd(each["cost_usd"]), number(each["carbon_kg"]), where
