"""Data for the page of a saved answer: the presentation's sections, charts and links."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gpuplan.api.presentation.infeasibility import in_the_way, no_way_out, render_infeasible, shown
from gpuplan.api.presentation.machine_phrases import machines, place, rented
from gpuplan.api.presentation.optimality_phrases import aim, best
from gpuplan.api.presentation.plan import render_plan
from gpuplan.api.presentation.plan_charts import frontier_figure, phases_figure, sorted_rows
from gpuplan.api.presentation.text_formatting import duration, number, usd
from gpuplan.api.services.catalogue import PricesSince
from gpuplan.api.services.service_context import days_between
from gpuplan.api.web.answer_card import answer_card, glance
from gpuplan.api.web.form_words import in_form_words, label_of, sections_in_form_words
from gpuplan.api.web.job_form import stated
from gpuplan.api.web.plan_exports import handovers
from gpuplan.api.web.text_sections import keyed, sections
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import UnusableInput

#: Sortable columns of the alternatives.
SORTS = ("label", "cost", "extra", "time")
#: Sections by position on the page.
_PLACES = (
    *(
        "cost",
        "sure",
        "moved",
        "prices",
        "schedule",
        "proof",
        "runs",
        "fallback",
        "ladder",
        "commitments",
        "assumptions",
    ),
)
#: Sections that the page renders itself.
_RENDERED_BY_PAGE = ("alternatives", "frontier", "warnings", "conflicts", "ways_out")


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link that changes the job, with its effect."""

    href: str
    words: str
    detail: str = ""


def planned_view(answer: JsonObject, *, sort: str | None, now: datetime, prices_since: PricesSince) -> JsonObject:
    """The data of a plan's page. Raises `UnusableInput` at `sort` for an unknown column."""
    plan, meta = answer["plan"], answer.get("meta") or {}
    all_sections = sections_in_form_words(sections(render_plan(plan, meta)))
    base = f"/plans/{plan['id']}"
    return (
        {
            "placed": {key: keyed(all_sections, key) for key in _PLACES},
            "others": [
                section
                for section in all_sections
                if section.title and section.key not in (*_PLACES, *_RENDERED_BY_PAGE)
            ],
            "frontier": frontier_figure(plan, f"{base}/if?point="),
            "timeline": phases_figure(plan),
            "deadline": (plan.get("job") or {}).get("deadline"),
            "what_if": what_if_links(plan, base),
            "alternatives": alternatives(plan, base, sort),
            "sort": sort,
            "handovers": handovers(answer),
            "proof": proof_sentence(plan),
        }
        | card_view(answer, base)
        | common(plan, base, now, prices_since)
    )


def live_view(answer: JsonObject, base: str) -> JsonObject:
    """The data of the card while a deadline is dragged; for an infeasible job its first sentences."""
    if answer["outcome"] != "planned":
        lead = sections_in_form_words(sections(render_infeasible(answer["infeasible"])))[0]
        return {"lead": [row[0] for block in lead.blocks for row in block.rows], "live": True}
    return {"lead": None, "live": True} | card_view(answer, base)


def card_view(answer: JsonObject, base: str) -> JsonObject:
    """The data of the card of an answer."""
    plan = answer["plan"]
    return {
        "plan": plan,
        "name": (plan.get("job") or {}).get("name") or "this job",
        "best": best(plan["certificate"]),
        "card": answer_card(answer, base),
        "rent": [f"{machines(phase)} in {place(phase)}" for phase in plan["phases"]],
        "glance": glance(plan),
        "stated": [(label, in_form_words(value), assumed) for label, value, assumed in stated(plan.get("job") or {})],
    }


def infeasible_view(answer: JsonObject, *, now: datetime, prices_since: PricesSince) -> JsonObject:
    """The data of an infeasible job's page."""
    body = answer["infeasible"]
    all_sections = sections_in_form_words(sections(render_infeasible(body)))
    base = f"/plans/{body['id']}"
    return {
        "plan": body,
        "name": (body.get("job") or {}).get("name") or "this job",
        "lead": [row[0] for block in all_sections[0].blocks for row in block.rows] if not all_sections[0].title else [],
        "conflicts": [in_the_way(names, body.get("searched_nodes"), label_of) for names in body.get("conflicts") or ()],
        "ways_out": ways_out(body, base),
        "no_way_out": no_way_out(body.get("searched_nodes")),
        "others": [section for section in all_sections if section.title and section.key not in _RENDERED_BY_PAGE],
    } | common(body, base, now, prices_since)


def common(body: JsonObject, base: str, now: datetime, prices_since: PricesSince) -> JsonObject:
    """Data of both kinds of answers: warnings, age of the prices, and whether newer ones exist."""
    observed = [phase["price_observed_at"] for phase in body.get("phases") or () if phase.get("price_observed_at")]
    oldest = min(observed, default=None)
    return {
        "base": base,
        "warnings": [in_form_words(warning) for warning in body.get("warnings") or ()],
        "observed": oldest,
        "age_days": None if oldest is None else int(days_between(now, datetime.fromisoformat(oldest))),
        "prices_since": prices_since,
    }


def what_if_links(plan: JsonObject, base: str) -> list[Link]:
    """Links that plan with more or less time, or without requirements, with their effect."""
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
        links.append(Link(href=f"{base}/if?frontier=true", words="Cost against time", detail="Pareto frontier"))
    return links


def alternatives(plan: JsonObject, base: str, sort: str | None) -> list[JsonObject]:
    """Alternatives without duplicates, with all labels, in the requested order, with links that plan on them."""
    if sort is not None and sort.removeprefix("-") not in SORTS:
        accepted = ", ".join(f"{name}, -{name}" for name in SORTS)
        raise UnusableInput.at("sort", message=f"is not a column; accepted: {accepted}")
    chosen = _configuration(plan["phases"][0]) if len(plan["phases"]) == 1 else None
    rows_by_configuration: dict[tuple[object, ...], JsonObject] = {}
    for index, alternative in enumerate(plan.get("alternatives") or ()):
        key = _configuration(alternative)
        row = rows_by_configuration.setdefault(
            key, _alternative(alternative, f"{base}/if?alternative={index}", current=key == chosen)
        )
        row["labels"].append(str(alternative["label"]).replace("_", " "))
    rows = list(rows_by_configuration.values())
    for row in rows:
        row["keys"]["label"] = ", ".join(row["labels"])
    return sorted_rows(rows, sort) if sort else rows


def _alternative(document: JsonObject, href: str, *, current: bool) -> JsonObject:
    misses = [name for name in ("deadline", "budget") if document.get(f"meets_{name}") is False]
    return {
        "labels": [],
        "misses": f"misses the {' and '.join(misses)}" if misses else "",
        "what": rented(document),
        "where": place(document),
        "cost": usd(document["cost_usd"]),
        "extra": "this plan" if current else usd(document["extra_usd"]),
        "time": duration(document["hours"]),
        "href": None if current else href,
        "current": current,
        "keys": {"cost": float(document["cost_usd"]), "extra": float(document["extra_usd"]), "time": document["hours"]},
    }


def _configuration(configuration: Mapping[str, Any]) -> tuple[object, ...]:
    """Identity of a configuration."""
    names = ("provider", "region", "zone", "instance_type", "nodes", "price_kind", "usd_per_node_hour")
    return tuple(configuration.get(name) for name in names)


def proof_sentence(plan: JsonObject) -> str | None:
    """The certificate as a sentence, for plans of least cost."""
    proof = plan["certificate"]
    if aim(proof) != "cost":
        return None
    looked = (
        f"{number(proof['offers_considered'])} offers give {number(proof['configurations_considered'])} configurations"
        " of machine, node count, place and price kind that could run this job."
    )
    # The comparisons beyond single configurations are listed below the sentence.
    those = "no plan of those compared" if proof.get("over") else "none of them"
    if float(proof["gap"]) == 0:
        return f"{looked} An exact search proves that {those} costs less than {usd(proof['objective_usd'])}."
    return (
        f"{looked} {those.capitalize()} can cost less than {usd(proof['bound_usd'])};"
        f" this plan costs {usd(proof['objective_usd'])}."
    )


def ways_out(document: JsonObject, base: str) -> list[JsonObject]:
    """Relaxations: requirements with old and new value, the cost of the plan, and a link that plans with it."""
    rows = []
    for index, relaxation in enumerate(document.get("relaxations") or ()):
        names = [label_of(name) for name in str(relaxation["requirement"]).split(" + ")]
        asked, needed = (shown(relaxation.get(end)).split("; ") for end in ("from", "to"))
        rows.append(
            {
                "gives": list(zip(names, asked, needed, strict=True)),
                "cost": usd(relaxation.get("cost_usd")),
                "on": f"{rented(relaxation['plan'])}, {place(relaxation['plan'])}" if relaxation.get("plan") else "",
                "href": f"{base}/if?way_out={index}",
            }
        )
    return rows
