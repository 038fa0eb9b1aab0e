"""The largest doubts about a plan's hours, as those of an estimate of the machines that do most of its work."""

from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.candidates.estimated_machines import estimate_of
from gpuplan.planner.explain.software_warnings import machines_of
from gpuplan.planner.model.outcome import PhaseChoice
from gpuplan.planner.performance.estimate_doubts import Asked, doubts_of


def plan_doubts(candidates: Candidates, phases: tuple[PhaseChoice, ...]) -> tuple[str, ...]:
    """The sentences on the doubts about the phase with the largest share of the work; none for parts of cards."""
    question, main = candidates.question, max(phases, key=lambda phase: phase.share)
    machines = machines_of(question, main)
    if machines is None:
        return ()
    job = question.job
    asked = Asked(
        workload=job.workload,
        training=job.training,
        work=question.work,
        machines=machines,
        learned=question.learned,
    )
    # Hours of owned machines may be measured ones; a doubt is the ratio of two estimates.
    known = None if question.markets[main.market].owned else estimate_of(candidates.estimated[main.market], machines)
    doubts = doubts_of(asked, known or asked.estimated(question.work, job.training))
    return tuple(doubt.sentence for doubt in doubts)
