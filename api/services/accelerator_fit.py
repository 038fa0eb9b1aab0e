"""How usual jobs fit on an accelerator: the least number of it that has the memory, the time and the cost, estimated."""

from dataclasses import dataclass
from datetime import UTC, datetime

from gpuplan.api.services.estimates import answer_estimate
from gpuplan.api.services.planner_calls import PlannerCalls
from gpuplan.api.services.service_context import Document
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.estimate import Estimate
from gpuplan.planner.model.job import MAX_ACCELERATORS

#: The jobs that are estimated, by name: full training in the usual precision.
USUAL_JOBS: dict[str, Document] = {
    "Llama 2 7B, 1 B tokens": {"kind": "preset", "model": "llama-2-7b", "tokens": "1B"},
    "Llama 2 70B, 1 B tokens": {"kind": "preset", "model": "llama-2-70b", "tokens": "1B"},
    "ResNet-50, 90 epochs of ImageNet": {"kind": "preset", "model": "resnet-50", "samples": "115M"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFit:
    """An estimate of a job on `accelerators` of one kind, or the `reason` why it cannot run there.

    `usd` is their hours at a price per accelerator-hour; None without a price.
    """

    name: str
    workload: Document
    accelerators: int | None = None
    estimate: Estimate | None = None
    usd: float | None = None
    reason: str = ""


def job_fits(planner: PlannerCalls, accelerator: str, usd_per_accelerator: float | None) -> list[JobFit]:
    """The usual jobs on the least power of two of this accelerator that has the memory for them."""
    return [_fit(planner, accelerator, name, usd_per_accelerator) for name in USUAL_JOBS]


def _fit(planner: PlannerCalls, accelerator: str, name: str, usd_per_accelerator: float | None) -> JobFit:
    workload = USUAL_JOBS[name]
    number = 1
    try:
        while True:
            document = {"job": {"name": name, "workload": workload}, "on": {"accelerator": accelerator, "gpus": number}}
            estimate = planner.call(answer_estimate, document, now=datetime.now(UTC))
            if estimate.memory.fits:
                break
            least = estimate.memory.least_accelerators
            if number == MAX_ACCELERATORS or least is None:
                return JobFit(name=name, workload=workload, reason="does not fit in memory on any number of them")
            number = min(MAX_ACCELERATORS, max(2 * number, 1 << (least - 1).bit_length()))
    except UnusableInput as error:
        return JobFit(name=name, workload=workload, reason=error.faults[0].message)
    hours = estimate.hours_with_goodput
    usd = None if usd_per_accelerator is None else usd_per_accelerator * number * hours
    return JobFit(name=name, workload=workload, accelerators=number, estimate=estimate, usd=usd)
