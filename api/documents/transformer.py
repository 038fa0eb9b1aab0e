"""A transformer's dimensions, completed: what the user left out is filled in by a stated rule."""

from api.documents.words import ADAPTERS
from api.documents.workload import TransformerDocument
from catalog.errors import Fault
from planner.job import Training, Transformer

#: Parameters up to which a pretraining batch of so many tokens is usual: GPT-3 (Brown 2020, table 2.1)
#: used 0.5M up to 0.8B parameters, 1M up to 3B, 2M up to 13B, 3.2M at 175B; Llama 2 and 3 used 4M.
_USUAL_BATCH_TOKENS = ((1e9, 2**19), (5e9, 2**20), (30e9, 2**21), (float("inf"), 2**22))
#: A default batch leaves at least this many optimizer steps, so that a short run still trains.
_LEAST_STEPS = 1000
#: Adapters are tuned with small batches: 16 to 128 sequences (Hu 2021; Dettmers 2023).
_ADAPTER_SEQUENCES = 64


def transformer_of(given: TransformerDocument, training: Training) -> tuple[Transformer | None, list[Fault], list[str]]:
    """The transformer, or the faults that keep it from being one, and what was assumed."""
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
    stated["global_batch_tokens"] = given.global_batch_tokens or _batch_tokens(given, ffn_size, training, notes)
    return Transformer(**stated), [], notes


def _ffn_sizes(given: TransformerDocument, notes: list[str]) -> tuple[int, int]:
    """(dense, expert) feed-forward sizes; the dense one of a pure mixture of experts is that of its experts."""
    ffn_size = given.ffn_size or given.expert_ffn_size
    if not ffn_size:
        ffn_size = 4 * given.hidden_size
        notes.append(f"ffn_size was not given: 4 x hidden_size = {ffn_size} (Vaswani 2017)")
    return ffn_size, (given.expert_ffn_size or ffn_size) if given.experts else 0


def _gated(given: TransformerDocument, ffn_size: int, expert_ffn_size: int, notes: list[str]) -> bool:
    """Ungated blocks are four times as wide as the model; any other width means a gated one (Shazeer 2020)."""
    gated = 4 * given.hidden_size not in {ffn_size, expert_ffn_size}
    kind, relation = ("gated (SwiGLU and the like)", "is not") if gated else ("not gated", "is")
    notes.append(f"gated_mlp was not given: taken as {kind}, since ffn_size {relation} 4 x hidden_size")
    return gated


def _batch_tokens(given: TransformerDocument, ffn_size: int, training: Training, notes: list[str]) -> float:
    """A usual batch: by model size for pretraining, 64 sequences for adapters.

    In a power of two sequences, so that any usual number of accelerators divides it.
    """
    if training.method in ADAPTERS:
        tokens, why = _ADAPTER_SEQUENCES * given.sequence_length, "usual for adapters"
    else:
        blocks = given.layers * (4 * given.hidden_size**2 + 3 * given.hidden_size * ffn_size)
        tokens = next(batch for parameters, batch in _USUAL_BATCH_TOKENS if blocks <= parameters)
        why = "usual for a model of this size (0.5M to 4M tokens)"
    tokens = min(tokens, int(given.tokens / _LEAST_STEPS))
    sequences = 2 ** (max(1, tokens // given.sequence_length).bit_length() - 1)
    batch = float(min(sequences * given.sequence_length, given.tokens))
    notes.append(
        f"global_batch_tokens was not given: {batch:.0f} tokens ({sequences} sequences), {why}, "
        f"less where the job would otherwise have fewer than {_LEAST_STEPS} steps, never less than one sequence"
    )
    return batch


#: A field, whether it contradicts the others, and what would be accepted.
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
            f"{heads} does not divide hidden_size {given.hidden_size}; give a divisor, or head_size if heads have a size of their own",
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
            f"{given.active_experts} is not accepted with experts: {experts}; give how many of them a token uses, 1 to {experts}",
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
