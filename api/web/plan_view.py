"""What the page shows of a saved answer: the sections that the command line has, and what only a page can do with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.questions.catalogue import PricesSince
from api.questions.opened import days_between
from api.render.infeasible import in_the_way, no_way_out, render_infeasible, shown
from api.render.machines import machines, place, rented
from api.render.plan import render_plan
from api.render.proven import aim, best
from api.render.standby import is_standby
from api.render.text import chance, duration, number, usd, when
from api.web.form_words import in_form_words, label_of, sections_in_form_words
from api.web.plan_charts import deadline_at, frontier_figure, phases_figure, sorted_rows
from api.web.plan_exports import handovers
from api.web.told import sections, titled
from catalog.errors import UnusableInput

Document = dict[str, Any]

#: Columns of the alternatives that can be sorted by.
SORTS = ("label", "cost", "extra", "time")
#: Where sections of the command line's answer stand on the page, by how their titles begin.
_PLACES = {
    "cost": ("What it costs",),
    "sure": ("How sure that is",),
    "moved": ("If something moved",),
    "prices": ("Which prices it rests on",),
    "schedule": ("What happens when",),
    "proof": ("Why nothing",),
    "runs": ("How it runs", "What stands by"),
    "fallback": ("If it falls behind",),
    "commitments": ("The same machines under a commitment",),
    "assumptions": ("Assumptions",),
}
#: Sections that the page has in a form of its own.
_OWN = ("Alternatives", "Cost against time", "Warnings")


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Where a change of the job leads, and what it would do."""

    href: str
    words: str
    detail: str = ""


def planned_view(answer: Document, *, sort: str | None, now: datetime, prices_since: PricesSince) -> Document:
    """Everything that the page of a plan shows. Raises `UnusableInput` at `sort` for an unknown column."""
    plan, meta = answer["plan"], answer.get("meta") or {}
    told = sections_in_form_words(sections(render_plan(plan, meta)))
    base = f"/plans/{plan['id']}"
    known = tuple(title for titles in _PLACES.values() for title in titles)
    return {
        "plan": plan,
        "name": (plan.get("job") or {}).get("name") or "this job",
        "best": best(plan["certificate"]),
        "rent": rent_rows(plan),
        "glance": glance(plan),
        "told": {place_: titled(told, *titles) for place_, titles in _PLACES.items()},
        "others": [each for each in told if each.title and not each.title.startswith((*known, *_OWN))],
        "frontier": frontier_figure(plan, f"{base}/if?point="),
        "timeline": phases_figure(plan),
        "what_if": what_if_links(plan, base),
        "alternatives": alternatives(plan, base, sort),
        "sort": sort,
        "handovers": handovers(answer),
        "proof": proof_sentence(plan),
    } | common(plan, base, now, prices_since)


def infeasible_view(answer: Document, *, now: datetime, prices_since: PricesSince) -> Document:
    """Everything that the page of a job without a plan shows."""
    found = answer["infeasible"]
    told = sections_in_form_words(sections(render_infeasible(found)))
    base = f"/plans/{found['id']}"
    return {
        "plan": found,
        "name": (found.get("job") or {}).get("name") or "this job",
        "lead": [row[0] for block in told[0].blocks for row in block.rows] if not told[0].title else [],
        "conflicts": [
            in_the_way(names, found.get("searched_nodes"), label_of) for names in found.get("conflicts") or ()
        ],
        "ways_out": ways_out(found, base),
        "no_way_out": no_way_out(found.get("searched_nodes")),
        "others": [
            each
            for each in told
            if each.title and not each.title.startswith(("What stands in the way", "The ways out", "Warnings"))
        ],
    } | common(found, base, now, prices_since)


def common(body: Document, base: str, now: datetime, prices_since: PricesSince) -> Document:
    """What both kinds of answers have: how old the prices are, and whether there are newer ones."""
    observed = [each["price_observed_at"] for each in body.get("phases") or () if each.get("price_observed_at")]
    oldest = min(observed, default=None)
    return {
        "base": base,
        "warnings": [in_form_words(each) for each in body.get("warnings") or ()],
        "observed": oldest,
        "age_days": None if oldest is None else int(days_between(now, datetime.fromisoformat(oldest))),
        "prices_since": prices_since,
    }


def glance(plan: Document) -> list[tuple[str, str, str]]:
    """The answer at one glance: what, its figure, and a word beside it."""
    cost, hours = plan["cost_usd"], plan["hours"]
    probability = plan.get("deadline_probability")
    rows = [
        ("Expected cost", usd(cost["expected"]), f"95 % of runs: {usd(cost['p95'])} at most"),
        ("Expected time", duration(hours["expected"]), f"95 % of runs: {duration(hours['p95'])} at most"),
        ("Done", when(plan.get("finishes_at"))[:10], when(plan.get("finishes_at"))[11:]),
    ]
    if probability is not None:
        due = deadline_at(plan)
        within = f"by {when(due.isoformat())}" if due else ""
        rows.append(("In time for the deadline", chance(probability), within))
    if plan.get("carbon_kg") is not None:
        rows.append(("Carbon", f"{number(plan['carbon_kg'])} kg", "CO2e"))
    return rows


def rent_rows(plan: Document) -> list[tuple[str, str, str]]:
    """What to rent, where, and for how long, a row per phase."""
    return [
        (machines(phase), place(phase), "stands by" if is_standby(phase) else duration(phase["hours"]))
        for phase in plan["phases"]
    ]


def what_if_links(plan: Document, base: str) -> list[Link]:
    """What a little more or less time would change, and planning anew, each a link that does it."""
    sensitivity = plan["sensitivity"]
    moves = ((plan.get("job") or {}).get("constraints") or {}).get("max_phases") != 1
    least, most = ("at least ", "at most ") if moves else ("", "")
    links = []
    if cheaper := sensitivity.get("next_cheaper"):
        hours = cheaper["deadline_hours"]
        detail = f"a deadline of {duration(hours)} saves {least}{usd(cheaper['saves_usd'])}"
        links.append(Link(href=f"{base}/if?deadline_hours={hours!r}", words="Cheaper, with more time", detail=detail))
    if faster := sensitivity.get("next_faster"):
        hours = faster["deadline_hours"]
        detail = f"a deadline of {duration(hours)} costs {most}{usd(faster['costs_usd'])} more"
        links.append(Link(href=f"{base}/if?deadline_hours={hours!r}", words="Faster", detail=detail))
    job = plan.get("job") or {}
    if job.get("deadline") is not None or job.get("budget_usd") is not None:
        links.append(Link(href=f"{base}/if?any_speed=true", words="Cheapest at any speed", detail="without a deadline"))
    if not plan.get("frontier"):
        links.append(Link(href=f"{base}/if?frontier=true", words="Cost against time", detail="every best trade"))
    return links


def alternatives(plan: Document, base: str, sort: str | None) -> list[Document]:
    """Each other configuration once with all its labels, in the asked order, with a link that plans on it."""
    if sort is not None and sort.removeprefix("-") not in SORTS:
        accepted = ", ".join(f"{name}, -{name}" for name in SORTS)
        raise UnusableInput.at("sort", message=f"is no column; accepted: {accepted}")
    chosen = _configuration(plan["phases"][0]) if len(plan["phases"]) == 1 else None
    found: dict[tuple[object, ...], Document] = {}
    for index, each in enumerate(plan.get("alternatives") or ()):
        key = _configuration(each)
        row = found.setdefault(key, _alternative(each, f"{base}/if?alternative={index}", current=key == chosen))
        row["labels"].append(str(each["label"]).replace("_", " "))
    rows = list(found.values())
    for row in rows:
        row["keys"]["label"] = ", ".join(row["labels"])
    return sorted_rows(rows, sort) if sort else rows


def _alternative(each: Document, href: str, *, current: bool) -> Document:
    misses = [name for name in ("deadline", "budget") if each.get(f"meets_{name}") is False]
    return {
        "labels": [],
        "misses": f"misses the {' and '.join(misses)}" if misses else "",
        "what": rented(each),
        "where": place(each),
        "cost": usd(each["cost_usd"]),
        "extra": "this plan" if current else usd(each["extra_usd"]),
        "time": duration(each["hours"]),
        "href": None if current else href,
        "current": current,
        "keys": {"cost": float(each["cost_usd"]), "extra": float(each["extra_usd"]), "time": each["hours"]},
    }


def _configuration(each: Mapping[str, Any]) -> tuple[object, ...]:
    """What tells one configuration from another."""
    names = ("provider", "region", "zone", "instance_type", "nodes", "price_kind", "usd_per_node_hour")
    return tuple(each.get(name) for name in names)


def proof_sentence(plan: Document) -> str | None:
    """The certificate in words, for plans of least cost."""
    proof = plan["certificate"]
    if aim(proof) != "cost":
        return None
    looked = (
        f"{number(proof['offers_considered'])} offers make {number(proof['configurations_considered'])} configurations"
        " of machine, node count, place and price kind that could run this job."
    )
    # What was compared beyond single configurations, and what was not, is listed below the sentence.
    those = "no plan of those compared" if proof.get("over") else "none of them"
    if float(proof["gap"]) == 0:
        return f"{looked} An exact search proves that {those} costs less than {usd(proof['objective_usd'])}."
    return (
        f"{looked} {those.capitalize()} can cost less than {usd(proof['bound_usd'])};"
        f" this plan costs {usd(proof['objective_usd'])}."
    )


def ways_out(found: Document, base: str) -> list[Document]:
    """Each way out: what gives way from what to what, what the plan then costs, and a link that plans so."""
    rows = []
    for index, each in enumerate(found.get("relaxations") or ()):
        names = [label_of(name) for name in str(each["requirement"]).split(" + ")]
        asked, needed = (shown(each.get(end)).split("; ") for end in ("from", "to"))
        rows.append(
            {
                "gives": list(zip(names, asked, needed, strict=True)),
                "cost": usd(each.get("cost_usd")),
                "on": f"{rented(each['plan'])}, {place(each['plan'])}" if each.get("plan") else "",
                "href": f"{base}/if?way_out={index}",
            }
        )
    return rows
