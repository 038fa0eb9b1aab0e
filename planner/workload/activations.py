"""What a transformer keeps for its backward pass, and what its element-wise layers move, in bytes at 16 bit.

Korthikanti 2022 counts 34 s b h bytes per layer of a GPT block with dropout masks (2 of the 34) and
5 a s/h more where attention scores are kept. Here the same tensors are counted for the block at hand
(gated, grouped-query, with experts), with masks and scores only where the software keeps them.
"""

from dataclasses import dataclass

from planner.job import Transformer
from planner.workload.projections import Particulars, decoder_length, moe_layers

_HALF = 2.0
_SINGLE = 4.0
#: Bytes per logit kept: 16-bit logits and the 32-bit copy that its gradient overwrites; a stack that
#: is not fused keeps the 32-bit log-softmax as well.
LOGIT_BYTES = {True: _HALF + _SINGLE, False: _HALF + 2 * _SINGLE}
#: Bytes per logit moved by the loss: read and write back at 16 bit when fused; cast up, log-softmax, its
#: gradient and the cast down otherwise (2+4, 4+4, 4+4, 4+2).
LOSS_BYTES = {True: 4 * _HALF, False: 28.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Bytes of one kind of sub-block for one sample: kept without and with selective checkpointing, and moved."""

    none: float
    selective: float
    moved: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerBytes:
    """Per sample: kept by (none, selective, full) checkpointing, kept logits, moved by element-wise layers."""

    kept: tuple[float, float, float]
    logits: float
    moved: float


def transformer_bytes(model: Transformer, particulars: Particulars, *, fused: bool) -> TransformerBytes:
    """Activation and traffic bytes of one sample of a completed `model`, all layers together."""
    length, target = model.sequence_length, decoder_length(model, particulars)
    mixtures = moe_layers(model)
    attention = _attention(model, length, length, fused=fused)
    dense, mixture = _feed_forward(model, length, fused=fused), _experts(model, fused=fused)
    blocks: list[tuple[int, int, tuple[Kept, ...]]] = [
        (model.layers - mixtures, length, (attention, dense)),
        (mixtures, length, (attention, mixture)),
    ]
    if model.decoder_layers:
        own, crossed = (_attention(model, target, keys, fused=fused) for keys in (target, length))
        blocks.append((model.decoder_layers, target, (own, crossed, _feed_forward(model, target, fused=fused))))
    none = sum(count * sum(part.none for part in parts) for count, _, parts in blocks)
    selective = sum(count * sum(part.selective for part in parts) for count, _, parts in blocks)
    inputs = sum(count * positions * model.hidden_size * _HALF for count, positions, _ in blocks)
    working_set = max(sum(part.none for part in parts) for count, _, parts in blocks if count)
    logits = model.vocabulary_size * particulars.head_share * (target if model.decoder_layers else length)
    moved = sum(count * sum(part.moved for part in parts) for count, _, parts in blocks)
    return TransformerBytes(
        kept=(none, selective, min(selective, inputs + working_set)),
        logits=logits * LOGIT_BYTES[fused],
        moved=moved + logits * LOSS_BYTES[fused],
    )


def _attention(model: Transformer, queries: int, keys: int, *, fused: bool) -> Kept:
    """Norm in and out, query, key, value and result; softmax statistics, or the scores where not fused.

    Moved: norm (read and write, then two reads and a write) and residual (2 + 3) make 10 h,
    rotary or bias on query and key 4, twice that where not fused; unfused scores pass through
    memory 6 times forward (write, softmax, dropout, read) and 8 times backward.
    """
    heads, shared = model.attention_heads * model.head_size, model.kv_heads * model.head_size
    norms = _HALF * queries * model.hidden_size
    tensors = _HALF * (2 * queries * heads + 2 * keys * shared)
    statistics = _SINGLE * model.attention_heads * queries
    scores = 0.0 if fused else float(model.attention_heads * queries * keys)
    masks = 0.0 if fused else float(queries * model.hidden_size)
    passes = 1 if fused else 2
    moved = _HALF * passes * (10 * queries * model.hidden_size + 4 * (queries * heads + keys * shared))
    return Kept(
        none=2 * norms + tensors + statistics + masks + 5 * scores,
        selective=norms + tensors + statistics + masks,
        moved=moved + _HALF * 14 * scores,
    )


def _feed_forward(model: Transformer, positions: int, *, fused: bool) -> Kept:
    """Norm in and out, and what the activation function reads and gives."""
    return _activated(model, positions, model.ffn_size, fused=fused)


def _experts(model: Transformer, *, fused: bool) -> Kept:
    """As a feed-forward block of all active experts, with each token's copies gathered, scattered and routed."""
    length = model.sequence_length
    width = model.expert_ffn_size * (model.active_experts + model.shared_experts)
    block = _activated(model, length, width, fused=fused)
    copies = _HALF * length * model.hidden_size * model.active_experts
    router = _SINGLE * length * model.experts
    return Kept(
        none=block.none + 2 * copies + router,
        selective=block.selective + copies + router,
        moved=block.moved + 8 * copies + 3 * router,
    )


def _activated(model: Transformer, positions: int, width: int, *, fused: bool) -> Kept:
    """A block `width` wide: gated keeps gate, up and their product (the activated gate too if not fused).

    Moved: gated 3 passes forward and 5 backward, plain 2 and 3 (twice where not fused), and norm and
    residual 10 h as in attention.
    """
    norms = _HALF * positions * model.hidden_size
    tensor = _HALF * positions * width
    masks = 0.0 if fused else float(positions * model.hidden_size)
    inputs = 2 if model.gated_mlp else 1
    extra = 0 if fused or not model.gated_mlp else 1
    passes = 1 if fused else 2
    return Kept(
        none=2 * norms + (inputs + 1 + extra) * tensor + masks,
        selective=norms + inputs * tensor + masks,
        moved=passes * (10 * norms + (8 if model.gated_mlp else 5) * tensor),
    )
