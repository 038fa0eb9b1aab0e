"""Completes a transformer's dimensions: missing ones are filled in by stated rules."""

from gpuplan.api.schemas.workload import TransformerDocument
from gpuplan.catalog.runtime.errors import Fault
from gpuplan.planner.model.job import ADAPTERS, Training, Transformer
from gpuplan.planner.workload.training_batch import (
    LEAST_STEPS,
    adapter_batch,
    best_batch_tokens,
    in_whole_sequences,
)


def transformer_of(given: TransformerDocument, training: Training) -> tuple[Transformer | None, list[Fault], list[str]]:
    """The transformer or its faults, and notes on assumptions."""
    notes: list[str] = []
    faults = _contradictions(given)
    if faults:
        return None, faults, notes
    ffn_size, expert_ffn_size = _ffn_sizes(given, notes)
    head_size = given.head_size or given.hidden_size // given.attention_heads
    gated = given.gated_mlp if given.gated_mlp is not None else _gated(given, ffn_size, expert_ffn_size, notes)
    stated = given.model_dump(exclude={"kind", "active_experts"})
    stated |= {"ffn_size": ffn_size, "expert_ffn_size": expert_ffn_size, "head_size": head_size, "gated_mlp": gated}
    stated["kv_heads"] = given.kv_heads or given.attention_heads
    stated["active_experts"] = given.active_experts
    stated["batch_is_default"] = given.global_batch_tokens is None
    stated["global_batch_tokens"] = given.global_batch_tokens or _batch_tokens(
        given, ffn_size, expert_ffn_size, training, notes
    )
    return Transformer(**stated), [], notes


def _ffn_sizes(given: TransformerDocument, notes: list[str]) -> tuple[int, int]:
    """(dense, expert) feed-forward sizes; without dense layers, the dense size is that of the experts."""
    ffn_size = given.ffn_size or given.expert_ffn_size
    if not ffn_size:
        ffn_size = 4 * given.hidden_size
        notes.append(f"ffn_size was not given: 4 x hidden_size = {ffn_size} (Vaswani 2017)")
    return ffn_size, (given.expert_ffn_size or ffn_size) if given.experts else 0


def _gated(given: TransformerDocument, ffn_size: int, expert_ffn_size: int, notes: list[str]) -> bool:
    """Whether the blocks are gated: by default, if not four times as wide as the model (Shazeer 2020)."""
    gated = 4 * given.hidden_size not in {ffn_size, expert_ffn_size}
    kind, relation = ("gated (SwiGLU and the like)", "is not") if gated else ("not gated", "is")
    notes.append(f"gated_mlp was not given: assumed {kind}, because ffn_size {relation} 4 x hidden_size")
    return gated


def _batch_tokens(
    given: TransformerDocument, ffn_size: int, expert_ffn_size: int, training: Training, notes: list[str]
) -> float:
    """The batch by model size and amount of training, or 64 sequences for adapters."""
    if training.method in ADAPTERS:
        sequences, why = adapter_batch(given.tokens / given.sequence_length, "tokens")
        batch: float = min(in_whole_sequences(sequences * given.sequence_length, given.sequence_length), given.tokens)
        notes.append(f"global_batch_tokens was not given: {batch:.0f} tokens ({why})")
        return batch
    width = expert_ffn_size * (given.active_experts + given.shared_experts) if given.experts else ffn_size
    active = given.layers * (4 * given.hidden_size**2 + 3 * given.hidden_size * width)
    tokens, why = best_batch_tokens(active, given.tokens), "for a model and run of this size (DeepSeek-AI 2024)"
    batch = min(in_whole_sequences(min(tokens, given.tokens / LEAST_STEPS), given.sequence_length), given.tokens)
    notes.append(
        f"global_batch_tokens was not given: {batch:.0f} tokens ({max(1, batch // given.sequence_length):.0f} sequences), {why}, "
        f"reduced to give at least {LEAST_STEPS} steps, at least one sequence"
    )
    return batch


#: (field, whether it contradicts the others, message)
Rule = tuple[str, bool, str]


def _contradictions(given: TransformerDocument) -> list[Fault]:
    rules = [*_head_rules(given), *_expert_rules(given), *_batch_rules(given)]
    return [Fault(("workload", field), message) for field, wrong, message in rules if wrong]


def _head_rules(given: TransformerDocument) -> list[Rule]:
    heads, kv_heads = given.attention_heads, given.kv_heads or given.attention_heads
    return [
        (
            "attention_heads",
            given.head_size is None and given.hidden_size % heads != 0,
            f"{heads} does not divide hidden_size {given.hidden_size}; give a divisor, or head_size",
        ),
        (
            "kv_heads",
            heads % kv_heads != 0,
            f"{kv_heads} does not divide attention_heads {heads}; give a divisor of it (or leave it out for {heads})",
        ),
    ]


def _expert_rules(given: TransformerDocument) -> list[Rule]:
    experts, routed = given.experts, bool(given.experts)
    return [
        (
            "active_experts",
            routed and not 1 <= given.active_experts <= experts,
            f"{given.active_experts} is not accepted with experts: {experts}; give the experts per token, 1 to {experts}",
        ),
        (
            "experts",
            not routed and (given.active_experts > 0 or given.shared_experts > 0 or bool(given.expert_ffn_size)),
            "is 0 or missing, but active_experts, shared_experts or expert_ffn_size is given; give experts too",
        ),
        (
            "dense_layers",
            given.dense_layers > (given.layers if routed else 0),
            f"{given.dense_layers} is not accepted; it counts layers without experts, 0 to {given.layers if routed else 0}",
        ),
        (
            "ffn_size",
            routed and given.dense_layers > 0 and given.ffn_size is None,
            "is missing; a mixture of experts with dense_layers needs the feed-forward size of those layers",
        ),
    ]


def _batch_rules(given: TransformerDocument) -> list[Rule]:
    batch = given.global_batch_tokens
    return [
        (
            "global_batch_tokens",
            batch is not None and batch > given.tokens,
            f"{batch or 0:g} is more than all tokens ({given.tokens:g}); give at most that",
        ),
        (
            "global_batch_tokens",
            batch is not None and batch < min(given.sequence_length, given.tokens),
            f"{batch or 0:g} is less than one sequence of {given.sequence_length} tokens; give at least that",
        ),
    ]
