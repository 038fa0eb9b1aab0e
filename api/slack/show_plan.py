"""A plan as a message: what to rent and where, what it costs, how sure that is, why nothing is cheaper, and what next."""

from collections.abc import Mapping, Sequence
from typing import Any

from api.export.formats import FORMATS
from api.render.infeasible import in_the_way, no_way_out, shown
from api.render.machines import machines, place
from api.render.proven import best, why_nothing
from api.render.text import chance, duration, number, percent, plain, usd, usd_per_hour, when
from api.slack.blocks import (
    Block,
    Message,
    actions,
    bullets,
    button,
    fields,
    header,
    menu,
    message,
    small,
    table,
    words,
)

Part = Mapping[str, Any]

#: Buttons by what they do; the value of each is the id of the plan.
CHEAPER, FASTER, SHARE, WATCH, EXPORT = "cheaper", "faster", "share", "watch", "export"
_MOST_PHASES = 8


def plan_message(answer: Part, *, notes: Sequence[str] = (), shared_by: str = "") -> Message:
    """The answer of `plan`, whichever it is. `notes` stand first; `shared_by` makes it one for the whole channel."""
    if answer["outcome"] == "planned":
        text, blocks = _planned(answer["plan"], answer.get("meta") or {})
    else:
        text, blocks = _infeasible(answer["infeasible"])
    first = [words(each) for each in notes]
    last = [small(f"shared by {shared_by}")] if shared_by else []
    return message(text, [*first, *blocks, *last], public=bool(shared_by))


def _planned(plan: Part, meta: Part) -> tuple[str, list[Block]]:
    cost, hours, name = plan["cost_usd"], plan["hours"], _name(plan)
    aim = best(plan["certificate"])
    rented = " then ".join(f"{machines(phase)} in {place(phase)}" for phase in plan["phases"])
    text = f"{aim} for {name}: {usd(cost['expected'])} on {rented}"
    blocks = [
        header(f"{aim} for {plain(name, limit=40)}: {usd(cost['expected'])}"),
        words(f"Rent {rented}."),
        _phases(plan["phases"]),
        fields(
            [
                ("Cost expected", usd(cost["expected"])),
                ("19 of 20 such runs stay within", f"{usd(cost['p95'])}, {duration(hours['p95'])}"),
                ("Time expected", duration(hours["expected"])),
                ("Done", when(plan.get("finishes_at"))),
                ("In time for the deadline", _chance(plan.get("deadline_probability"))),
                ("Prices", _age(meta)),
            ]
        ),
        words(f"{why_nothing(plan['certificate'])}: {_proof(plan['certificate'])}"),
        *bullets("Warnings", plan.get("warnings") or ()),
        small(f"{plan['id']}, prices of snapshot {plan['snapshot_id']}"),
        _buttons(plan),
    ]
    return text, blocks


def _name(body: Part) -> str:
    return plain((body.get("job") or {}).get("name") or "this job")


def _phases(phases: Sequence[Part]) -> Block:
    rows = [
        (machines(each), place(each), usd_per_hour(each["usd_per_node_hour"]), duration(each["hours"]), _cost(each))
        for each in phases[:_MOST_PHASES]
    ]
    return table(("machines", "where", "USD per node-hour", "time", "cost"), rows, right=(2, 3, 4))


def _cost(phase: Part) -> str:
    return usd((phase.get("cost_usd") or {}).get("expected"))


def _chance(probability: float | None) -> str:
    return "no deadline was asked for" if probability is None else chance(probability)


def _age(meta: Part) -> str:
    age = meta.get("price_age_days")
    if age is None:
        return "of own machines"
    return "read today" if age < 1 else f"the oldest read {number(int(age))} days before this plan"


def _proof(proof: Part) -> str:
    compared = (
        f"{number(proof['offers_considered'])} offers in {number(proof['configurations_considered'])} configurations"
    )
    gap = float(proof["gap"])
    proven = "none is better" if gap == 0 else f"none is better by more than {percent(gap, 2)}"
    return f"{compared} were compared, and {proven} (proven by {plain(proof.get('solver') or 'enumeration')})."


def _buttons(plan: Part) -> Block:
    sensitivity = plan.get("sensitivity") or {}
    cheaper, faster = sensitivity.get("next_cheaper"), sensitivity.get("next_faster")
    found = []
    if cheaper:
        label = f"Cheaper: {usd(cheaper['saves_usd'])} less by {duration(cheaper['deadline_hours'])}"
        found.append(button(label, CHEAPER, plan["id"]))
    if faster:
        label = f"Faster: within {duration(faster['deadline_hours'])} for {usd(faster['costs_usd'])} more"
        found.append(button(label, FASTER, plan["id"]))
    found += [button("Share", SHARE, plan["id"], primary=True), button("Watch", WATCH, plan["id"])]
    formats = [(each, f"{each}:{plan['id']}") for each in FORMATS]
    return actions(*found, menu("Export", EXPORT, formats))


def _infeasible(body: Part) -> tuple[str, list[Block]]:
    name = _name(body)
    text = f"No plan meets what {name} asks for"
    rows = [
        (each["requirement"], shown(each.get("from")), shown(each.get("to")), usd(each.get("cost_usd")))
        for each in body.get("relaxations") or ()
    ]
    ways = [table(("give way in", "now", "would have to be", "plan then costs"), rows, right=(3,))] if rows else []
    nearest = body.get("nearest_plan")
    near = []
    if nearest:
        near.append(
            words(
                f"The nearest: {machines(nearest)} in {place(nearest)}, {usd(nearest['cost_usd'])}, {duration(nearest['hours'])}."
            )
        )
    blocks = [
        header(f"No plan for {plain(name, limit=50)}"),
        *bullets(
            "What stands in the way",
            [in_the_way(each, body.get("searched_nodes")) for each in body.get("conflicts") or ()],
        ),
        *([] if rows else [words(f"{no_way_out(body.get('searched_nodes'))}.")]),
        *ways,
        *near,
        *bullets("Warnings", body.get("warnings") or ()),
        small(f"{body['id']}, prices of snapshot {body['snapshot_id']}"),
        actions(button("Share", SHARE, body["id"]), button("Watch", WATCH, body["id"])),
    ]
    return text, blocks
