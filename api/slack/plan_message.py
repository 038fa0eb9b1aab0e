"""A plan as a message: machines, cost, risk, proof, and buttons."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpuplan.api.exports.export_formats import FORMATS
from gpuplan.api.presentation.infeasibility import in_the_way, no_way_out, shown
from gpuplan.api.presentation.machine_phrases import machines, place
from gpuplan.api.presentation.optimality_phrases import best, why_nothing
from gpuplan.api.presentation.text_formatting import chance, duration, number, percent, plain, usd, usd_per_hour, when
from gpuplan.api.slack.block_kit import (
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

#: Actions of the buttons; their value is the id of the plan.
CHEAPER, FASTER, SHARE, WATCH, EXPORT = "cheaper", "faster", "share", "watch", "export"
_MOST_PHASES = 8


def plan_message(answer: Part, *, notes: Sequence[str] = (), shared_by: str = "") -> Message:
    """A plan or an infeasible answer. `notes` come first; `shared_by` makes the message public in the channel."""
    if answer["outcome"] == "planned":
        text, blocks = _planned(answer["plan"], answer.get("meta") or {})
    else:
        text, blocks = _infeasible(answer["infeasible"])
    first = [words(note) for note in notes]
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
                ("Meets the deadline", _chance(plan.get("deadline_probability"))),
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
        (
            machines(phase),
            place(phase),
            usd_per_hour(phase["usd_per_node_hour"]),
            duration(phase["hours"]),
            _cost(phase),
        )
        for phase in phases[:_MOST_PHASES]
    ]
    return table(("machines", "where", "USD per node-hour", "time", "cost"), rows, right=(2, 3, 4))


def _cost(phase: Part) -> str:
    return usd((phase.get("cost_usd") or {}).get("expected"))


def _chance(probability: float | None) -> str:
    return "the job has no deadline" if probability is None else chance(probability)


def _age(meta: Part) -> str:
    age = meta.get("price_age_days")
    if age is None:
        return "of owned machines"
    return "observed today" if age < 1 else f"oldest observed {number(int(age))} days before this plan"


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
    buttons = []
    if cheaper:
        label = f"Cheaper: {usd(cheaper['saves_usd'])} less by {duration(cheaper['deadline_hours'])}"
        buttons.append(button(label, CHEAPER, plan["id"]))
    if faster:
        label = f"Faster: within {duration(faster['deadline_hours'])} for {usd(faster['costs_usd'])} more"
        buttons.append(button(label, FASTER, plan["id"]))
    buttons += [button("Share", SHARE, plan["id"], primary=True), button("Watch", WATCH, plan["id"])]
    formats = [(name, f"{name}:{plan['id']}") for name in FORMATS]
    return actions(*buttons, menu("Export", EXPORT, formats))


def _infeasible(body: Part) -> tuple[str, list[Block]]:
    name = _name(body)
    text = f"No plan meets the requirements of {name}"
    rows = [
        (
            relaxation["requirement"],
            shown(relaxation.get("from")),
            shown(relaxation.get("to")),
            usd(relaxation.get("cost_usd")),
        )
        for relaxation in body.get("relaxations") or ()
    ]
    ways = [table(("relax", "now", "needed", "plan then costs"), rows, right=(3,))] if rows else []
    nearest = body.get("nearest_plan")
    near = []
    if nearest:
        near.append(
            words(
                f"Nearest plan: {machines(nearest)} in {place(nearest)}, {usd(nearest['cost_usd'])}, {duration(nearest['hours'])}."
            )
        )
    blocks = [
        header(f"No plan for {plain(name, limit=50)}"),
        *bullets(
            "Conflicting requirements",
            [in_the_way(conflict, body.get("searched_nodes")) for conflict in body.get("conflicts") or ()],
        ),
        *([] if rows else [words(f"{no_way_out(body.get('searched_nodes'))}.")]),
        *ways,
        *near,
        *bullets("Warnings", body.get("warnings") or ()),
        small(f"{body['id']}, prices of snapshot {body['snapshot_id']}"),
        actions(button("Share", SHARE, body["id"]), button("Watch", WATCH, body["id"])),
    ]
    return text, blocks
