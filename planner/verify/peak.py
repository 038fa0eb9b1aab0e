"""What physics alone says of an offer: no machine trains faster than the dense peak of its accelerators.

    cost of a run >= price per node-hour x FLOPs of the job / (devices x dense peak x goodput)

Neither the estimator nor node counts come into it, so an offer that is too dear by this is so for everyone.
"""

from catalog.accelerators import accelerators
from planner.job import Training
from planner.verify.estimates import Work
from planner.verify.figures import dense_peak
from planner.verify.shelves import Lot

#: What a precision left to the accelerator may turn out to be.
AUTO = ("bf16", "fp16", "tf32", "fp32")


def least_usd(lot: Lot, work: Work, training: Training, goodput: float) -> float:
    """What the node-hours of the job cost on this offer at the least, in USD; 0 where no peak is known."""
    each = lot.machine.type
    names = AUTO if training.precision == "auto" else (training.precision,)
    chip = accelerators()[each.accelerator]
    peak = max((dense_peak(chip, name) or 0.0 for name in names), default=0.0)
    if not peak or lot.machine.measured is not None:
        return 0.0
    node_hours = work.total_flops / (peak * float(each.accelerator_count)) / 3600 / goodput
    return lot.micros / 1e6 * node_hours
