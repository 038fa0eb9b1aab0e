"""What a training stage adds to a step of supervised training: forward passes of other models, pairs, generated answers.

| stage | samples | forward passes besides the trained one | source |
|---|---|---|---|
| sft | sequences | none | |
| dpo | pairs | reference | Rafailov 2023 |
| orpo | pairs | none | Hong 2024 |
| kto | sequences | reference, and both models on mismatched answers | Ethayarajh 2024 |
| reward | pairs | none; a scalar head in place of the logits | Ouyang 2022 |
| grpo | sequences | reference, and the policy that generated | Shao 2024 |
| ppo | sequences | reference, reward, and the policy that generated; a critic is trained too | Ouyang 2022 |

Answers of `grpo` and `ppo` are generated one token at a time: each step reads all weights and the keys and values of what
came before, for as many sequences at once as `DECODE_BATCH` says.
"""

from dataclasses import dataclass, replace

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Training
from gpuplan.planner.workload.step_work import Work
from gpuplan.planner.workload.training_methods import method_of

#: Sequences that one accelerator generates at once: assumed, common settings of vLLM in training loops are 32 to 256.
DECODE_BATCH = 64
#: Standard deviation of ln(actual / predicted hours) that a stage without measured runs adds: judgement.
_SIGMA_PREFERENCE, _SIGMA_GENERATION = 0.15, 0.4
_HALF_BYTES = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    forward: int = 0
    pairs: bool = False
    references: int = 0
    generates: bool = False
    trains_critic: bool = False


_STAGES = {
    "sft": _Stage(),
    "dpo": _Stage(forward=1, pairs=True, references=1),
    "orpo": _Stage(pairs=True),
    "kto": _Stage(forward=3, references=1),
    "reward": _Stage(pairs=True),
    "grpo": _Stage(forward=2, references=1, generates=True),
    "ppo": _Stage(forward=3, references=2, generates=True, trains_critic=True),
}


def staged(work: Work, training: Training) -> Work:
    """`work` of supervised training as the work of the stage of `training`.

    Raises `UnusableInput` at ("training", "stage") for models without a causal language model's blocks, and at
    ("training", "completion_tokens") where it is missing, too long, or of no use.
    """
    stage = _STAGES.get(training.stage)
    if stage is None:
        accepted = ", ".join(_STAGES)
        raise UnusableInput.at(
            "training", "stage", message=f"unknown stage {training.stage[:80]!r}; accepted: {accepted}"
        )
    _check_completion(training, stage, work)
    if training.stage == "sft":
        return work
    if work.shape is None or not work.shape.causal:
        message = f"{training.stage} is a stage of language models, and {work.name} is none; accepted: sft"
        raise UnusableInput.at("training", "stage", message=message)
    passes = method_of(training).base_passes
    critic = 2.0 if stage.trains_critic else 1.0
    linear, attention = critic + stage.forward / passes, critic + stage.forward / 3.0
    samples = 2.0 if stage.pairs else 1.0
    logits = 0.0 if training.stage == "reward" else 1.0
    # Adapters share their base with the reference, which is the base without them.
    references = 0 if method_of(training).adapters else stage.references
    trained = work.trainable_parameters * critic
    none, selective, full = work.activation_bytes_per_sample
    return replace(
        work,
        units_per_sample=work.units_per_sample * samples,
        units_per_step=work.units_per_step * samples,
        units_total=work.units_total * samples,
        parameters=work.parameters + trained - work.trainable_parameters,
        trainable_parameters=trained,
        linear_flops_per_unit=work.linear_flops_per_unit * linear,
        attention_flops_per_unit=work.attention_flops_per_unit * attention,
        head_flops_per_unit=work.head_flops_per_unit * linear * logits,
        vector_bytes_per_unit=work.vector_bytes_per_unit * attention + _generation_bytes(work, training, stage),
        activation_bytes_per_sample=(none * samples, selective * samples, full * samples),
        logits_bytes_per_sample=work.logits_bytes_per_sample * samples * logits,
        offloaded_bytes_per_sample=work.offloaded_bytes_per_sample * samples,
        gradient_bytes_per_sample=work.gradient_bytes_per_sample * samples,
        working_set_bytes_per_sample=work.working_set_bytes_per_sample * samples,
        reference_parameter_bytes=_HALF_BYTES * references * work.parameters,
        modelled_sigma=_SIGMA_GENERATION if stage.generates else _SIGMA_PREFERENCE,
        assumptions=(*work.assumptions, *_sentences(training, stage, references)),
    )


def _check_completion(training: Training, stage: _Stage, work: Work) -> None:
    length, stated = work.shape.sequence_length if work.shape else 0, training.completion_tokens
    message = ""
    if stage.generates and stated is None:
        message = f"is missing: {training.stage} generates answers; give their mean length in tokens"
    elif not stage.generates and stated is not None:
        message = f"belongs to stages grpo and ppo; leave it out with {training.stage}"
    elif stated is not None and stated >= length:
        message = (
            f"{stated} leaves no room for a prompt in a sequence of {length} tokens; give less, or a longer sequence"
        )
    if message:
        raise UnusableInput.at("training", "completion_tokens", message=message)


def _generation_bytes(work: Work, training: Training, stage: _Stage) -> float:
    """Bytes moved per token of a sequence to generate its answer."""
    shape, answer = work.shape, training.completion_tokens
    if not stage.generates or shape is None or answer is None:
        return 0.0
    before = shape.sequence_length - answer / 2.0
    cached = 2.0 * _HALF_BYTES * shape.layers * shape.kv_heads * shape.head_size * before
    per_answer_token = _HALF_BYTES * work.parameters / DECODE_BATCH + cached
    return per_answer_token * answer / shape.sequence_length


def _sentences(training: Training, stage: _Stage, references: int) -> list[str]:
    sentences = [f"stage {training.stage} is modelled from its passes over the model; no run of it was measured"]
    if stage.pairs:
        sentences.append("a sample is a pair of answers of the stated length; tokens count both")
    if references:
        sentences.append(
            f"{references} frozen {'model is' if references == 1 else 'models are'} held besides the trained one"
        )
    if stage.generates:
        sentences.append(
            f"answers of {training.completion_tokens} tokens are generated on the same accelerators, {DECODE_BATCH} sequences at once on each"
        )
    return sentences
