"""What the training method changes: which FLOPs the backward pass needs, what is trained, how the rest is stored."""

from dataclasses import dataclass

from catalog.errors import UnusableInput
from planner.job import Training

#: Bytes of a parameter that is not trained, by the job's precision; fp8 and fp4 stacks keep frozen weights at 16 bit.
_FROZEN_BYTES = {"auto": 2.0, "bf16": 2.0, "fp16": 2.0, "fp8": 2.0, "fp4": 2.0, "fp32": 4.0, "tf32": 4.0}
#: NF4 weights with double quantisation: 4 bit, and 0.127 bit of constants (Dettmers 2023, QLoRA, section 3).
_QUANTISED_BYTES = (4 + 0.127) / 8
_SOFTWARE = ("fused", "plain", "tuned")


#: Where adapters may sit: on all attention, feed-forward and expert projections, or on query and value alone.
ADAPTER_PLACES = ("all", "query_value")


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
    return training.software != "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """What a stack keeps for the backward pass.

    `fused` attention and element-wise layers keep only what their kernels need; `eager` element-wise layers each keep
    their own tensors (with fused attention under adapters, whose stacks leave the base model as its framework wrote
    it). Matmuls keep their inputs where weights are `trained` or `quantised`; `adapters` keep copies of
    their own, of every projection's input where they sit `everywhere`.
    """

    fused: bool
    eager: bool
    trained: bool
    adapters: bool
    everywhere: bool
    quantised: bool


def keeping_of(training: Training) -> Keeping:
    """What the method and software class of `training` keep; raises `UnusableInput` for unknown names."""
    method, fused = method_of(training), is_fused(training)
    return Keeping(
        fused=fused,
        eager=method.adapters or not fused,
        trained=not method.adapters,
        adapters=method.adapters,
        everywhere=adapts_everywhere(training),
        quantised=method.quantised,
    )


def adapts_everywhere(training: Training) -> bool:
    """Whether adapters sit on every projection (Dettmers 2023) or on query and value alone (Hu 2021).

    Raises `UnusableInput` for other names.
    """
    if training.adapters_on not in ADAPTER_PLACES:
        accepted = ", ".join(ADAPTER_PLACES)
        raise UnusableInput.at(
            "training", "adapters_on", message=f"unknown {training.adapters_on[:80]!r}; accepted: {accepted}"
        )
    return training.adapters_on == ADAPTER_PLACES[0]


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
