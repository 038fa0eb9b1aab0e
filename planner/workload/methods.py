"""What the training method changes: which FLOPs the backward pass needs, what is trained, how the rest is stored."""

from dataclasses import dataclass

from catalog.errors import UnusableInput
from planner.job import Training

#: Bytes of a parameter that is not trained, by the job's precision; fp8 and fp4 stacks keep frozen weights at 16 bit.
_FROZEN_BYTES = {"auto": 2.0, "bf16": 2.0, "fp16": 2.0, "fp8": 2.0, "fp4": 2.0, "fp32": 4.0, "tf32": 4.0}
#: NF4 weights with double quantisation: 4 bit, and 0.127 bit of constants (Dettmers 2023, QLoRA, section 3).
_QUANTISED_BYTES = (4 + 0.127) / 8
_SOFTWARE = ("fused", "plain")


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A training method: `base_passes` forward-equivalents through the base weights (3 trained, 2 frozen).

    A frozen matmul still passes its gradient on, but needs none of its own (Hu 2021). `adapters`
    says whether low-rank matrices are trained in its place, `quantised` whether matmul weights of
    the base are stored at 4 bit.
    """

    name: str
    base_passes: int
    adapters: bool
    quantised: bool


_METHODS = {
    "full": Method(name="full", base_passes=3, adapters=False, quantised=False),
    "lora": Method(name="lora", base_passes=2, adapters=True, quantised=False),
    "qlora": Method(name="qlora", base_passes=2, adapters=True, quantised=True),
}


def method_of(training: Training) -> Method:
    """The method that `training` names; raises `UnusableInput` for names and ranks that are not accepted."""
    method = _METHODS.get(training.method)
    if method is None:
        raise UnusableInput.at(
            "training", "method", message=f"unknown method {training.method[:80]!r}; accepted: {', '.join(_METHODS)}"
        )
    if method.adapters and training.rank < 1:
        raise UnusableInput.at("training", "rank", message=f"{training.rank} is not a rank of at least 1")
    return method


def is_fused(training: Training) -> bool:
    """Whether the stack fuses attention and element-wise layers; raises `UnusableInput` for unknown names."""
    if training.software not in _SOFTWARE:
        raise UnusableInput.at(
            "training",
            "software",
            message=f"unknown software class {training.software[:80]!r}; accepted: {', '.join(_SOFTWARE)}",
        )
    return training.software == "fused"


def frozen_bytes(training: Training, matmul_parameters: float, other_parameters: float) -> float:
    """Bytes of the frozen base: `matmul_parameters` may be quantised, embeddings and norms never are."""
    each = _FROZEN_BYTES.get(training.precision)
    if each is None:
        raise UnusableInput.at(
            "training",
            "precision",
            message=f"unknown precision {training.precision[:80]!r}; accepted: {', '.join(_FROZEN_BYTES)}",
        )
    return matmul_parameters * (_QUANTISED_BYTES if method_of(training).quantised else each) + other_parameters * each


def check_rank(training: Training, narrowest: float) -> None:
    """Raise `UnusableInput` where the adapters would be as wide as the matrices they stand in for."""
    if training.rank >= narrowest:
        raise UnusableInput.at(
            "training",
            "rank",
            message=f"{training.rank} is not below {narrowest:g}, the width of the model that adapters must stay under",
        )
