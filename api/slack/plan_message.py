"""A plan as a message: machines, cost, risk, other ways, what to do next, proof, and buttons."""

import re
from collections.abc import Sequence

from gpuplan.api.exports.export_formats import FORMATS
from gpuplan.api.presentation.infeasibility import in_the_way, no_way_out
from gpuplan.api.presentation.optimality_phrases import best_of, deciding_ladder, why_nothing_of
from gpuplan.api.presentation.phrases import job_name, kind, machines, place, place_and_kind
from gpuplan.api.presentation.sections import Notes, Section
from gpuplan.api.presentation.short_plan import MOST_ALTERNATIVES, obtained_note, other_ways, short_plan
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
from gpuplan.planner.model.plan import Infeasible, Plan, PlanAnswer, PlanMeta, PlannedAnswer
from gpuplan.planner.model.shared import Phase

#: Actions of the buttons; their value is the id of the plan.
CHEAPER, FASTER, SHARE, WATCH, EXPORT = "cheaper", "faster", "share", "watch", "export"
#: Actions of the home tab: show a plan, and open the form.
SHOW, NEW = "show", "new"
_MOST_PHASES = 8


def plan_message(answer: PlanAnswer, *, notes: Sequence[str] = (), shared_by: str = "") -> Message:
    """A plan or an infeasible answer. `notes` come first; `shared_by` makes the message public in the channel."""
    if isinstance(answer, PlannedAnswer):
        text, blocks = _planned(answer.plan, answer.meta)
    else:
        text, blocks = _infeasible(answer.infeasible)
    first = [words(note) for note in notes]
    last = [small(f"shared by {shared_by}")] if shared_by else []
    return message(text, [*first, *blocks, *last], public=bool(shared_by))


def _planned(plan: Plan, meta: PlanMeta) -> tuple[str, list[Block]]:
    cost, hours, ladder, name = plan.cost_usd, plan.hours, plan.capacity_ladder, job_name(plan.job)
    aim = best_of(plan)
    rented = " then ".join(f"{machines(phase)} in {place_and_kind(phase)}" for phase in plan.phases)
    text = f"{aim} for {name}: {usd(cost.expected)} on {rented}"
    blocks = [
        header(f"{aim} for {plain(name, limit=40)}: {usd(cost.expected)}"),
        *_rent(plan.phases),
        fields(
            [
                ("Cost expected", f"{usd(cost.expected)}; 19 of 20 runs within {usd(cost.p95)}"),
                ("Time expected", f"{duration(hours.expected)}; 19 of 20 runs within {duration(hours.p95)}"),
                ("Done", when(plan.finishes_at)),
                ("Meets the deadline", _chance(plan.deadline_probability)),
                ("Obtained at once", f"{percent(ladder.chance)}, {obtained_note(plan, ladder)}" if ladder else None),
                ("Prices", _age(meta)),
            ]
        ),
        *_beside(plan),
        words(f"{why_nothing_of(plan)}: {_proof(plan)}"),
        small(f"{plan.id}, prices of snapshot {plan.snapshot_id}"),
        _buttons(plan),
    ]
    return text, blocks


def _beside(plan: Plan) -> list[Block]:
    """Other ways, and what to do next."""
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


def _rent(phases: Sequence[Phase]) -> list[Block]:
    """What to rent, where and at what price; several phases as a list."""
    lines = [
        f"{machines(phase)} in {place(phase)}, {kind(phase)} at {usd_per_hour(phase.usd_per_node_hour)} per node-hour"
        for phase in phases
    ]
    if len(phases) == 1:
        return [words(f"Rent {lines[0]}.")]
    timed = [
        f"{line}: {duration(phase.hours)}, {usd(phase.cost_usd.expected)}"
        for line, phase in zip(lines, phases, strict=True)
    ]
    return bullets("Rent, one after the other", timed, most=_MOST_PHASES)


def _chance(probability: float | None) -> str:
    return "the job has no deadline" if probability is None else chance(probability)


def _age(meta: PlanMeta) -> str:
    age = meta.price_age_days
    if age is None:
        return "of owned machines"
    return "observed today" if age < 1 else f"oldest observed {number(int(age))} days before this plan"


def _proof(plan: Plan) -> str:
    proof, ladder = plan.certificate, deciding_ladder(plan)
    compared = f"{number(proof.offers_considered)} offers in {number(proof.configurations_considered)} configurations"
    gap, better = (proof.gap, "better") if ladder is None else (ladder.gap, "cheaper on average with refusals")
    proven = f"none is {better}" if gap == 0 else f"none is {better} by more than {percent(gap, 2)}"
    return f"{compared} were compared, and {proven} (proven by {plain(proof.solver)})."


def _buttons(plan: Plan) -> Block:
    cheaper, faster = plan.sensitivity.next_cheaper, plan.sensitivity.next_faster
    buttons = []
    if cheaper:
        label = f"Cheaper: {usd(cheaper.saves_usd)} less by {duration(cheaper.deadline_hours)}"
        buttons.append(button(label, CHEAPER, plan.id))
    if faster:
        label = f"Faster: within {duration(faster.deadline_hours)} for {usd(faster.costs_usd)} more"
        buttons.append(button(label, FASTER, plan.id))
    buttons += [button("Share", SHARE, plan.id, primary=True), button("Watch", WATCH, plan.id)]
    formats = [(name, f"{name}:{plan.id}") for name in FORMATS]
    return actions(*buttons, menu("Export", EXPORT, formats))


def _infeasible(body: Infeasible) -> tuple[str, list[Block]]:
    name = job_name(body.job)
    text = f"No plan meets the requirements of {name}"
    rows = [
        (relaxation.requirement, relaxation.from_, relaxation.to, usd(relaxation.cost_usd))
        for relaxation in body.relaxations
    ]
    ways = [table(("relax", "now", "needed", "plan then costs"), rows, right=(3,))] if rows else []
    nearest = body.nearest_plan
    near = []
    if nearest:
        near.append(
            words(
                f"Nearest plan: {machines(nearest)} in {place_and_kind(nearest)}, {usd(nearest.cost_usd)}, {duration(nearest.hours)}."
            )
        )
    blocks = [
        header(f"No plan for {plain(name, limit=50)}"),
        *bullets(
            "Conflicting requirements",
            [in_the_way(conflict, body.searched_nodes) for conflict in body.conflicts],
        ),
        *([] if rows else [words(f"{no_way_out(body.searched_nodes)}.")]),
        *ways,
        *near,
        *bullets("Warnings", body.warnings),
        small(f"{body.id}, prices of snapshot {body.snapshot_id}"),
        actions(button("Share", SHARE, body.id), button("Watch", WATCH, body.id)),
    ]
    return text, blocks
