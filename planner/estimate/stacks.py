"""What depends on the training software and the class of work: shares of a machine's rates that a step reaches."""

from dataclasses import dataclass

from catalog.errors import UnusableInput
from planner.estimate.constants import keys_of, value
from planner.job import Training
from planner.workload.work import Work

#: Names of the classes: fused kernels (the default), the same tuned for the newest chips, and eager ones.
STACKS = keys_of("software_matmul")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A class of training software, relative to fused kernels (flash attention, fused norms and optimizers).

    Plain is eager kernels; most of its cost is the traffic that `vector_bytes_per_unit` then counts (scores in
    memory, twice the passes), and what is left stands here. Kernels are per block and micro-batch.
    """

    matmul: float
    attention: float
    vector: float
    kernels_per_layer: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Shares by class of work: of the matmul ceiling and of memory bandwidth."""

    matmul: float
    bandwidth: float


def stack_of(training: Training) -> Stack:
    """The software class of `training`. Raises `UnusableInput` at training.software for an unknown one."""
    name = training.software
    if name not in STACKS:
        raise UnusableInput.at("training", "software", message=f"{name!r} is not one of {', '.join(STACKS)}")
    return Stack(
        matmul=value("software_matmul", name),
        attention=value("software_attention", name),
        vector=value("software_vector", name),
        kernels_per_layer=value("software_kernels_per_layer", name),
    )


def share_of(work: Work) -> Share:
    """The shares of the class of `work`, relative to dense language models."""
    return Share(matmul=value("class_matmul", work.task), bandwidth=value("class_bandwidth", work.task))
