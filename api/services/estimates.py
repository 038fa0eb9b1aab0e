"""Estimates of a job on one given configuration."""

from dataclasses import replace
from datetime import UTC, datetime

from gpuplan.api.services.audited import PlannerService
from gpuplan.api.services.service_context import Document, ServiceContext
from gpuplan.planner.model.estimate import Estimate
from gpuplan.planner.model.job import Training, Workload


class EstimateService(PlannerService):
    """Estimates time and memory."""

    def estimate(self, document: Document, *, now: datetime | None = None) -> Estimate:
        """Time and memory of a job on one configuration. Uses no prices, and of the store only the reported runs."""
        with self._audited.question("estimate") as entry:
            answer = self._planner.call(answer_estimate, document, now=now or datetime.now(UTC))
            entry.outcome = "fits" if answer.memory.fits else "does not fit"
        return answer


def answer_estimate(context: ServiceContext, document: Document, *, now: datetime) -> Estimate:
    """Work out the answer of `EstimateService.estimate`; write nothing."""
    from gpuplan.api.schemas.estimate_request import parse_estimate_request

    job, on = parse_estimate_request(document, now=now)
    from gpuplan.planner.performance.configuration_on_request import On
    from gpuplan.planner.performance.learned_corrections import learned_from
    from gpuplan.planner.performance.memory_remedies import remedies_of
    from gpuplan.planner.performance.single_configuration import estimate_on, fits_on
    from gpuplan.planner.workload import work_of

    work = work_of(job.workload, job.training)
    work = replace(work, assumptions=(*job.assumptions, *work.assumptions))
    learned = learned_from(context.past_runs(), work.task)
    configuration = On(**on)
    estimate = estimate_on(
        work,
        job.training,
        configuration,
        goodput=context.settings.goodput,
        learned=learned,
        workload=job.workload,
    )
    if estimate.memory.fits:
        return estimate

    def fits(workload: Workload, training: Training) -> bool:
        return fits_on(work_of(workload, training), training, configuration)

    length = work.shape.sequence_length if work.shape and work.unit == "tokens" else 0
    return replace(estimate, warnings=(*estimate.warnings, *remedies_of(job.workload, job.training, length, fits)))
