"""Lower bound on the cost of an offer from the dense peak of its accelerators.

    cost of a run >= price per node-hour x FLOPs of the job / (devices x dense peak x goodput)

A modelled goodput is below 1. The bound needs neither the estimator nor a node count.
"""

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.planner.model.job import Training
from gpuplan.planner.verify.estimator_port import Work
from gpuplan.planner.verify.offer_groups import OfferGroup
from gpuplan.planner.verify.phase_figures import dense_peak

#: The precisions that an accelerator may choose under `auto`.
AUTO = ("bf16", "fp16", "tf32", "fp32")


def least_usd(offer_group: OfferGroup, work: Work, training: Training, goodput: float | None) -> float:
    """Lower bound in USD on the node-hours of the job on this offer; 0 where no peak is known."""
    instance_type = offer_group.machine.type
    names = AUTO if training.precision == "auto" else (training.precision,)
    chip = accelerators()[instance_type.accelerator]
    peak = max((dense_peak(chip, name) or 0.0 for name in names), default=0.0)
    if not peak or offer_group.machine.measured is not None:
        return 0.0
    node_hours = (
        work.total_flops
        / (peak * float(instance_type.accelerator_count))
        / 3600
        / (1.0 if goodput is None else goodput)
    )
    return offer_group.micros / 1e6 * node_hours
