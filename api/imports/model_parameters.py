"""Counts the parameters of a model from the dimensions that its Hugging Face configuration states.

Layers are counted one by one, so that models whose layers differ (latent attention, linear attention, state spaces,
layers without attention) are counted too. Sources: the modules of huggingface/transformers, `src/transformers/models`,
read on 2026-11-27, of the family named beside each formula.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class ModelShape:
    """The dimensions that decide the count; `attention` and `feed_forward` hold one count of parameters per layer."""

    hidden: int
    vocabulary: int
    tied: bool
    attention: Sequence[float]
    feed_forward: Sequence[float]
    #: Parameters of one layer that a token does not use: experts that it is not routed to.
    idle: Sequence[float] = ()
    #: Tables and heads beside the layers: positions, token types, poolers, convolutions.
    other: float = 0.0
    #: Whether the input embeddings count; CLIP's vision tower has none.
    norms_per_layer: float = 2.0
    norm_bias: bool = False
    embedding_size: int = 0
    cross_attention: Sequence[float] = field(default_factory=tuple)

    def total(self) -> float:
        """All parameters."""
        width = self.embedding_size or self.hidden
        embeddings = self.vocabulary * width * (1 if self.tied else 2)
        norm = self.hidden * (2 if self.norm_bias else 1)
        layers = max(len(self.attention), len(self.feed_forward)) + len(self.cross_attention)
        norms = norm * (self.norms_per_layer * layers + 1)
        return (
            embeddings + sum(self.attention) + sum(self.feed_forward) + sum(self.cross_attention) + norms + self.other
        )

    def active(self) -> float:
        """Parameters that one token uses, all embeddings included."""
        return self.total() - sum(self.idle)


def plain_attention(hidden: int, heads: int, kv_heads: int, head: int, *, bias: float = 0.0) -> float:
    """Query, key, value and output projections; `bias` is 1 with biases on all four, 0.5 on query, key and value alone."""
    biases = head * (heads + 2 * kv_heads) * (1 if bias else 0) + (hidden if bias >= 1 else 0)
    return hidden * head * (2 * heads + 2 * kv_heads) + biases


def latent_attention(
    *, hidden: int, heads: int, q_rank: int | None, kv_rank: int, nope: int, rope: int, value: int
) -> float:
    """Multi-head latent attention (DeepSeek-AI 2024, section 2.1); without a query rank, one plain matrix."""
    queries = (
        hidden * heads * (nope + rope) if not q_rank else hidden * q_rank + q_rank * heads * (nope + rope) + q_rank
    )
    return queries + hidden * (kv_rank + rope) + kv_rank * heads * (nope + value) + heads * value * hidden + kv_rank


def linear_attention(
    *, hidden: int, key_heads: int, value_heads: int, key_head: int, value_head: int, convolution: int
) -> float:
    """Gated delta net of Qwen3-Next: projections of q, k, v and gate, of beta and alpha, a short convolution, output."""
    keys, values = key_heads * key_head, value_heads * value_head
    projections = hidden * (2 * keys + 2 * values) + hidden * 2 * value_heads
    return projections + (2 * keys + values) * convolution + values * hidden + 2 * value_heads + value_head


def state_space(*, hidden: int, heads: int, head: int, groups: int, state: int, convolution: int) -> float:
    """Mamba 2: input projection, short convolution, output projection (Dao and Gu 2024)."""
    inner, both = heads * head, 2 * groups * state
    projection = hidden * (2 * inner + both + heads)
    return projection + (inner + both) * (convolution + 1) + inner * hidden + 3 * heads + inner


def feed_forward(hidden: int, width: int, *, gated: bool, bias: bool = False) -> float:
    """Two matrices, or three with a gate."""
    matrices = 3 if gated else 2
    return matrices * hidden * width + (((matrices - 1) * width + hidden) if bias else 0)


def vision_tower(
    *, layers: int, hidden: int, width: int, patch: int, positions: int, gated: bool = False, channels: int = 3
) -> float:
    """A vision transformer: patches, positions, layers with biases, two norms around them (Dosovitskiy 2021)."""
    layer = 4 * hidden * hidden + 4 * hidden + feed_forward(hidden, width, gated=gated, bias=True) + 4 * hidden
    return layers * layer + channels * patch * patch * hidden + (positions + 1) * hidden + 4 * hidden
