"""Bytes that a transformer saves for its backward pass, and that its element-wise layers move, at 16 bit.

Korthikanti 2022 counts 34 s b h bytes per layer of a GPT block with dropout masks (2 of the 34), and 5 a s/h more if
attention scores are saved. This module counts the same tensors for other blocks too (gated, grouped-query, with
experts). `SavedTensorRules` states which tensors the software saves.
"""

from dataclasses import dataclass

from gpuplan.planner.model.job import Transformer
from gpuplan.planner.workload.training_methods import SavedTensorRules
from gpuplan.planner.workload.transformer_projections import Particulars, decoder_length, moe_layers

_HALF = 2.0
_SINGLE = 4.0
#: Bytes of a 16-bit copy after dropout, with its mask of one byte.
_DROPPED = _HALF + 1.0
#: Bytes of a saved attention score (Korthikanti 2022): the softmax at 16 bit, the dropout mask, and the dropped-out
#: probabilities at 16 bit that the values are multiplied with.
_SCORE = _HALF + _DROPPED
#: Tensors of an unfused GELU (scaled input, error function, half of the input), besides its output.
_GELU_PARTS = 3
#: Bytes per logit moved by the loss: read and write back at 16 bit when fused; cast up, log-softmax, its
#: gradient and the cast down otherwise (2+4, 4+4, 4+4, 4+2).
LOSS_BYTES = {True: 4 * _HALF, False: 28.0}
#: Bytes per hidden element and sub-block that an eager stack saves beyond the tensors counted here (contiguous copies,
#: views of larger tensors). Fitted: `python -m tools.fitting.memory_facts --fit`, bounds 0 to 4.
REST_BYTES = 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedActivations:
    """Bytes of one sub-block for one sample: saved without and with selective checkpointing, moved, and of gradients.

    `gradients` are those of its widest tensors, which stand together in its backward pass.
    """

    none: float
    selective: float
    moved: float
    gradients: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerBytes:
    """Bytes per sample: saved under (none, selective, full) checkpointing, saved logits, moved by element-wise layers.

    `offloaded` are those of checkpoints in host memory, `gradients` those of the widest tensors of one block, `working_set`
    all that a block holds in its backward pass.
    """

    saved: tuple[float, float, float]
    gradients: float
    working_set: float
    offloaded: float
    logits: float
    moved: float


def transformer_bytes(
    model: Transformer, particulars: Particulars, saved_tensor_rules: SavedTensorRules
) -> TransformerBytes:
    """Activation and traffic bytes of one sample of a completed `model`, all layers together."""
    length, target = model.sequence_length, decoder_length(model, particulars)
    mixtures = moe_layers(model)
    attention = _attention(model, length, length, saved_tensor_rules)
    dense, mixture = _feed_forward(model, length, saved_tensor_rules), _experts(model, particulars, saved_tensor_rules)
    blocks: list[tuple[int, int, tuple[SavedActivations, ...]]] = [
        (model.layers - mixtures, length, (attention, dense)),
        (mixtures, length, (attention, mixture)),
    ]
    if model.decoder_layers:
        self_attention, crossed = (_attention(model, target, keys, saved_tensor_rules) for keys in (target, length))
        blocks.append(
            (model.decoder_layers, target, (self_attention, crossed, _feed_forward(model, target, saved_tensor_rules)))
        )
    none = sum(count * sum(part.none for part in parts) for count, _, parts in blocks)
    selective = sum(count * sum(part.selective for part in parts) for count, _, parts in blocks)
    inputs = sum(count * positions * model.hidden_size * _HALF for count, positions, _ in blocks)
    # While one block runs, the input of the next is fetched from the host.
    on_device = 2 * max(length, target) * model.hidden_size * _HALF if saved_tensor_rules.offloaded else inputs
    gradients = max(part.gradients for count, _, parts in blocks if count for part in parts)
    working_set = gradients + max(sum(part.none for part in parts) for count, _, parts in blocks if count)
    logits = model.vocabulary_size * particulars.head_share * (target if model.decoder_layers else length)
    moved = sum(count * sum(part.moved for part in parts) for count, _, parts in blocks)
    return TransformerBytes(
        saved=(none, selective, min(selective, on_device + working_set)),
        gradients=gradients,
        working_set=working_set,
        offloaded=inputs if saved_tensor_rules.offloaded else 0.0,
        logits=logits * saved_tensor_rules.logit_bytes,
        moved=moved + logits * LOSS_BYTES[saved_tensor_rules.fused],
    )


def selective_recomputed_share(model: Transformer, saved_tensor_rules: SavedTensorRules) -> float:
    """Share of the matmul FLOPs of blocks that selective checkpointing computes again: where results are saved by operation.

    It computes key, result and up (or the second matmul) again, but not attention.
    """
    if not saved_tensor_rules.by_operation:
        return 0.0
    heads, shared = model.attention_heads * model.head_size, model.kv_heads * model.head_size
    width = model.ffn_size
    if model.experts:
        width = model.expert_ffn_size * (model.active_experts + model.shared_experts)
    matmuls = 2 * heads + 2 * shared + (3 if model.gated_mlp else 2) * width
    return (heads + shared + width) / matmuls


def _attention(model: Transformer, queries: int, keys: int, saved_tensor_rules: SavedTensorRules) -> SavedActivations:
    """Saved: norm input and output, query, key, value, result, and softmax statistics, or the scores where unfused.

    An eager stack also saves query and key before their rotation, as part of the packed projection. Moved: norm (read and
    write, then two reads and a write) and residual (2 + 3) make 10 h, rotary or bias on query and key 4, twice that where
    not fused. Unfused scores pass through memory 6 times forward (write, softmax, dropout, read) and 8 times backward.
    """
    heads, shared = model.attention_heads * model.head_size, model.kv_heads * model.head_size
    tensors = _HALF * (2 * queries * heads + 2 * keys * shared)
    statistics = _SINGLE * model.attention_heads * queries
    before_rotation = _HALF * (queries * heads + keys * shared) if saved_tensor_rules.eager else 0.0
    scores = 0.0 if saved_tensor_rules.fused else float(model.attention_heads * queries * keys)
    results = queries * heads if saved_tensor_rules.everywhere else 0
    inputs = _adapter_inputs(saved_tensor_rules, queries * model.hidden_size + results)
    inputs += _undropped_inputs(saved_tensor_rules, queries * model.hidden_size)
    inputs += _quantised_inputs(saved_tensor_rules, queries * model.hidden_size + queries * heads)
    always = tensors + statistics + before_rotation + inputs + _masks(model, queries, saved_tensor_rules)
    passes = saved_tensor_rules.passes
    moved = _HALF * passes * (10 * queries * model.hidden_size + 4 * (queries * heads + keys * shared))
    selective = _norm_output(model, queries, saved_tensor_rules) + always
    if saved_tensor_rules.by_operation:
        # Of query, key, value and result, the first and the third.
        selective = _HALF * (queries * (model.hidden_size + 2 * heads) + keys * shared) + statistics
    return SavedActivations(
        none=_norm(model, queries, saved_tensor_rules) + always + _SCORE * scores,
        selective=selective,
        moved=moved + _HALF * 14 * scores,
    )


def _norm(model: Transformer, positions: int, saved_tensor_rules: SavedTensorRules) -> float:
    """Saved bytes of a norm: input and output at 16 bit, or the tensors of the framework's eager implementation.

    Eager gated models have root-mean-square norms in 32 bit: the cast input and, if weights are trained, the normalised
    copy and the 16-bit output. Eager layer norms are one operation: input (32 bit under autocast) and output.
    """
    if not saved_tensor_rules.eager:
        bytes_per_element = 2 * _HALF
    elif model.gated_mlp:
        bytes_per_element = _SINGLE + (_SINGLE + _HALF if saved_tensor_rules.trained else 0.0)
    else:
        bytes_per_element = (_HALF if saved_tensor_rules.fused else _SINGLE) + (
            _HALF if saved_tensor_rules.trained else 0.0
        )
    rest = REST_BYTES if saved_tensor_rules.eager else 0.0
    return (bytes_per_element + rest) * positions * model.hidden_size


def _norm_output(model: Transformer, positions: int, saved_tensor_rules: SavedTensorRules) -> float:
    """Bytes that selective checkpointing saves of a norm: the input of the trained matmul that follows."""
    return _HALF * positions * model.hidden_size if saved_tensor_rules.trained else 0.0


def _masks(model: Transformer, positions: int, saved_tensor_rules: SavedTensorRules) -> float:
    """Bytes of the dropout masks of residuals: one per hidden element in unfused stacks."""
    return 0.0 if saved_tensor_rules.fused else float(positions * model.hidden_size)


def _adapter_inputs(saved_tensor_rules: SavedTensorRules, elements: float) -> float:
    """Bytes of the dropped-out copy of its input that each adapter saves."""
    return _DROPPED * elements if saved_tensor_rules.dropped else 0.0


def _undropped_inputs(saved_tensor_rules: SavedTensorRules, normed: float, others: float = 0.0) -> float:
    """Bytes of the inputs that adapters without dropout share with their matmuls, where nothing else saves them.

    Matmuls with 4-bit weights save theirs, and fused norms their output.
    """
    if not saved_tensor_rules.adapters or saved_tensor_rules.dropped or saved_tensor_rules.quantised:
        return 0.0
    return _HALF * (others + (normed if saved_tensor_rules.eager else 0.0))


def _quantised_inputs(saved_tensor_rules: SavedTensorRules, elements: float) -> float:
    """Bytes of the inputs that matmuls with 4-bit weights save although weights are frozen (bitsandbytes, MatMul4Bit).

    Fused norms save their output anyhow.
    """
    return _HALF * elements if saved_tensor_rules.quantised and saved_tensor_rules.eager else 0.0


def _feed_forward(model: Transformer, positions: int, saved_tensor_rules: SavedTensorRules) -> SavedActivations:
    """Norm input and output, and input and output of the activation function."""
    return _activated(model, positions, model.ffn_size, saved_tensor_rules)


def _experts(model: Transformer, particulars: Particulars, saved_tensor_rules: SavedTensorRules) -> SavedActivations:
    """A feed-forward block of all active experts, plus the gathered and scattered copies of tokens and the router."""
    length = model.sequence_length
    width = model.expert_ffn_size * (model.active_experts + model.shared_experts)
    block = _activated(model, length, width, saved_tensor_rules)
    copies = _HALF * length * (particulars.routed_size or model.hidden_size) * model.active_experts
    router = _SINGLE * length * model.experts
    return SavedActivations(
        none=block.none + 2 * copies + router,
        selective=block.selective + copies + router,
        moved=block.moved + 8 * copies + 3 * router,
        gradients=block.gradients,
    )


def _activated(
    model: Transformer, positions: int, width: int, saved_tensor_rules: SavedTensorRules
) -> SavedActivations:
    """A feed-forward block of this width. A gated one saves gate, up and their product (if eager, also the activated gate).

    Frozen weights do not need the product, unless they are quantised. Adapters save dropped-out copies of each input.
    Moved: gated 3 passes forward and 5 backward, plain 2 and 3 (twice where not fused), and norm and residual 10 h as in
    attention.
    """
    hidden, tensor = positions * model.hidden_size, _HALF * positions * width
    inputs = 2 if model.gated_mlp else 1
    product = 1 if saved_tensor_rules.trained or saved_tensor_rules.quantised else 0
    parts = (
        0 if not saved_tensor_rules.eager else 1 if model.gated_mlp else 0 if saved_tensor_rules.fused else _GELU_PARTS
    )
    adapted = inputs * hidden + positions * width if saved_tensor_rules.everywhere else 0
    saved_inputs = _adapter_inputs(saved_tensor_rules, adapted) + _quantised_inputs(saved_tensor_rules, hidden)
    if saved_tensor_rules.everywhere:
        saved_inputs += _undropped_inputs(saved_tensor_rules, hidden, positions * width)
    always = inputs * tensor + _masks(model, positions, saved_tensor_rules) + saved_inputs
    passes = saved_tensor_rules.passes
    selective = _norm_output(model, positions, saved_tensor_rules) + always
    if saved_tensor_rules.by_operation:
        # Of gate, up and down the first and the last, of two matmuls the first.
        selective = tensor + (_HALF * hidden if model.gated_mlp else 0.0)
    return SavedActivations(
        none=_norm(model, positions, saved_tensor_rules) + always + (product + parts) * tensor,
        selective=selective,
        moved=passes * (10 * _HALF * hidden + (8 if model.gated_mlp else 5) * tensor),
        # That of the activated product goes when the inputs' own are there.
        gradients=(inputs + 1) * tensor - (product * tensor),
    )
