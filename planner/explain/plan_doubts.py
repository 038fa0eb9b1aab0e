"""The largest doubts about a plan's hours, as those of an estimate of the machines that do most of its work."""

from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.candidates.estimated_machines import estimate_of
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.explain.software_warnings import machines_of
from gpuplan.planner.model.outcome import PhaseChoice
from gpuplan.planner.performance.estimate_doubts import Asked, doubts_of

#: The job on the machines of each phase, to be estimated with other assumptions; None for parts of cards.
AskedOfPhases = tuple[Asked | None, ...]


def asked_of(question: Question, phase: PhaseChoice) -> Asked | None:
    """The job on the machines of a phase."""
    machines, job = machines_of(question, phase), question.job
    if machines is None:
        return None
    return Asked(
        workload=job.workload,
        training=job.training,
        work=question.work,
        machines=machines,
        learned=question.learned,
    )


def plan_doubts(
    candidates: Candidates, phases: tuple[PhaseChoice, ...], asked_of_phases: AskedOfPhases
) -> tuple[str, ...]:
    """The sentences on the doubts about the phase with the largest share of the work; none for parts of cards."""
    question, at = candidates.question, max(range(len(phases)), key=lambda i: phases[i].share)
    main, asked = phases[at], asked_of_phases[at]
    if asked is None:
        return ()
    # Hours of owned machines may be measured ones; a doubt is the ratio of two estimates.
    known = (
        None if question.markets[main.market].owned else estimate_of(candidates.estimated[main.market], asked.machines)
    )
    doubts = doubts_of(asked, known or asked.estimated)
    return tuple(doubt.sentence for doubt in doubts)
