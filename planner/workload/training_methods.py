"""Effects of the training method: FLOPs of the backward pass, trained parameters, storage of frozen ones."""

from dataclasses import dataclass, replace

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import ADAPTER_PLACES, CROSS_ENTROPY, OFFLOADED, SOFTWARE, XLA_FRAMEWORKS, Training

#: Bytes of a frozen parameter, by the job's precision; fp8 and fp4 stacks store frozen weights at 16 bit.
_FROZEN_BYTES = {"auto": 2.0, "bf16": 2.0, "fp16": 2.0, "fp8": 2.0, "fp4": 2.0, "fp32": 4.0, "tf32": 4.0}
#: NF4 weights with double quantisation: 4 bit, and 0.127 bit of constants (Dettmers 2023, QLoRA, section 3).
_QUANTISED_BYTES = (4 + 0.127) / 8
#: What Hugging Face's stack does not quantise it casts up (PEFT, prepare_model_for_kbit_training).
_CAST_UP_BYTES = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A training method: `base_passes` forward-equivalents through the base weights (3 trained, 2 frozen).

    A frozen matmul propagates the gradient of its input, but needs no gradient of its weights (Hu 2021). `adapters` states
    whether low-rank matrices are trained instead, `quantised` whether matmul weights of the base are stored at 4 bit.
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
    """Whether attention stays on chip and the loss is not cast up; raises `UnusableInput` for unknown software."""
    return software_of(training) != "plain"


def software_of(training: Training) -> str:
    """The software class of `training`, the first for `auto`; raises `UnusableInput` for unknown ones."""
    if training.software == "auto":
        return SOFTWARE[0]
    if training.software not in SOFTWARE:
        raise UnusableInput.at(
            "training",
            "software",
            message=f"unknown software class {training.software[:80]!r}; accepted: {', '.join(SOFTWARE)}",
        )
    return training.software


def settled(training: Training, task: str, unit: str) -> Training:
    """`training` with the software that people run where none is stated and it is not the fused default.

    Diffusion models and speech models (of samples, with a decoder) train in Hugging Face's diffusers, transformers and scripts
    like them: eager PyTorch, or XLA where the framework compiles by it. No stack fuses their kernels by hand.
    """
    if training.software != "auto" or not (task == "diffusion" or (task == "encoder-decoder" and unit == "samples")):
        return training
    return replace(training, software="compiled" if training.framework in XLA_FRAMEWORKS else "eager")


def kernels_of(training: Training) -> str:
    """The class of software whose element-wise kernels and memory a step has; raises `UnusableInput` for unknown software.

    XLA fuses element-wise operations and plans memory for the whole step also where a model writes attention out.
    """
    name = software_of(training)
    return "compiled" if name == "plain" and training.framework in XLA_FRAMEWORKS else name


#: Passes of element-wise layers through memory, relative to fused kernels, where operations are kernels of their own. Judgement:
#: `eager` stacks fuse some, and the measured runs do not tell 1.0 from 1.5 (16.8 to 16.9 % error, sources left out).
PASSES = {"eager": 1.25, "plain": 2.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterOverhead:
    """What adapters cost beside their FLOPs: `passes` over the elements of inputs and outputs of their projections, and `kernels`.

    Passes are a mean of those over inputs and over outputs. Kernels are per projection and micro-batch, forward and backward.
    """

    passes: float
    kernels: float


#: Written with the framework's operations, an adapter reads the input, writes the output, scales it (2 passes) and adds it to the
#: projection's (3); backward it scales and reads the output's gradient twice (4), reads the input, writes its gradient and adds
#: it to the projection's (5): 6 passes over inputs and 10 over outputs, in two matmuls, a product, a sum and the casts of two
#: 32-bit matrices, with their gradients and sums (PEFT's `Linear`). Tuned stacks accumulate in the matmuls: 4 and 4, 6 matmuls.
_ADAPTER_OVERHEAD = {
    False: AdapterOverhead(passes=8.0, kernels=16.0),
    True: AdapterOverhead(passes=4.0, kernels=6.0),
}


def adapter_overhead_of(training: Training) -> AdapterOverhead:
    """The overhead of adapters in the software of `training`; raises `UnusableInput` for unknown software."""
    return _ADAPTER_OVERHEAD[kernels_of(training) in {"fused", "compiled"}]


#: Bytes at the peak per logit. `auto` of fused software, and of XLA's, holds 16-bit logits and the 32-bit copy that their
#: gradient overwrites; `full` the 16-bit logits, their 32-bit copy, its log-softmax and its gradient (Hugging Face's losses);
#: `chunked` the 16-bit logits and their gradient; `linear` computes the loss and its gradient a part of the tokens at a time
#: from the last hidden state.
_LOGIT_BYTES = {"auto": 2.0 + 4.0, "full": 2.0 + 3 * 4.0, "chunked": 2.0 + 2.0, "linear": 0.0}

#: In Hugging Face's stack one more copy stands: of the shifted logits, or of the gradient on its way through the casts.
_EAGER_COPY_BYTES = 4.0


def logit_bytes(training: Training) -> float:
    """Bytes at the peak per logit. Raises `UnusableInput` for a cross entropy that is unknown or contradicted."""
    asked = training.cross_entropy
    if asked not in CROSS_ENTROPY:
        raise UnusableInput.at(
            "training", "cross_entropy", message=f"unknown {asked[:80]!r}; accepted: {', '.join(CROSS_ENTROPY)}"
        )
    if training.chunked_cross_entropy:
        if asked not in {"auto", "chunked"}:
            message = f"{asked} contradicts chunked_cross_entropy: true; give one of them"
            raise UnusableInput.at("training", "cross_entropy", message=message)
        asked = "chunked"
    asked = "full" if asked == "auto" and _writes_out_loss(training) else asked
    return _LOGIT_BYTES[asked] + (_EAGER_COPY_BYTES if asked == "full" and software_of(training) == "eager" else 0.0)


def _writes_out_loss(training: Training) -> bool:
    """Whether the loss, unless it is stated, is that of Hugging Face's stack."""
    chunked = training.chunked_cross_entropy or training.cross_entropy not in {"auto", "full"}
    return software_of(training) != "fused" and not (chunked or _fuses_by_xla(training))


def _fuses_by_xla(training: Training) -> bool:
    """Whether XLA compiles the step: it fuses the loss, and its policies save the results of all matmuls or none."""
    return kernels_of(training) == "compiled" and training.framework in XLA_FRAMEWORKS


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTensorRules:
    """Which tensors a stack saves for the backward pass.

    `fused` attention saves no scores. `passes` of element-wise layers through memory are relative to fused kernels. `eager`
    element-wise layers save their own tensors each; stacks with adapters do so too, because they use the framework's base
    model unchanged, except those that replace its kernels together with the loss (Liger, Unsloth). Matmuls save their inputs
    if weights are `trained` or `quantised`. `adapters` save copies of their own inputs, on every projection if they are
    `everywhere`, each with its mask if they are `dropped`. `by_operation`, selective checkpointing saves the input of a block,
    the result of attention and that of every second matmul (PyTorch's policy per operation, torchtitan's default).
    `offloaded` checkpoints are in host memory.
    """

    fused: bool
    passes: float
    logit_bytes: float
    eager: bool
    trained: bool
    adapters: bool
    everywhere: bool
    quantised: bool
    dropped: bool
    by_operation: bool
    offloaded: bool


def saved_tensor_rules_of(training: Training) -> SavedTensorRules:
    """The rules of the method and software class of `training`; raises `UnusableInput` for unknown names."""
    method, fused = method_of(training), is_fused(training)
    return SavedTensorRules(
        fused=fused,
        passes=PASSES.get(kernels_of(training), 1.0),
        logit_bytes=logit_bytes(training),
        eager=kernels_of(training) == "plain" or (method.adapters and training.cross_entropy != "linear"),
        trained=not method.adapters,
        adapters=method.adapters,
        everywhere=adapts_everywhere(training),
        quantised=method.quantised,
        dropped=method.adapters and training.adapter_dropout,
        by_operation=software_of(training) in {"compiled", "eager"}
        and not (method.adapters or _fuses_by_xla(training)),
        offloaded=training.activation_checkpointing == OFFLOADED,
    )


def adapts_everywhere(training: Training) -> bool:
    """Whether adapters are on every projection (Dettmers 2023) or on query and value only (Hu 2021).

    Raises `UnusableInput` for other names.
    """
    if training.adapters_on not in ADAPTER_PLACES:
        accepted = ", ".join(ADAPTER_PLACES)
        raise UnusableInput.at(
            "training", "adapters_on", message=f"unknown {training.adapters_on[:80]!r}; accepted: {accepted}"
        )
    return training.adapters_on == ADAPTER_PLACES[0]


def frozen_bytes(training: Training, matmul_parameters: float, other_parameters: float) -> float:
    """Bytes of the frozen base: `matmul_parameters` may be quantised, embeddings, head and norms never are.

    Hugging Face's stack holds those in 32 bit beside quantised ones.
    """
    bytes_per_parameter = _FROZEN_BYTES.get(training.precision)
    if bytes_per_parameter is None:
        raise UnusableInput.at(
            "training",
            "precision",
            message=f"unknown precision {training.precision[:80]!r}; accepted: {', '.join(_FROZEN_BYTES)}",
        )
    if not method_of(training).quantised:
        return (matmul_parameters + other_parameters) * bytes_per_parameter
    held = _CAST_UP_BYTES if _writes_out_loss(training) else bytes_per_parameter
    return matmul_parameters * _QUANTISED_BYTES + other_parameters * held


def check_rank(training: Training, narrowest: float) -> None:
    """Raise `UnusableInput` if the rank of the adapters is not below the width of the matrices that they adapt."""
    if training.rank >= narrowest:
        raise UnusableInput.at(
            "training",
            "rank",
            message=f"{training.rank} is not below {narrowest:g}, the width of the model that adapters must stay under",
        )
