"""Shares of dense peak that a chip reaches in matrix products.

The ceiling of a chip is the best matmul that a search over shapes finds ("maximum achievable matmul FLOPS", MAMF).
Chips are looked up by name, then by architecture, then by vendor, so an unmeasured chip gets the value of related
chips. A training step reaches a further share of that ceiling (`stack_share`).
"""

from gpuplan.catalog.model.accelerators import Accelerator
from gpuplan.planner.performance.fitted_constants import is_listed, places, value

SIXTEEN, EIGHT, VECTOR = 0, 1, 2

#: Share of the vector peak that cuBLAS reaches in one matmul, without the rest of a training step.
VECTOR_MATMUL = 0.90


def best_matmul(chip: Accelerator) -> tuple[float, float, float]:
    """Shares of dense peak that the best single matmul reaches (16-bit and tf32, 8-bit and below, vector fp32)."""
    where = places(chip)
    return value("mamf_16bit", *where), value("mamf_8bit", *where), VECTOR_MATMUL


def ceilings(chip: Accelerator) -> tuple[float, float, float]:
    """Shares of dense peak that training reaches in (16-bit and tf32, 8-bit and below, vector fp32) matmuls.

    Plain fp32 units are limited by instruction issue rather than by memory, so neither MAMF nor `stack_share` applies.
    """
    sixteen, eight, _ = best_matmul(chip)
    stack = value("stack_share", *places(chip))
    return sixteen * stack, eight * value("eight_bit_share") * stack, value("vector_ceiling")


def generation_is_measured(chip: Accelerator) -> bool:
    """Whether runs of this chip or its architecture, not only of its vendor, identify the share."""
    return is_listed("stack_share", *places(chip)[:2])
