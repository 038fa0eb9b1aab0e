"""A decision to own, commit or rent, as a stranger should read it."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType

from api.render.plan import sentences
from api.render.proven import best, why_nothing
from api.render.tables import bullets, cell, facts, footer, heading, listing
from api.render.text import located, number, percent, plain, usd, usd_per_hour

Part = Mapping[str, Any]


def render_decision(answer: Part) -> Group:
    """The answer of `buy`, whichever it is."""
    if answer["outcome"] == "decided":
        return _decided(answer["decision"])
    return _impossible(answer["infeasible"])


def _impossible(found: Part) -> Group:
    names = [f"jobs[{each['job']}] {plain(each['name'])}: {found['reason']}" for each in found["jobs"]]
    head = cell("This forecast cannot be served", "bold red")
    return Group(head, *bullets(names or [found["reason"]]), *_turned_down(found))


def _decided(found: Part) -> Group:
    parts: list[RenderableType] = [*_headline(found), *_used(found["use"]), *_bought(found["buy"])]
    parts += [*_committed(found["commit"]), *_spent(found["commit_spend"]), *_rented(found["rent"]), *_costs(found)]
    parts += [*_bound(found), *_not_bought(found["not_bought"]), *_risk(found), *_sensitivity(found)]
    parts += [*_proof(found), *_turned_down(found)]
    parts += [*sentences(found), footer(f"decision {found['id']}, prices of snapshot {found['snapshot_id']}")]
    return Group(*parts)


def _headline(found: Part) -> list[RenderableType]:
    bought = [f"{each['machines']} x {plain(each['name'])}" for each in found["buy"]]
    terms = [f"{each['nodes']} x {plain(each['instance_type'])}" for each in found["commit"]]
    terms += [f"{usd(each['usd_per_hour'])}/h of {_plan_name(each)}" for each in found["commit_spend"]]
    rents = any(each["on"] for each in found["rent"])
    uses = any(each["busy_share"] > 0 for each in found["use"])
    said = ["use what you have"] if uses else []
    said += [f"buy {', '.join(bought)}"] if bought else []
    said += [f"commit to {', '.join(terms)}"] if terms else []
    said += ["rent the rest" if said else "rent everything"] if rents else []
    cost = found["cost_usd"]
    without, decides = cost["without_buying"], bool(found["buy"] or found["commit"] or found["commit_spend"])
    other = "with what you have and renting" if found["use"] else "for renting everything"
    instead = f" instead of {usd(without)} {other}" if without is not None and decides else ""
    return [
        cell(f"{best(found['certificate'])} for {plain(found['name'])}: {', '.join(said)}", "bold green"),
        cell(
            f"{usd(cost['total'])} over {number(found['horizon_years'])} years at today's value{instead}; "
            f"{usd(found['upfront_usd'])} upfront."
        ),
    ]


def _used(rows: Sequence[Part]) -> list[RenderableType]:
    """What is there already."""
    if not rows:
        return []
    shown = [(each["name"], number(each["units"]), percent(each["busy_share"]), _runs(each)) for each in rows]
    titles = ("what", "number or USD/h", "busy", "runs a year")
    return [heading("What you have"), listing(titles, shown, right=(1, 2))]


def _runs(each: Part) -> str:
    done = [f"{plain(run['name'])} {number(run['runs_per_year'])}" for run in each["runs_per_year"]]
    return ", ".join(done) or "none: renting costs less"


def _bought(rows: Sequence[Part]) -> list[RenderableType]:
    if not rows:
        return []
    titles = ("machine", "number", "each", "upfront", "busy", "pays for itself", "saves on the next best")
    return [heading("What to buy"), listing(titles, [_purchase(each) for each in rows], right=(1, 2, 3, 4, 6))]


def _purchase(each: Part) -> tuple[object, ...]:
    even = each["break_even"]
    pays = "only when sold" if even is None else f"by {even['date']} ({number(even['years'])} years)"
    saves = "nothing else will do" if each["saves_usd"] is None else usd(each["saves_usd"])
    cost = usd(each["usd_each"]), usd(each["upfront_usd"])
    return each["name"], each["machines"], *cost, percent(each["busy_share"]), pays, saves


def _committed(rows: Sequence[Part]) -> list[RenderableType]:
    if not rows:
        return []
    titles = ("nodes", "kind, place and years", "USD/h", "whole obligation", "busy")
    return [heading("What to commit to"), listing(titles, [_term(each) for each in rows], right=(2, 3, 4))]


def _term(each: Part) -> tuple[object, ...]:
    years = f"years {number(each['from_year'])} to {number(each['until_year'])}"
    kind = (
        f"{each['price_kind'].replace('_', ' ')}, {each['provider']} {located(each['region'], each['zone'])}, {years}"
    )
    what = f"{each['nodes']} x {each['instance_type']}"
    return (
        what,
        kind,
        usd_per_hour(each["usd_per_node_hour"]),
        usd(each["total_obligation_usd"]),
        percent(each["busy_share"]),
    )


def _plan_name(each: Part) -> str:
    """`savings plan 1y, p5 in us-east-1`."""
    what = f"{plain(each['family'] or 'any machine')} in {plain(each['region'] or 'any region')}"
    return f"{each['price_kind'].replace('_', ' ')}, {what}"


def _spent(rows: Sequence[Part]) -> list[RenderableType]:
    """Savings plans, and what they are spent on."""
    if not rows:
        return []
    shown = [
        (
            _plan_name(each),
            f"years {number(each['from_year'])} to {number(each['until_year'])}",
            usd_per_hour(each["usd_per_hour"]),
            usd(each["total_obligation_usd"]),
            percent(each["busy_share"]),
            ", ".join(
                f"{plain(on['name'])} on {on['instance_type']} at {usd_per_hour(on['usd_per_node_hour'])}"
                for on in each["on"]
            ),
        )
        for each in rows
    ]
    titles = ("plan", "years", "USD/h", "whole obligation", "used", "for")
    return [heading("What to commit to spending"), listing(titles, shown, right=(2, 3, 4))]


def _bound(found: Part) -> list[RenderableType]:
    """The limits that hold the answer back."""
    said = [
        f"{each['limit']}: {number(each['used'])} of {number(each['available'])} used"
        + (f"; {plain(each['short'])}" if each["short"] else "")
        + f"; without it: {plain(each['without_it'])}, {usd(each['would_save_usd'])} less"
        for each in found["binding"]
    ]
    return [heading("Which limit binds"), *bullets(said)] if said else []


def _not_bought(rows: Sequence[Part]) -> list[RenderableType]:
    if not rows:
        return []
    shown = [
        (
            each["name"],
            each["machines"],
            usd(each["usd_each"]),
            usd(each["extra_cost_usd"]),
            "its electricity alone costs more than renting"
            if each["electricity_alone_costs_more_than_renting"]
            else "",
        )
        for each in rows
    ]
    titles = ("machine", "number", "each", "the best answer with it costs more by", "")
    return [heading("What is not bought"), listing(titles, shown, right=(1, 2, 3))]


def _risk(decision: Part) -> list[RenderableType]:
    """What each scenario makes of what is bought and committed to."""
    found = decision["risk"]
    decides = decision["buy"] or decision["commit"] or decision["commit_spend"]
    if found is None or len(found["scenarios"]) < 2 or not decides:
        return []
    shown = [
        (each["name"], percent(each["probability"]), usd(each["cost_usd"]), usd(each["saves_usd"]))
        for each in found["scenarios"]
    ]
    loses = ("costs more than buying nothing with a probability of", percent(found["loses_probability"]))
    titles = ("scenario", "probability", "cost", "saves on buying nothing")
    return [heading("How sure that is"), listing(titles, shown, right=(1, 2, 3)), facts([loses])]


def _rented(rows: Sequence[Part]) -> list[RenderableType]:
    shown = [
        (
            each["name"],
            percent(each["share_of_runs"], 1),
            number(each["runs_per_year"]),
            f"{on['nodes']} x {on['instance_type']}, {on['price_kind'].replace('_', ' ')}, {on['provider']} {on['region']}",
            usd(on["cost_usd"]),
        )
        for each in rows
        if (on := each["on"]) is not None
    ]
    if not shown:
        return []
    titles = ("job", "rented", "runs a year", "on", "each run")
    return [heading("What to rent"), listing(titles, shown, right=(1, 2, 4))]


def _costs(found: Part) -> list[RenderableType]:
    cost = found["cost_usd"]
    rows: list[tuple[object, ...]] = [(name, usd(amount)) for name, amount in cost["breakdown"].items()]
    rows.append(("total", usd(cost["total"])))
    room = found["room"]
    limits = room["limits"]
    used = [("power", f"{number(room['watts'])} W{_of(limits.get('power_watts'), 'W')}")] if room["watts"] else []
    used += [("slots", f"{room['slots']}{_of(limits.get('slots'), 'slots')}")] if "slots" in limits else []
    return [heading("What it costs"), listing(("part", "USD"), rows, right=(1,)), facts(used)]


def _of(most: float | None, unit: str) -> str:
    return "" if most is None else f" of {number(most)} {unit}"


def _sensitivity(found: Part) -> list[RenderableType]:
    """What more or fewer runs, and another price of electricity, would change."""
    parts: list[RenderableType] = [heading("If something moved")]
    for name, key in (("runs", "utilisation"), ("electricity", "electricity")):
        sweep = found["sensitivity"][key]
        if sweep is None:
            continue
        factor = "times_the_runs" if key == "utilisation" else "times_the_price"
        rows = [(f"{each[factor]:g} x", each["answer"], usd(each["cost_usd"])) for each in sweep["steps"]]
        parts.append(listing((name, "answer", "cost"), rows, right=(0, 2)))
        parts.append(
            facts([_turn(sweep["changes_below"], factor, "below"), _turn(sweep["changes_above"], factor, "above")])
        )
    return parts


def _turn(step: Part | None, factor: str, side: str) -> tuple[str, object]:
    return f"changes {side}", "not at any step" if step is None else f"{step[factor]:g} x: {step['answer']}"


def _proof(found: Part) -> list[RenderableType]:
    proof = found["certificate"]
    rows = [
        (
            "compared",
            f"{number(proof['machines_considered'])} machines, {number(proof['commitments_considered'])} terms",
        ),
        ("objective", usd(proof["objective_usd"])),
        ("lower bound", f"{usd(proof['bound_usd'])}, gap {number(float(proof['gap']))}"),
        ("proven by", proof["solver"]),
    ]
    return [heading(why_nothing(proof)), facts(rows)]


def _turned_down(found: Part) -> list[RenderableType]:
    rows = [(each["name"], each["reason"]) for each in found["turned_down"]]
    return [heading("Not considered"), listing(("machine", "because it"), rows)] if rows else []
