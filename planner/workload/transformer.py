"""The work of a transformer: its matrices, attention and head, per token or per sample.

FLOPs of forward plus backward are 6 per multiply-add weight (Kaplan 2020), 4 through frozen weights
plus 6 through adapters; attention adds 12 s h_attn per layer and token, half of it under a causal
mask, where h_attn = heads x head size (Narayanan 2021, eq. 3; Hoffmann 2022, app. F); the head 6 V h.
"""

from dataclasses import replace
from functools import lru_cache

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import OFFLOADED, Training, Transformer
from gpuplan.planner.workload.activations import selective_recomputed_share, transformer_bytes
from gpuplan.planner.workload.step_work import TransformerShape, Work
from gpuplan.planner.workload.training_methods import (
    adapter_overhead_of,
    adapts_everywhere,
    check_rank,
    frozen_bytes,
    method_of,
    saved_tensor_rules_of,
)
from gpuplan.planner.workload.training_stages import staged
from gpuplan.planner.workload.transformer_dimensions import check_amounts, completed, stated_parameters_fault
from gpuplan.planner.workload.transformer_projections import (
    Particulars,
    Projection,
    decoder_length,
    moe_layers,
    projections,
)

_PLAIN = Particulars()


def transformer_work(
    model: Transformer,
    training: Training,
    *,
    particulars: Particulars = _PLAIN,
) -> Work:
    """Work of one optimizer step and of the whole job. Throughput counts input tokens.

    Raises `UnusableInput` at ("workload", field) for contradictory
    dimensions and at ("training", field) for unknown methods, ranks and software.
    """
    one_sample = float(model.sequence_length)
    return work_of_amount(
        replace(model, tokens=one_sample, global_batch_tokens=one_sample),
        model.tokens,
        model.global_batch_tokens,
        training,
        name="transformer",
        task="",
        unit="tokens",
        particulars=particulars,
        assumptions=(),
    )


def work_of_amount(
    one_sample: Transformer,
    tokens: float,
    global_batch_tokens: float,
    training: Training,
    *,
    name: str,
    task: str,
    unit: str,
    particulars: Particulars,
    assumptions: tuple[str, ...],
) -> Work:
    """`transformer_work` for these amounts; the amounts in `one_sample` are those of one sample, so that it can be cached."""
    check_amounts(one_sample, tokens, global_batch_tokens)
    work = _of_one_sample(one_sample, training, name=name, task=task, unit=unit, particulars=particulars)
    samples, batch, sentences = _amounts(one_sample.sequence_length, tokens, global_batch_tokens)
    # A sample of the work may be a pair of sequences.
    per_sequence = 1.0 if unit == "samples" else float(one_sample.sequence_length)
    return replace(
        work,
        units_total=max(samples * per_sequence, work.units_per_sample),
        units_per_step=max(batch * per_sequence, work.units_per_sample),
        assumptions=(*assumptions, *sentences, *work.assumptions),
    )


#: The work per sample does not depend on the amount of training.
@lru_cache(maxsize=256)
def _of_one_sample(
    model: Transformer, training: Training, *, name: str, task: str, unit: str, particulars: Particulars
) -> Work:
    model = completed(model)
    method = method_of(training)
    everywhere = not method.adapters or adapts_everywhere(training)
    counts = _Counts(model, particulars, everywhere=everywhere)
    wrong = stated_parameters_fault(model.parameters, counts.parameters)
    if wrong:
        raise UnusableInput.at("workload", "parameters", message=wrong)
    adapters = training.rank * counts.adapters if method.adapters else 0.0
    if method.adapters:
        check_rank(training, min(model.hidden_size, model.kv_heads * model.head_size))
    rules = saved_tensor_rules_of(training)
    sizes = transformer_bytes(model, particulars, rules)
    per_sample = 1 if unit == "samples" else model.sequence_length
    linear = 2 * method.base_passes * counts.multiply_adds
    moved, adapter_kernels = sizes.moved, 0.0
    if method.adapters:
        linear += 6 * training.rank * counts.adapter_multiply_adds
        overhead = adapter_overhead_of(training)
        moved += 2.0 * overhead.passes * counts.adapter_multiply_adds
        adapter_kernels = overhead.kernels * counts.adapted
    work = Work(
        task=task or _task(model),
        name=name,
        unit=unit,
        units_total=per_sample,
        units_per_step=per_sample,
        units_per_sample=per_sample,
        parameters=counts.parameters + adapters,
        active_parameters=counts.active_parameters + adapters * counts.active_adapter_share,
        trainable_parameters=adapters if method.adapters else counts.parameters,
        embedding_parameters=counts.embedding_parameters,
        linear_flops_per_unit=linear / per_sample,
        attention_flops_per_unit=6 * counts.attention_multiply_adds / per_sample,
        head_flops_per_unit=2 * method.base_passes * counts.head_multiply_adds / per_sample,
        vector_bytes_per_unit=moved / per_sample,
        kernels=adapter_kernels,
        activation_bytes_per_sample=sizes.saved,
        logits_bytes_per_sample=sizes.logits,
        offloaded_bytes_per_sample=sizes.offloaded,
        gradient_bytes_per_sample=sizes.gradients,
        selective_recomputed_share=selective_recomputed_share(model, rules),
        working_set_bytes_per_sample=min(sizes.working_set, sizes.saved[2]),
        frozen_parameter_bytes=frozen_bytes(training, counts.matrices, counts.parameters - counts.matrices)
        if method.adapters
        else 0.0,
        expert_adapter_parameters=training.rank * counts.routed_adapters if method.adapters else 0.0,
        shape=_shape(model, particulars, counts.matmul_width),
        batch_is_default=model.batch_is_default,
        assumptions=tuple(_assumptions(model, training, particulars, unit, counts.parameters)),
    )
    return staged(work, training)


def forget() -> None:
    """Count the works of samples anew, after a constant of theirs changed."""
    _of_one_sample.cache_clear()


class _Counts:
    """Sums over the matrices of a completed model, per model and per sample."""

    __slots__ = (
        "active_adapter_share",
        "active_parameters",
        "adapted",
        "adapter_multiply_adds",
        "adapters",
        "attention_multiply_adds",
        "embedding_parameters",
        "head_multiply_adds",
        "matmul_width",
        "matrices",
        "multiply_adds",
        "parameters",
        "routed_adapters",
    )

    def __init__(self, model: Transformer, particulars: Particulars, *, everywhere: bool) -> None:
        parts = projections(model, particulars, everywhere=everywhere)
        blocks = model.layers + model.decoder_layers
        attentions = blocks + model.decoder_layers
        vocabulary = float(model.vocabulary_size * model.hidden_size)
        positions = float(particulars.learned_positions * model.hidden_size)
        norms = float((blocks + attentions + 1) * model.hidden_size)
        inputs = 0.0 if model.tied_embeddings or particulars.patch_inputs else vocabulary
        self.matrices = sum(part.parameters for part in parts)
        self.multiply_adds = sum(part.multiply_adds for part in parts)
        self.matmul_width = _matmul_width(model, particulars, parts)
        self.embedding_parameters = inputs + positions
        outside = vocabulary + self.embedding_parameters + norms
        self.parameters = self.matrices + outside
        self.active_parameters = sum(part.active_parameters for part in parts) + outside
        self.adapters = sum(part.adapter_parameters for part in parts)
        self.adapted = sum(part.active * part.adapted for part in parts)
        self.routed_adapters = sum(part.adapter_parameters * part.routed for part in parts)
        self.adapter_multiply_adds = sum(part.adapter_multiply_adds for part in parts)
        active = sum(part.adapter_parameters * part.active / part.held for part in parts)
        self.active_adapter_share = active / self.adapters
        self.attention_multiply_adds = _attention_multiply_adds(model, particulars)
        read_out = decoder_length(model, particulars) if model.decoder_layers else model.sequence_length
        self.head_multiply_adds = vocabulary * particulars.head_share * read_out


def _attention_multiply_adds(model: Transformer, particulars: Particulars) -> float:
    """Multiply-adds of scores and values for one sample, forward: 2 h_attn per query and visible key."""
    length, target = model.sequence_length, decoder_length(model, particulars)
    visible = model.layers * length * length * (0.5 if model.causal else 1.0)
    visible += model.decoder_layers * (0.5 * target * target + target * length)
    return 2.0 * model.attention_heads * model.head_size * visible


def _amounts(sequence_length: int, tokens: float, global_batch_tokens: float) -> tuple[float, float, list[str]]:
    """Samples of the whole job, samples per step, and assumptions about them."""
    samples, batch = tokens / sequence_length, global_batch_tokens / sequence_length
    if batch > samples:
        return samples, samples, [f"the job is smaller than the batch: one step of all {tokens:.4g} tokens"]
    return samples, batch, []


def _assumptions(
    model: Transformer, training: Training, particulars: Particulars, unit: str, parameters: float
) -> list[str]:
    """Assumptions that follow from dimensions and method."""
    sentences = []
    if model.parameters is not None and abs(model.parameters / parameters - 1) > 0.005:
        sentences.append(f"{parameters:.4g} parameters by the dimensions, not the stated {model.parameters:.4g}")
    if method_of(training).adapters:
        kinds = "attention, feed-forward and expert" if model.experts else "attention and feed-forward"
        where = f"every {kinds} projection" if adapts_everywhere(training) else "query and value projections"
        sentences.append(f"adapters of rank {training.rank} on {where}; embeddings and head frozen")
        if training.parallelism == "auto":
            sentences.append(
                "code for adapters splits batches and states over accelerators, and not the model (DDP, ZeRO, FSDP); "
                "training.parallelism: any also splits the model"
            )
        rules = saved_tensor_rules_of(training)
        causes = [
            *(["the element-wise layers under adapters as frameworks write them"] if rules.eager else []),
            *(["adapter dropout"] if rules.dropped else []),
        ]
        if causes:
            sentences.append(f"memory counts {', and '.join(causes)}")
    if training.activation_checkpointing == OFFLOADED:
        sentences.append("checkpoints lie in host memory, whose room for them is not checked")
    if model.decoder_layers and unit == "tokens":
        target = decoder_length(model, particulars)
        sentences.append(
            f"tokens are input tokens; each {model.sequence_length} of them come with {target} target tokens"
        )
    return sentences


def _task(model: Transformer) -> str:
    if model.decoder_layers:
        return "encoder-decoder"
    if not model.causal:
        return "encoder"
    return "mixture-of-experts" if model.experts else "language"


#: Mean of 1 / inputs and 1 / outputs over the matmuls of a block of GPT, times its hidden size.
_USUAL_WIDTH = 0.75


def _matmul_width(model: Transformer, particulars: Particulars, parts: tuple[Projection, ...]) -> float:
    """Width of the matmuls by FLOPs, of which the narrower side counts most; the hidden size in a block of GPT."""
    total = sum(part.multiply_adds for part in parts)
    narrow = 0.0
    for part in parts:
        inputs, outputs = part.inputs, part.outputs
        inverse = (1.0 / inputs + 1.0 / outputs) / 2.0
        if part.routed and particulars.routed_size:
            # Routed experts in a latent space have narrower matmuls than the shared ones.
            latent = (1.0 / particulars.routed_size + particulars.routed_size / (inputs * outputs)) / 2.0
            routed = model.active_experts / (model.active_experts + model.shared_experts)
            inverse += routed * (latent - inverse)
        narrow += part.multiply_adds * inverse
    return _USUAL_WIDTH * total / narrow


def _shape(model: Transformer, particulars: Particulars, matmul_width: float) -> TransformerShape:
    return TransformerShape(
        layers=model.layers + model.decoder_layers,
        hidden_size=model.hidden_size,
        ffn_size=model.ffn_size if model.layers + model.decoder_layers > moe_layers(model) else 0,
        attention_heads=model.attention_heads,
        kv_heads=model.kv_heads,
        head_size=model.head_size,
        vocabulary_size=model.vocabulary_size,
        sequence_length=model.sequence_length,
        gated_mlp=model.gated_mlp,
        causal=model.causal,
        cross_attention_layers=model.decoder_layers,
        moe_layers=moe_layers(model),
        experts=model.experts,
        active_experts=model.active_experts,
        shared_experts=model.shared_experts,
        expert_ffn_size=model.expert_ffn_size,
        routed_size=particulars.routed_size,
        matmul_width=matmul_width,
    )
