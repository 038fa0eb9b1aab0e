"""The typed answer and the JSON object of an outcome, the same for every interface and at any time.

Money is a decimal string of dollars, times are ISO 8601 in UTC. `id` is a hash of everything else
in the plan, so the same job, start, snapshot, settings and version give the same id.
"""

from dataclasses import asdict, fields, replace
from datetime import timedelta
from typing import cast

from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.cost.credits import Credited, after_credits
from gpuplan.planner.cost.run_limit import with_run_limits
from gpuplan.planner.model import plan as model
from gpuplan.planner.model import shared
from gpuplan.planner.model.certificate import SolverCertificate
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.learned import LearnedCorrections
from gpuplan.planner.model.outcome import (
    CommitmentOffer,
    FrameworkChoice,
    LabelledChoice,
    LeastChange,
    NoPlan,
    Planned,
    SensitivityRanges,
)
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.performance.layout_splits import MAX_CONTEXT, MAX_PIPELINE, MAX_TENSOR
from gpuplan.planner.serialization.capacity_ladder_document import capacity_ladder_answer, live_capacity
from gpuplan.planner.serialization.content_ids import answer_id
from gpuplan.planner.serialization.phase_document import (
    configuration,
    contingency_standby_answer,
    correction_answer,
    cost_and_hours,
    cost_answer,
    hours_answer,
    machines,
    phase_answer,
    usd,
)
from gpuplan.planner.serialization.rounded_figures import UNITS, maybe_rounded, moment, rounded, summed, to_second


def answer_body(
    outcome: Planned | NoPlan, job: JsonObject, *, version: str, inventory: str = ""
) -> model.Plan | model.Infeasible:
    """The plan, or why there is none, under its id.

    `job` is the job's document as it is echoed, `version` that of gpuplan, `inventory` the id of the user's own
    machines, if there are any: whoever verifies the answer needs the same ones.
    """
    if isinstance(outcome, Planned):
        plan = plan_answer(outcome, job, version, inventory)
        return replace(plan, id=answer_id(plan, "plan"))
    none = infeasible_answer(outcome, job, version, inventory)
    return replace(none, id=answer_id(none, "none"))


def plan_answer(plan: Planned, job: JsonObject, version: str, inventory: str = "") -> model.Plan:
    """The plan, as yet without an id."""
    credited = after_credits(plan) if plan.settings.credits else None
    start, hours = to_second(plan.start), hours_answer(plan.hours)
    phases = tuple(phase_answer(phase, plan.start) for phase in plan.phases)
    phases, run_limit = with_run_limits(phases, hours, start, job.get("deadline"))
    return model.Plan(
        id="",
        job=job,
        snapshot_id=plan.snapshot_id,
        version=version,
        settings=_settings(plan.settings),
        learned=_learned(plan.learned),
        start=start,
        currency="USD",
        cost_usd=cost_answer(plan.cost, plan.phases),
        hours=hours,
        finishes_at=to_second(plan.start + timedelta(hours=plan.hours.expected)),
        deadline_probability=maybe_rounded(plan.deadline_probability),
        carbon_kg=maybe_rounded(summed([phase.carbon_kg for phase in plan.phases])),
        phases=phases,
        fallback=None if plan.fallback is None else contingency_standby_answer(plan.fallback, plan.start),
        capacity_ladder=None if plan.ladder is None else capacity_ladder_answer(plan, plan.ladder),
        live_capacity=None if plan.capacity is None else live_capacity(plan.capacity),
        certificate=_certificate(plan),
        sensitivity=_sensitivity(plan.sensitivity),
        alternatives=tuple(map(_alternative, plan.alternatives)),
        other_framework=None if plan.other_framework is None else _other_framework(plan.other_framework),
        commitments=tuple(map(_commitment, plan.commitments)),
        frontier=None if plan.frontier is None else tuple(map(configuration, plan.frontier)),
        credits=None if credited is None else _credits(credited),
        assumptions=(*plan.assumptions, *_about_money(plan.settings, credited)),
        doubts=plan.doubts,
        warnings=plan.warnings,
        actions=plan.actions,
        run_limit=run_limit,
        inventory=inventory or None,
    )


def _certificate(plan: Planned) -> model.Certificate:
    certificate = plan.proof.certificate
    return model.Certificate(
        objective_usd=usd(round(certificate.objective_usd * 1e6)),
        bound_usd=usd(round(certificate.bound_usd * 1e6)),
        gap=certificate.gap,
        objective=_objective(certificate),
        offers_considered=plan.proof.offers_considered,
        configurations_considered=plan.proof.configurations_considered,
        columns=certificate.columns,
        rejected=dict(sorted(plan.proof.rejected.items())),
        enumeration=_enumeration(plan.job),
        solver=certificate.solver,
        over=tuple(certificate.over) or None,
        ladder=_ladder_proof(plan),
    )


def _ladder_proof(plan: Planned) -> model.LadderProof | None:
    """The proof of the expected cost of the ladder, where that is what the job asks to be least."""
    ladder = plan.ladder
    if (
        ladder is None
        or plan.job.objective != "cost"
        or not (ladder.steps or ladder.cheapest or ladder.changing_machines)
    ):
        return None
    bound = min(round(ladder.bound * 1e6), ladder.cost)
    return model.LadderProof(
        objective_usd=usd(ladder.cost),
        bound_usd=usd(bound),
        gap=rounded((ladder.cost - bound) / ladder.cost) if ladder.cost else 0.0,
    )


def _sensitivity(sensitivity: SensitivityRanges) -> model.Sensitivity:
    cheaper, faster = sensitivity.next_cheaper, sensitivity.next_faster
    return model.Sensitivity(
        deadline_usd_per_hour=rounded(sensitivity.deadline_usd_per_hour),
        next_cheaper=cheaper and model.CheaperStep(deadline_hours=rounded(cheaper[0]), saves_usd=usd(cheaper[1])),
        next_faster=faster and model.FasterStep(deadline_hours=rounded(faster[0]), costs_usd=usd(faster[1])),
        holds_until_usd_per_node_hour=None if sensitivity.holds_until is None else usd(sensitivity.holds_until),
    )


def _objective(proof: SolverCertificate) -> model.Objective:
    """The objective in its own unit; for cost the same figures in USD stand beside it."""
    value = proof.objective_usd if proof.objective is None else proof.objective
    bound = proof.bound_usd if proof.bound is None else proof.bound
    of = cast(shared.ObjectiveOf, proof.of)
    return model.Objective(of=of, unit=UNITS[proof.of], value=rounded(value), bound=rounded(bound))


def _credits(credited: Credited) -> model.Credits:
    """The cost after credits, and the alternative that leaves less to pay, if any."""
    least = credited.least
    return model.Credits(
        applied_usd=usd(credited.applied),
        out_of_pocket_usd=usd(credited.out_of_pocket),
        least_out_of_pocket=least and model.LeastOutOfPocket(label=least[0], out_of_pocket_usd=usd(least[1])),
    )


def _about_money(settings: PlannerSettings, credited: Credited | None) -> list[str]:
    """Sentences on what the user's own contracts change."""
    sentences = []
    if settings.discounts:
        sentences.append(
            "prices are the negotiated ones where a discount holds; the source of such a price names its list price"
        )
    return sentences if credited is None else [*sentences, credited.sentence]


def infeasible_answer(infeasible: NoPlan, job: JsonObject, version: str, inventory: str = "") -> model.Infeasible:
    """Why there is no plan, as yet without an id."""
    nearest = infeasible.nearest
    return model.Infeasible(
        id="",
        job=job,
        snapshot_id=infeasible.snapshot_id,
        version=version,
        settings=_settings(infeasible.settings),
        learned=_learned(infeasible.learned),
        start=to_second(infeasible.start),
        conflicts=infeasible.conflicts,
        searched_nodes=infeasible.searched_nodes,
        relaxations=tuple(map(_relaxation, infeasible.relaxations)),
        nearest_plan=None
        if nearest is None
        else model.NearestPlan(**machines(nearest), **cost_and_hours(nearest), breaks=infeasible.nearest_breaks),
        offers_considered=infeasible.offers_considered,
        rejected=dict(sorted(infeasible.rejected.items())),
        warnings=infeasible.warnings,
        inventory=inventory or None,
    )


def _alternative(alternative: LabelledChoice) -> model.Alternative:
    return model.Alternative(
        label=alternative.label,
        **machines(alternative.choice),
        **cost_and_hours(alternative.choice),
        extra_usd=usd(alternative.extra),
        meets_deadline=alternative.meets_deadline,
        meets_budget=alternative.meets_budget,
    )


def _other_framework(other: FrameworkChoice) -> model.OtherFramework:
    return model.OtherFramework(
        **machines(other.choice),
        **cost_and_hours(other.choice),
        framework=other.framework,
        extra_usd=usd(other.extra),
    )


def _commitment(commitment: CommitmentOffer) -> model.Commitment:
    return model.Commitment(
        price_kind=commitment.offer.price_kind,
        instance_type=commitment.offer.instance_type,
        region=commitment.offer.region,
        nodes=commitment.nodes,
        usd_per_node_hour=usd(commitment.offer.usd_micros_per_hour),
        total_obligation_usd=usd(commitment.obligation),
        break_even_hours=maybe_rounded(commitment.break_even_hours),
    )


def _relaxation(relaxation: LeastChange) -> model.Relaxation:
    return model.Relaxation(
        requirement=" + ".join(relaxation.requirements),
        from_="; ".join(relaxation.asked),
        to="; ".join(relaxation.needed),
        cost_usd=usd(relaxation.choice.cost.expected),
        plan=configuration(relaxation.choice),
    )


def _enumeration(job: TrainingJob) -> model.Enumeration:
    """The sets that were enumerated, and what was left out with the proof."""
    return model.Enumeration(
        node_counts=f"every whole number of nodes from 1 to {job.constraints.max_nodes:,}; machines that do not cluster on "
        "one node, slices in every size that is sold",
        layouts=f"tensor parallelism 1, 2, 4 or up to {MAX_TENSOR} ways inside the fast link, every number of pipeline "
        f"stages up to {MAX_PIPELINE} that divides the cluster, context parallelism up to {MAX_CONTEXT} ways for long "
        "sequences, ZeRO stages 1 to 3; of each the largest micro-batch that helps and the least recomputation that fits",
        left_out="offers that another of the same machine, price kind and provider equals or betters in price, egress, "
        "storage and interruption rate",
    )


def _settings(settings: PlannerSettings) -> JsonObject:
    return {field.name: getattr(settings, field.name) for field in fields(PlannerSettings)} | {
        "held": [asdict(commitment) for commitment in settings.held],
        "held_spend": [asdict(commitment) for commitment in settings.held_spend],
        "discounts": [
            {name: value for name, value in asdict(discount).items() if value not in ("", None)}
            for discount in settings.discounts
        ],
        "quotas": [
            {name: value for name, value in asdict(quota).items() if value not in ("", None)}
            for quota in settings.quotas
        ],
        "credits": [
            {"provider": credit.provider, "usd": credit.usd}
            | ({} if credit.expires is None else {"expires": moment(credit.expires)})
            for credit in settings.credits
        ],
    }


def _learned(learned: LearnedCorrections) -> shared.Learned | None:
    """Corrections learned from past runs of this class of work; None without runs."""
    if not learned:
        return None
    corrections = (*learned.corrections, learned.others)
    return shared.Learned(task=learned.task, corrections=tuple(map(correction_answer, corrections)))
