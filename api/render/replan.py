"""What to do with a job that is under way, as a stranger should read it: the advice, then what it is compared with."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType

from api.render.infeasible import in_the_way
from api.render.machines import machines, place, price, rented
from api.render.proven import best as proven_best
from api.render.standby import is_standby, render_fallback, render_standby
from api.render.tables import bullets, cell, facts, footer, heading, listing
from api.render.text import duration, more_hours, number, percent, plain, usd, usd_per_hour, when

Part = Mapping[str, Any]

_ACTIONS = {
    "continue": "continue as it is",
    "standby": "continue, with machines standing by",
    "move_later": "continue, and change later",
    "move": "move to other machines now",
    "add_nodes": "run on more machines now",
    "shed_nodes": "run on fewer machines now",
    "restart": "start again on the same machines",
    "start": "start",
    "none": "nothing keeps what is asked for",
}


#: A share that would be shown as none.
_LEAST_SHARE = 5e-4


def render_replan(answer: Part) -> Group:
    """Every section of the answer, the advice first."""
    found = answer["replan"]
    name = plain((found.get("job") or {}).get("name") or "this job")
    style = "bold green" if answer["outcome"] == "replanned" else "bold red"
    parts: list[RenderableType] = [cell(f"{name}: {_ACTIONS[found['action']]}", style), *bullets(found["summary"])]
    parts += [*_stands(found), *_compared(found)]
    if found["best"]:
        parts += _best(found["best"])
    if found["infeasible"]:
        parts += _infeasible(found["infeasible"])
    for title, tone in (("warnings", "yellow"), ("assumptions", "")):
        if found[title]:
            parts += [heading(title.capitalize()), *bullets(found[title], tone)]
    parts.append(footer(f"{found['id']}, prices of snapshot {found['snapshot_id']}"))
    return Group(*parts)


def _stands(found: Part) -> list[RenderableType]:
    running, left = found["running"], found["left"]
    on = running["on"]
    lost = running["done"] - running["kept"]
    rows = [
        ("at", when(found["now"])),
        ("machines", None if on is None else f"{machines(on)} in {place(on)}{'' if running['up'] else ', gone'}"),
        ("done", percent(running["done"], 1) + (f", of which {percent(lost, 1)} are lost" if lost > 0 else "")),
        ("spent", usd(running["spent_usd"])),
        ("left to do", percent(left["share"], 1)),
        ("left of the deadline", None if left["deadline_hours"] is None else duration(left["deadline_hours"])),
        ("left of the budget", None if left["budget_usd"] is None else usd(left["budget_usd"])),
    ]
    return [heading("Where it stands"), facts(rows)]


def _compared(found: Part) -> list[RenderableType]:
    """Going on beside the best, part by part, all from now."""
    stays, best, extra = found["continue"], found["best"], found["difference"]
    if stays is None:
        return []
    titles = ["from now", "going on as it is"]
    compared = best is not None and found["action"] != "continue"
    rows: list[list[object]] = []
    for part, amount in stays["breakdown"].items():
        rows.append([part, usd(amount)])
        if compared:
            rows[-1] += [usd(best["cost_usd"]["breakdown"][part]), usd(extra["breakdown"][part])]
    rows.append(["total expected", usd(stays["cost_usd"])])
    rows.append(["expected time", duration(stays["hours"])])
    rows.append(["time at the asked confidence", duration(stays["hours_confident"])])
    rows.append(["done", when(stays["finishes_at"])])
    rows.append(["in time", _chance(stays["deadline_probability"])])
    if compared:
        titles += ["the best", "more by"]
        rows[-5] += [usd(best["cost_usd"]["expected"]), usd(extra["usd"])]
        rows[-4] += [duration(best["hours"]["expected"]), more_hours(extra["hours"])]
        rows[-3] += [duration(best["hours"]["confident"]), more_hours(extra["hours_confident"])]
        rows[-2] += [when(best["finishes_at"]), ""]
        rows[-1] += [_chance(best["deadline_probability"]), ""]
    said: list[RenderableType] = [heading("Going on, and the best" if compared else "Going on")]
    said.append(listing(titles, rows, right=tuple(range(1, len(titles)))))
    if stays["breaks"]:
        said += bullets([f"going on breaks {', '.join(stays['breaks'])}"], "yellow")
    return [*said, *_holds(found["holds"])]


def _holds(holds: Part | None) -> list[RenderableType]:
    if holds is None:
        return []
    price_, slower = holds["usd_per_node_hour"], holds["times_slower"]
    rows = [
        ("price", "any" if price_ is None else f"up to {usd_per_hour(price_)} per node-hour"),
        ("speed", "any" if slower is None else f"up to {number(100 * (slower - 1))} % slower than now estimated"),
    ]
    return [heading("For how long going on stays the best"), facts(rows)]


def _chance(probability: float | None) -> str:
    if probability is None:
        return "no deadline"
    return "more than 99.9 %" if probability > 0.999 else percent(probability, 1)


def _best(best: Part) -> list[RenderableType]:
    """The phases from now, each with when it starts, and the proof."""
    parts: list[RenderableType] = []
    # A moment of going on before a move is no phase to tell people of.
    rows = [_phase(each) for each in best["phases"] if not is_standby(each) and each["share"] >= _LEAST_SHARE]
    titles = ("from", "on", "of what is left", "time", "cost", "brought along")
    proof = best["certificate"]
    parts += [heading(_title(proof)), listing(titles, rows, right=(2, 3, 4))]
    for each in best["phases"]:
        parts += render_standby(each) if is_standby(each) else []
    offers, tried = number(proof["offers_considered"]), number(proof["configurations_considered"])
    parts += [
        *render_fallback(best),
        facts(
            [
                ("price", "; ".join(dict.fromkeys(price(each) for each in best["phases"]))),
                ("compared", f"{offers} offers, {tried} configurations (machine, node count, place, kind)"),
                ("lower bound", f"{usd(proof['bound_usd'])}, gap {number(float(proof['gap']))}"),
            ]
        ),
        *_alternatives(best["alternatives"]),
    ]
    return parts


def _title(proof: Part) -> str:
    """What heads the plan: the best, or within how much of it."""
    return "The best plan from now" if float(proof["gap"]) <= 0 else f"{proven_best(proof)}, from now"


def _phase(each: Part) -> tuple[object, ...]:
    moved = each["moved"]
    brought = ""
    if moved is not None:
        data = f" and {number(moved['data_gb'])} GB of data" if moved["data_gb"] else ""
        brought = f"{number(moved['checkpoint_gb'])} GB of checkpoint{data}, {usd(moved['egress_usd'])}"
    return (
        when(each["starts_at"]),
        f"{rented(each)}, {place(each)}",
        percent(each["share"], 1),
        duration(each["hours"]),
        usd(each["cost_usd"]["expected"]),
        brought,
    )


def _alternatives(found: Sequence[Part]) -> list[RenderableType]:
    if not found:
        return []
    rows = []
    for each in found:
        misses = [name for name in ("deadline", "budget") if each.get(f"meets_{name}") is False]
        label = each["label"].replace("_", " ") + (f" (misses the {' and '.join(misses)})" if misses else "")
        on = f"{rented(each)}, {place(each)}"
        rows.append((label, on, usd(each["cost_usd"]), usd(each["extra_usd"]), duration(each["hours"])))
    titles = ("alternative from now", "machines and place", "cost", "more by", "time")
    return [heading("Alternatives"), listing(titles, rows, right=(2, 3, 4))]


def _infeasible(found: Part) -> list[RenderableType]:
    said = [in_the_way(each, found.get("searched_nodes")) for each in found["conflicts"]]
    parts: list[RenderableType] = [heading("What stands in the way"), *bullets(said)]
    rows = [(each["requirement"], each["from"], each["in_all"], usd(each["cost_usd"])) for each in found["relaxations"]]
    if rows:
        titles = ("give way in", "left now", "would have to be", "costs from now")
        parts += [heading("The ways out, each the least that helps"), listing(titles, rows, right=(3,))]
    return parts
