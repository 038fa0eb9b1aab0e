"""A plan as a stranger should read it: what to rent, what it costs, why nothing is cheaper, how sure that is."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType

from api.render.frontier import render_frontier
from api.render.infeasible import render_infeasible
from api.render.machines import machines, place, price, rented
from api.render.phases import render_schedule
from api.render.proven import aim, best, why_nothing
from api.render.standby import is_standby, render_fallback, render_standby
from api.render.tables import bullets, cell, facts, footer, heading, listing
from api.render.text import UNKNOWN, chance, duration, layout, number, percent, plain, usd, usd_per_hour, when

Part = Mapping[str, Any]

#: The share of runs that every plan's `p95` figures stand for.
P95 = 0.95


def render_answer(answer: Part) -> Group:
    """The answer of `plan`, whichever it is."""
    meta = answer.get("meta") or {}
    if answer["outcome"] == "planned":
        return render_plan(answer["plan"], meta)
    return render_infeasible(answer["infeasible"])


def render_plan(plan: Part, meta: Part) -> Group:
    """Every section of a plan, the most important first."""
    schedule = render_schedule([phase for phase in plan["phases"] if not is_standby(phase)], plan.get("start"))
    parts: list[RenderableType] = [
        *_headline(plan),
        *_cost(plan),
        *schedule,
        *_worth(plan),
        *_certificate(plan),
        *_certainty(plan),
    ]
    behind = any(is_standby(phase) for phase in plan["phases"])
    for phase in plan["phases"]:
        parts += render_standby(phase) if is_standby(phase) else _phase(phase, behind=behind)
    parts += [*render_fallback(plan), *_alternatives(plan)]
    if plan.get("frontier"):
        parts += render_frontier(plan["frontier"])
    parts += [*_sensitivity(plan), *_prices(plan, meta), *sentences(plan)]
    parts.append(footer(f"plan {plan['id']}, prices of snapshot {plan['snapshot_id']}"))
    return Group(*parts)


def _worth(plan: Part) -> list[RenderableType]:
    """What moves or a standby save over the best configuration by itself; nothing for a plan that is one."""
    if len(plan["phases"]) < 2:
        return []
    alone = next((each for each in plan.get("alternatives") or () if each["label"] == "without a move"), None)
    if alone is None or not (alone.get("meets_deadline", True) and alone.get("meets_budget", True)):
        return [*bullets(["no configuration by itself keeps the requirements"])]
    saved, cost = float(alone["extra_usd"]), float(alone["cost_usd"])
    part = "less than 0.1 %" if saved < cost / 1000 else percent(saved / cost, 1)
    name = f"{rented(alone)}, {place(alone)}"
    return [*bullets([f"this saves {usd(alone['extra_usd'])} ({part}) over {name} from start to end"])]


def sentences(answer: Part) -> list[RenderableType]:
    """Assumptions and warnings, each as a sentence."""
    parts: list[RenderableType] = []
    for title, style in (("warnings", "yellow"), ("assumptions", "")):
        if answer.get(title):
            parts += [heading(title.capitalize()), *bullets(answer[title], style)]
    return parts


def _headline(plan: Part) -> list[RenderableType]:
    cost, hours = plan["cost_usd"], plan["hours"]
    named = [(f"{machines(phase)} in {place(phase)}", is_standby(phase)) for phase in plan["phases"]]
    what = " then ".join(name for name, behind in named if not behind)
    what += "".join(f", with {name} standing by" for name, behind in named if behind)
    name = (plan.get("job") or {}).get("name") or "this job"
    return [
        cell(f"{best(plan['certificate'])} for {plain(name)}: {what}", "bold green"),
        cell(
            f"Expected {usd(cost['expected'])} and {duration(hours['expected'])}, done {when(plan.get('finishes_at'))};"
            f" 19 of 20 such runs stay within {usd(cost['p95'])} and {duration(hours['p95'])}."
        ),
    ]


def _cost(plan: Part) -> list[RenderableType]:
    cost = plan["cost_usd"]
    rows: list[tuple[object, ...]] = [(name, usd(amount)) for name, amount in cost["breakdown"].items()]
    rows.append(("total expected", usd(cost["expected"])))
    return [heading("What it costs"), listing(("part", "USD"), rows, right=(1,)), *_worst(plan)]


def _worst(plan: Part) -> list[RenderableType]:
    """What the plan costs at most where exports stop it; nothing for a plan of a release that had no limits."""
    if "run_limit" not in plan:
        return []
    limits = [f"{machines(phase)} after {duration(phase['run_limit']['hours'])}" for phase in plan["phases"]]
    said = f"at most {usd(plan['run_limit']['cost_usd'])} if it never ends by itself: exports stop {', '.join(limits)}"
    return [*bullets([said])]


def _certificate(plan: Part) -> list[RenderableType]:
    proof = plan["certificate"]
    shown = facts(
        [
            ("compared", f"{number(proof['offers_considered'])} offers"),
            ("configurations", f"{number(proof['configurations_considered'])} (machine, node count, place, kind)"),
            ("node counts", proof["enumeration"]["node_counts"]),
            *_proven(proof),
            ("proven by", proof.get("solver")),
        ]
    )
    rejected = sorted(proof["rejected"].items(), key=lambda item: -item[1])
    rows = [(number(count), reason) for reason, count in rejected]
    return [
        heading(why_nothing(proof)),
        shown,
        *bullets(proof.get("over") or ()),
        *([listing(("left out", "because"), rows, right=(0,))] if rows else []),
    ]


def _proven(proof: Part) -> list[tuple[str, object]]:
    """Objective and bound: of cost in dollars, of time or carbon in its own unit with the least cost beside it."""
    gap = f"gap {number(float(proof['gap']))}"
    if aim(proof) == "cost":
        return [("objective", usd(proof["objective_usd"])), ("lower bound", f"{usd(proof['bound_usd'])}, {gap}")]
    least = proof["objective"]
    return [
        ("objective", f"{number(least['value'])} {least['unit']}"),
        ("lower bound", f"{number(least['bound'])} {least['unit']}, {gap}"),
        ("least cost for it", usd(proof["objective_usd"])),
    ]


def _certainty(plan: Part) -> list[RenderableType]:
    hours = plan["hours"]
    confidence = (plan.get("job") or {}).get("confidence")
    shown = facts(
        [
            ("expected, the mean", duration(hours["expected"])),
            ("half of the runs finish within", duration(hours["median"]) if "median" in hours else None),
            (
                f"{percent(confidence)} of runs finish within",
                None if confidence == P95 else duration(hours["confident"]),
            ),
            ("95 % of runs finish within", duration(hours["p95"])),
            ("in time for the deadline", _chance(plan.get("deadline_probability"))),
            ("carbon", None if plan.get("carbon_kg") is None else f"{number(plan['carbon_kg'])} kg CO2e"),
        ]
    )
    return [heading("How sure that is"), shown]


def _chance(probability: float | None) -> str:
    return "no deadline was asked for" if probability is None else chance(probability)


def _phase(phase: Part, *, behind: bool) -> list[RenderableType]:
    """A phase that is planned; `behind` it may stand another, which then does what is left of the work."""
    rate = phase.get("throughput") or {}
    memory = f"{number(phase['memory_gib_per_accelerator'])} of {number(phase['capacity_gib_per_accelerator'])} GiB"
    return [
        heading(f"How it runs on {machines(phase)}"),
        facts(
            [
                ("price", f"{price(phase)}, {place(phase)}"),
                ("runs", _runs(phase, behind=behind)),
                ("precision", phase.get("precision")),
                ("layout", layout(phase["layout"])),
                ("throughput", f"{number(rate['value'])} {rate['unit']}" if rate else UNKNOWN),
                ("model FLOPs utilisation", percent(phase["mfu"], 1)),
                ("memory per accelerator", memory),
                ("interruptions", _interruptions(phase)),
                ("modelled", ", ".join(phase.get("modelled") or ()).replace("_", " ") or None),
            ]
        ),
    ]


def _runs(phase: Part, *, behind: bool) -> str:
    """How long the machines are there, and how much of that is training."""
    hours, training = duration(phase["hours"]), duration(phase["training_hours"])
    if behind:
        return f"{hours} on average, until all is done or the standby is called; all the work is {training} of steady training"
    return f"{hours}, of which {training} steady training"


def _interruptions(phase: Part) -> str | None:
    """How often the machines are taken away, where they can be."""
    interval = phase.get("checkpoint_interval_hours")
    if interval is None:
        return None
    return f"{number(phase['expected_preemptions'])} expected, a checkpoint every {duration(interval)}"


def _alternatives(plan: Part) -> list[RenderableType]:
    """What else could be done, and what it would cost on top; commitments apart, as the obligations they are."""
    parts: list[RenderableType] = []
    if plan.get("alternatives"):
        chosen = _configuration(plan["phases"][0]) if len(plan["phases"]) == 1 else ()
        rows = [_alternative(labels, each, chosen) for labels, each in _merged(plan["alternatives"])]
        titles = ("alternative", "machines and place", "cost", "more by", "time")
        parts += [heading("Alternatives, each without a move"), listing(titles, rows, right=(2, 3, 4))]
    if plan.get("commitments"):
        columns = ("kind", "USD/h", "whole obligation", "pays off after")
        table = listing(columns, [_commitment(each) for each in plan["commitments"]], right=(1, 2, 3))
        parts += [heading("The same machines under a commitment"), table]
    return parts


def _configuration(each: Part) -> tuple[object, ...]:
    """What tells one configuration from another."""
    names = ("provider", "region", "zone", "instance_type", "nodes", "price_kind", "usd_per_node_hour")
    return tuple(each.get(name) for name in names)


def _merged(alternatives: Sequence[Part]) -> list[tuple[list[str], Part]]:
    """Each configuration once, with all its labels, in the order of the first."""
    found: dict[tuple[object, ...], tuple[list[str], Part]] = {}
    for each in alternatives:
        found.setdefault(_configuration(each), ([], each))[0].append(plain(each["label"]).replace("_", " "))
    return list(found.values())


def _alternative(labels: list[str], each: Part, chosen: tuple[object, ...]) -> tuple[object, ...]:
    """One row; the plan itself is named as that."""
    misses = [name for name in ("deadline", "budget") if each.get(f"meets_{name}") is False]
    label = ", ".join(labels) + (f" (misses the {' and '.join(misses)})" if misses else "")
    extra = "this plan" if _configuration(each) == chosen else usd(each["extra_usd"])
    return label, f"{rented(each)}, {place(each)}", usd(each["cost_usd"]), extra, duration(each["hours"])


def _commitment(each: Part) -> tuple[object, ...]:
    kind = each["price_kind"].replace("_", " ")
    hours = each["break_even_hours"]
    pays_off = "never within its term" if hours is None else f"{duration(hours)} of use"
    return kind, usd_per_hour(each["usd_per_node_hour"]), usd(each["total_obligation_usd"]), pays_off


def _sensitivity(plan: Part) -> list[RenderableType]:
    """What a later or an earlier deadline, or another price, would change."""
    sensitivity = plan["sensitivity"]
    # Steps are known of plans on one configuration: one that moves may be cheaper yet.
    moves = ((plan.get("job") or {}).get("constraints") or {}).get("max_phases") != 1
    least, most = ("at least ", "at most ") if moves else ("", "")
    cheaper, faster = sensitivity.get("next_cheaper"), sensitivity.get("next_faster")
    holds, per_hour = sensitivity.get("holds_until_usd_per_node_hour"), sensitivity.get("deadline_usd_per_hour")
    rows = [
        (
            "each hour of deadline",
            f"is worth {usd(per_hour)} on the line between the best trades" if per_hour else None,
        ),
        (
            "with more time",
            cheaper and f"a deadline of {duration(cheaper['deadline_hours'])} saves {least}{usd(cheaper['saves_usd'])}",
        ),
        (
            "with less time",
            faster
            and f"a deadline of {duration(faster['deadline_hours'])} costs {most}{usd(faster['costs_usd'])} more",
        ),
        ("stays cheapest up to", holds and f"{usd_per_hour(holds)} per node-hour"),
    ]
    return [heading("If something moved"), facts(rows)] if any(value for _, value in rows) else []


def _prices(plan: Part, meta: Part) -> list[RenderableType]:
    rows: list[tuple[str, object]] = [("price", each) for each in dict.fromkeys(map(_observed, plan["phases"]))]
    age = meta.get("price_age_days")
    rows.append(("age", None if age is None else f"{number(int(age))} days when this plan was made"))
    return [heading("Which prices it rests on"), facts(rows)]


def _observed(phase: Part) -> str:
    """When the price was read and from where."""
    about = "about " if phase.get("price_observed_approximately") else ""
    return (
        f"observed {about}{when(phase.get('price_observed_at'))[:10]}, {phase.get('price_source') or 'source unknown'}"
    )
