"""The work of a transformer: its matrices, attention and head, per token or per sample.

FLOPs of forward plus backward are 6 per multiply-add weight (Kaplan 2020), 4 through frozen weights
plus 6 through adapters; attention adds 12 s h_attn per layer and token, half of it under a causal
mask, where h_attn = heads x head size (Narayanan 2021, eq. 3; Hoffmann 2022, app. F); the head 6 V h.
"""

from dataclasses import replace
from functools import lru_cache

from catalog.errors import UnusableInput
from planner.job import Training, Transformer
from planner.workload.activations import transformer_bytes
from planner.workload.dimensions import check_amounts, completed, stated_parameters_fault
from planner.workload.methods import adapts_everywhere, check_rank, frozen_bytes, keeping_of, method_of
from planner.workload.projections import Particulars, decoder_length, moe_layers, projections
from planner.workload.work import TransformerShape, Work

_PLAIN = Particulars()


def transformer_work(
    model: Transformer,
    training: Training,
    *,
    name: str = "transformer",
    task: str = "",
    unit: str = "tokens",
    particulars: Particulars = _PLAIN,
    assumptions: tuple[str, ...] = (),
) -> Work:
    """Work of one optimizer step and of the whole job.

    `unit` tokens makes throughput count input tokens; samples makes it count sequences (of which
    `model.tokens` and `global_batch_tokens` still give the number, times the sequence length).
    Raises `UnusableInput` at ("workload", field) for contradictory dimensions and at
    ("training", field) for methods, ranks and software that are not known.
    """
    once = float(model.sequence_length)
    return work_of_amount(
        replace(model, tokens=once, global_batch_tokens=once),
        model.tokens,
        model.global_batch_tokens,
        training,
        name=name,
        task=task,
        unit=unit,
        particulars=particulars,
        assumptions=assumptions,
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
    """The same for so many tokens, of a model whose own amounts are those of one sample."""
    check_amounts(one_sample, tokens, global_batch_tokens)
    work = _of_one_sample(one_sample, training, name=name, task=task, unit=unit, particulars=particulars)
    samples, batch, said = _amounts(one_sample.sequence_length, tokens, global_batch_tokens)
    return replace(
        work,
        units_total=samples * work.units_per_sample,
        units_per_step=batch * work.units_per_sample,
        assumptions=(*assumptions, *said, *work.assumptions),
    )


#: What a model asks for per sample is the same for every amount of it.
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
    sizes = transformer_bytes(model, particulars, keeping_of(training))
    per_sample = 1 if unit == "samples" else model.sequence_length
    linear = 2 * method.base_passes * counts.multiply_adds
    if method.adapters:
        linear += 6 * training.rank * counts.adapter_multiply_adds
    return Work(
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
        vector_bytes_per_unit=sizes.moved / per_sample,
        activation_bytes_per_sample=sizes.kept,
        logits_bytes_per_sample=sizes.logits,
        frozen_parameter_bytes=frozen_bytes(training, counts.matrices, counts.parameters - counts.matrices)
        if method.adapters
        else 0.0,
        expert_adapter_parameters=training.rank * counts.routed_adapters if method.adapters else 0.0,
        shape=_shape(model),
        assumptions=tuple(_said(model, training, particulars, unit, counts.parameters)),
    )


class _Counts:
    """Sums over the matrices of a completed model, per model and per sample."""

    __slots__ = (
        "active_adapter_share",
        "active_parameters",
        "adapter_multiply_adds",
        "adapters",
        "attention_multiply_adds",
        "embedding_parameters",
        "head_multiply_adds",
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
        self.embedding_parameters = inputs + positions
        outside = vocabulary + self.embedding_parameters + norms
        self.parameters = self.matrices + outside
        self.active_parameters = sum(part.active_parameters for part in parts) + outside
        self.adapters = sum(part.adapter_parameters for part in parts)
        self.routed_adapters = sum(part.adapter_parameters * part.routed for part in parts)
        self.adapter_multiply_adds = sum(part.adapter_multiply_adds for part in parts)
        active = sum(part.adapter_parameters * part.active / part.held for part in parts)
        self.active_adapter_share = active / self.adapters
        self.attention_multiply_adds = _attention_multiply_adds(model, particulars)
        read_out = decoder_length(model, particulars) if model.decoder_layers else model.sequence_length
        self.head_multiply_adds = vocabulary * particulars.head_share * read_out


def _attention_multiply_adds(model: Transformer, particulars: Particulars) -> float:
    """Of scores and values for one sample, forward: 2 h_attn per query and visible key."""
    length, target = model.sequence_length, decoder_length(model, particulars)
    visible = model.layers * length * length * (0.5 if model.causal else 1.0)
    visible += model.decoder_layers * (0.5 * target * target + target * length)
    return 2.0 * model.attention_heads * model.head_size * visible


def _amounts(sequence_length: int, tokens: float, global_batch_tokens: float) -> tuple[float, float, list[str]]:
    """Samples of the whole job, samples per step, and what to say about them."""
    samples, batch = tokens / sequence_length, global_batch_tokens / sequence_length
    if batch > samples:
        return samples, samples, [f"the job is smaller than the batch: one step of all {tokens:.4g} tokens"]
    return samples, batch, []


def _said(model: Transformer, training: Training, particulars: Particulars, unit: str, counted: float) -> list[str]:
    """Assumptions that follow from dimensions and method."""
    said = []
    if model.parameters is not None and abs(model.parameters / counted - 1) > 0.005:
        said.append(f"{counted:.4g} parameters by the dimensions, not the stated {model.parameters:.4g}")
    if method_of(training).adapters:
        kinds = "attention, feed-forward and expert" if model.experts else "attention and feed-forward"
        where = f"every {kinds} projection" if adapts_everywhere(training) else "query and value projections"
        said.append(f"adapters of rank {training.rank} on {where}; embeddings and head frozen")
        said.append(
            "memory counts the element-wise layers under adapters as frameworks write them, and adapter dropout"
        )
    if model.decoder_layers and unit == "tokens":
        target = decoder_length(model, particulars)
        said.append(f"tokens are input tokens; each {model.sequence_length} of them come with {target} target tokens")
    return said


def _task(model: Transformer) -> str:
    if model.decoder_layers:
        return "encoder-decoder"
    if not model.causal:
        return "encoder"
    return "mixture-of-experts" if model.experts else "language"


def _shape(model: Transformer) -> TransformerShape:
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
    )
