"""What a transformer keeps for its backward pass, and what its element-wise layers move, in bytes at 16 bit.

Korthikanti 2022 counts 34 s b h bytes per layer of a GPT block with dropout masks (2 of the 34) and
5 a s/h more where attention scores are kept. Here the same tensors are counted for the block at hand
(gated, grouped-query, with experts), each only where the software keeps it: `Keeping` says which.
"""

from dataclasses import dataclass

from planner.job import Transformer
from planner.workload.methods import Keeping
from planner.workload.projections import Particulars, decoder_length, moe_layers

_HALF = 2.0
_SINGLE = 4.0
#: A dropped-out 16-bit copy and the mask of one byte that goes with it.
_DROPPED = _HALF + 1.0
#: Bytes of an attention score where scores are kept: the softmax in 32 bit (autocast's own list of operations), the
#: dropout mask, and the dropped-out probabilities at 16 bit that the values are multiplied with.
_SCORE = _SINGLE + _DROPPED
#: Tensors of a GELU that is written out in parts (scaled input, error function, half of the input), besides its output.
_GELU_PARTS = 3
#: Bytes per logit kept: 16-bit logits and the 32-bit copy that its gradient overwrites; a stack that
#: is not fused keeps the 32-bit log-softmax as well.
LOGIT_BYTES = {True: _HALF + _SINGLE, False: _HALF + 2 * _SINGLE}
#: Bytes per logit moved by the loss: read and write back at 16 bit when fused; cast up, log-softmax, its
#: gradient and the cast down otherwise (2+4, 4+4, 4+4, 4+2).
LOSS_BYTES = {True: 4 * _HALF, False: 28.0}
#: Bytes per hidden element and sub-block that an eager stack keeps beyond the tensors named here (contiguous copies,
#: views that hold on to more than they show). Fitted: `python -m benchmarks.memory_facts --fit`, bounds 0 to 4.
REST_BYTES = 2.5


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


def transformer_bytes(model: Transformer, particulars: Particulars, keeping: Keeping) -> TransformerBytes:
    """Activation and traffic bytes of one sample of a completed `model`, all layers together."""
    length, target = model.sequence_length, decoder_length(model, particulars)
    mixtures = moe_layers(model)
    attention = _attention(model, length, length, keeping)
    dense, mixture = _feed_forward(model, length, keeping), _experts(model, keeping)
    blocks: list[tuple[int, int, tuple[Kept, ...]]] = [
        (model.layers - mixtures, length, (attention, dense)),
        (mixtures, length, (attention, mixture)),
    ]
    if model.decoder_layers:
        own, crossed = (_attention(model, target, keys, keeping) for keys in (target, length))
        blocks.append((model.decoder_layers, target, (own, crossed, _feed_forward(model, target, keeping))))
    none = sum(count * sum(part.none for part in parts) for count, _, parts in blocks)
    selective = sum(count * sum(part.selective for part in parts) for count, _, parts in blocks)
    inputs = sum(count * positions * model.hidden_size * _HALF for count, positions, _ in blocks)
    working_set = max(sum(part.none for part in parts) for count, _, parts in blocks if count)
    logits = model.vocabulary_size * particulars.head_share * (target if model.decoder_layers else length)
    moved = sum(count * sum(part.moved for part in parts) for count, _, parts in blocks)
    return TransformerBytes(
        kept=(none, selective, min(selective, inputs + working_set)),
        logits=logits * LOGIT_BYTES[keeping.fused],
        moved=moved + logits * LOSS_BYTES[keeping.fused],
    )


def _attention(model: Transformer, queries: int, keys: int, keeping: Keeping) -> Kept:
    """Norm in and out, query, key, value and result; softmax statistics, or the scores where they are kept.

    An eager stack also holds query and key before their rotation, which the packed projection owns.
    Moved: norm (read and write, then two reads and a write) and residual (2 + 3) make 10 h,
    rotary or bias on query and key 4, twice that where not fused; unfused scores pass through
    memory 6 times forward (write, softmax, dropout, read) and 8 times backward.
    """
    heads, shared = model.attention_heads * model.head_size, model.kv_heads * model.head_size
    tensors = _HALF * (2 * queries * heads + 2 * keys * shared)
    statistics = _SINGLE * model.attention_heads * queries
    packed = _HALF * (queries * heads + keys * shared) if keeping.eager else 0.0
    scores = 0.0 if keeping.fused else float(model.attention_heads * queries * keys)
    results = queries * heads if keeping.everywhere else 0
    inputs = _adapter_inputs(keeping, queries * model.hidden_size + results)
    inputs += _quantised_inputs(keeping, queries * model.hidden_size + queries * heads)
    always = tensors + statistics + packed + inputs + _masks(model, queries, keeping)
    passes = 1 if keeping.fused else 2
    moved = _HALF * passes * (10 * queries * model.hidden_size + 4 * (queries * heads + keys * shared))
    return Kept(
        none=_norm(model, queries, keeping) + always + _SCORE * scores,
        selective=_norm_output(model, queries, keeping) + always,
        moved=moved + _HALF * 14 * scores,
    )


def _norm(model: Transformer, positions: int, keeping: Keeping) -> float:
    """A norm's input and output at 16 bit; an eager one as its framework writes it.

    Gated models come with root-mean-square norms, written out in 32 bit: the cast input, and where weights are trained
    the normalised copy and the 16-bit output. Layer norms are one operation: input (32 bit under autocast) and output.
    """
    if not keeping.eager:
        each = 2 * _HALF
    elif model.gated_mlp:
        each = _SINGLE + (_SINGLE + _HALF if keeping.trained else 0.0)
    else:
        each = (_HALF if keeping.fused else _SINGLE) + (_HALF if keeping.trained else 0.0)
    rest = REST_BYTES if keeping.eager else 0.0
    return (each + rest) * positions * model.hidden_size


def _norm_output(model: Transformer, positions: int, keeping: Keeping) -> float:
    """What selective checkpointing keeps of a norm: the input of the trained matmul that follows."""
    return _HALF * positions * model.hidden_size if keeping.trained else 0.0


def _masks(model: Transformer, positions: int, keeping: Keeping) -> float:
    """One byte per hidden element where residuals are dropped out."""
    return 0.0 if keeping.fused else float(positions * model.hidden_size)


def _adapter_inputs(keeping: Keeping, elements: float) -> float:
    """Each adapter's own dropped-out copy of what it reads."""
    return _DROPPED * elements if keeping.adapters else 0.0


def _quantised_inputs(keeping: Keeping, elements: float) -> float:
    """A matmul with 4-bit weights keeps its input though the weights are frozen (bitsandbytes, MatMul4Bit)."""
    return _HALF * elements if keeping.quantised else 0.0


def _feed_forward(model: Transformer, positions: int, keeping: Keeping) -> Kept:
    """Norm in and out, and what the activation function reads and gives."""
    return _activated(model, positions, model.ffn_size, keeping)


def _experts(model: Transformer, keeping: Keeping) -> Kept:
    """As a feed-forward block of all active experts, with each token's copies gathered, scattered and routed."""
    length = model.sequence_length
    width = model.expert_ffn_size * (model.active_experts + model.shared_experts)
    block = _activated(model, length, width, keeping)
    copies = _HALF * length * model.hidden_size * model.active_experts
    router = _SINGLE * length * model.experts
    return Kept(
        none=block.none + 2 * copies + router,
        selective=block.selective + copies + router,
        moved=block.moved + 8 * copies + 3 * router,
    )


def _activated(model: Transformer, positions: int, width: int, keeping: Keeping) -> Kept:
    """A block `width` wide: gated keeps gate, up and their product (the activated gate too if eager).

    Frozen weights need no product, unless they are quantised; adapters keep dropped-out copies of each input.
    Moved: gated 3 passes forward and 5 backward, plain 2 and 3 (twice where not fused), and norm and
    residual 10 h as in attention.
    """
    hidden, tensor = positions * model.hidden_size, _HALF * positions * width
    inputs = 2 if model.gated_mlp else 1
    product = 1 if keeping.trained or keeping.quantised else 0
    parts = 0 if not keeping.eager else 1 if model.gated_mlp else 0 if keeping.fused else _GELU_PARTS
    adapted = inputs * hidden + positions * width if keeping.everywhere else 0
    own = _adapter_inputs(keeping, adapted) + _quantised_inputs(keeping, hidden)
    always = inputs * tensor + _masks(model, positions, keeping) + own
    passes = 1 if keeping.fused else 2
    return Kept(
        none=_norm(model, positions, keeping) + always + (product + parts) * tensor,
        selective=_norm_output(model, positions, keeping) + always,
        moved=passes * (10 * _HALF * hidden + (8 if model.gated_mlp else 5) * tensor),
    )
