"""A plan as a message: machines, cost, risk, other ways, what to do next, proof, and buttons."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gpuplan.api.exports.export_formats import FORMATS
from gpuplan.api.presentation.infeasibility import in_the_way, no_way_out, shown
from gpuplan.api.presentation.machine_phrases import machines, place
from gpuplan.api.presentation.optimality_phrases import best, why_nothing
from gpuplan.api.presentation.sections import Notes, Section
from gpuplan.api.presentation.short_plan import MOST_ALTERNATIVES, other_ways, short_plan
from gpuplan.api.presentation.text_formatting import chance, duration, number, percent, plain, usd, usd_per_hour, when
from gpuplan.api.schemas.answers import read_answer
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
from gpuplan.catalog.runtime.errors import UnusableInput

Part = Mapping[str, Any]

#: Actions of the buttons; their value is the id of the plan.
CHEAPER, FASTER, SHARE, WATCH, EXPORT = "cheaper", "faster", "share", "watch", "export"
#: Actions of the home tab: show a plan, and open the form.
SHOW, NEW = "show", "new"
_MOST_PHASES = 8


def plan_message(answer: Part, *, notes: Sequence[str] = (), shared_by: str = "") -> Message:
    """A plan or an infeasible answer. `notes` come first; `shared_by` makes the message public in the channel."""
    if answer["outcome"] == "planned":
        text, blocks = _planned(answer)
    else:
        text, blocks = _infeasible(answer["infeasible"])
    first = [words(note) for note in notes]
    last = [small(f"shared by {shared_by}")] if shared_by else []
    return message(text, [*first, *blocks, *last], public=bool(shared_by))


def _planned(answer: Part) -> tuple[str, list[Block]]:
    plan, name = answer["plan"], _name(answer["plan"])
    cost, hours = plan["cost_usd"], plan["hours"]
    aim = best(plan["certificate"])
    text = f"{aim} for {name}: {usd(cost['expected'])} on {' then '.join(_rented(phase) for phase in plan['phases'])}"
    ladder = plan.get("capacity_ladder")
    blocks = [
        header(f"{aim} for {plain(name, limit=40)}: {usd(cost['expected'])}"),
        *_rent(plan["phases"]),
        fields(
            [
                ("Cost expected", f"{usd(cost['expected'])}; 19 of 20 runs within {usd(cost['p95'])}"),
                ("Time expected", f"{duration(hours['expected'])}; 19 of 20 runs within {duration(hours['p95'])}"),
                ("Done", when(plan.get("finishes_at"))),
                ("Meets the deadline", _chance(plan.get("deadline_probability"))),
                ("Obtained at once", f"{percent(ladder['chance'])}, modelled" if ladder else None),
                ("Prices", _age(answer.get("meta") or {})),
            ]
        ),
        *_beside(answer),
        words(f"{why_nothing(plan['certificate'])}: {_proof(plan['certificate'])}"),
        small(f"{plan['id']}, prices of snapshot {plan['snapshot_id']}"),
        _buttons(plan),
    ]
    return text, blocks


def _beside(answer: Part) -> list[Block]:
    """Other ways, and what to do next; only the warnings for a plan of another release, which this one cannot read."""
    try:
        plan = read_answer(answer).plan  # type: ignore[union-attr]
    except UnusableInput:
        return bullets("Warnings", answer["plan"].get("warnings") or ())
    notices = {one.key: one for one in short_plan(plan)}
    blocks = []
    most = MOST_ALTERNATIVES - (plan.other_framework is not None)
    if rows := other_ways(plan, most):
        blocks.append(table(("other ways", "cost", "time", "machines"), rows, right=(1, 2)))
    for key in ("next", "behind", "first"):
        if key in notices:
            blocks += bullets(notices[key].title, [_in_slack(sentence) for sentence in _sentences(notices[key])])
    return blocks


def _sentences(notice: Section) -> list[str]:
    return [sentence for part in notice.parts if isinstance(part, Notes) for sentence in part.sentences]


def _in_slack(sentence: str) -> str:
    """A sentence of the command line without its options."""
    return re.sub(r",? (?:listed )?with --details$", "", sentence)


def _name(body: Part) -> str:
    return plain((body.get("job") or {}).get("name") or "this job")


def _rented(phase: Part) -> str:
    return f"{machines(phase)} in {place(phase)}"


def _rent(phases: Sequence[Part]) -> list[Block]:
    """What to rent, where and at what price; several phases as a list."""
    lines = [
        f"{_rented(phase)}, {str(phase['price_kind']).replace('_', ' ')} at {usd_per_hour(phase['usd_per_node_hour'])} "
        f"per node-hour"
        for phase in phases
    ]
    if len(phases) == 1:
        return [words(f"Rent {lines[0]}.")]
    timed = [f"{line}: {duration(phase['hours'])}, {_cost(phase)}" for line, phase in zip(lines, phases, strict=True)]
    return bullets("Rent, one after the other", timed, most=_MOST_PHASES)


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
