"""Frameworks that training code is written for, and the software stacks of the machines that each runs on."""

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.planner.model.job import Constraints

#: Software stacks by framework. PyTorch/XLA runs on TPUs (its GPU builds ended with release 2.8), JAX has builds for
#: CUDA, ROCm and TPU. None: every stack.
_STACKS: dict[str, frozenset[str] | None] = {
    "pytorch-cuda": frozenset({"cuda"}),
    "pytorch-rocm": frozenset({"rocm"}),
    "jax": frozenset({"cuda", "rocm", "xla"}),
    "xla": frozenset({"xla"}),
    "neuron": frozenset({"neuron"}),
    "any": None,
}
#: The framework of code that runs on one stack and no other; `any` for stacks without one of their own.
_OF_STACK = {"cuda": "pytorch-cuda", "rocm": "pytorch-rocm", "xla": "xla", "neuron": "neuron"}


def runs_on(framework: str, stack: str) -> bool:
    """Whether code for the framework runs on machines of a software stack, as `Accelerator.stack` names it."""
    stacks = _STACKS[framework]
    return stacks is None or stack in stacks


def framework_of_stack(stack: str) -> str:
    """The framework to state so that machines of this stack may be chosen."""
    return _OF_STACK.get(stack, "any")


def implied_framework(constraints: Constraints, *, unless_named: str) -> str:
    """The framework of a job that states none: that of the accelerators and vendors it names, else `unless_named`.

    Names of several stacks imply `any`: the constraints decide then.
    """
    vendors = {vendor.lower() for vendor in constraints.vendors}
    named = {
        chip.stack
        for chip in accelerators().values()
        if chip.name in constraints.accelerators or chip.vendor.lower() in vendors
    }
    if not named or all(runs_on(unless_named, stack) for stack in named):
        return unless_named
    return framework_of_stack(named.pop()) if len(named) == 1 else "any"
