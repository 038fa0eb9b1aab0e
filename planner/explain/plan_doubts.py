"""The largest doubts about a plan's hours, as those of an estimate of the machines that do most of its work."""

from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.explain.software_warnings import machines_of
from gpuplan.planner.model.outcome import PhaseChoice
from gpuplan.planner.performance.estimate_doubts import Asked, doubts_of


def plan_doubts(question: Question, phases: tuple[PhaseChoice, ...]) -> tuple[str, ...]:
    """The sentences on the doubts about the phase with the largest share of the work; none for parts of cards."""
    machines = machines_of(question, max(phases, key=lambda phase: phase.share))
    if machines is None:
        return ()
    job = question.job
    asked = Asked(
        workload=job.workload,
        training=job.training,
        work=question.work,
        machines=machines,
        learned=question.learned,
        states_layout="the layout of the plan, in what you run",
    )
    doubts = doubts_of(asked, asked.estimated(question.work, job.training))
    return tuple(doubt.sentence for doubt in doubts)
