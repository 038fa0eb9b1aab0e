"""The weight matrices of a transformer, over which parameters, FLOPs and adapters are summed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpuplan.planner.model.job import Transformer


@dataclass(frozen=True, slots=True, kw_only=True)
class Particulars:
    """Properties of a published model beyond the dimensions of a `Transformer`.

    `learned_positions` counts position embeddings. `attention_parameters` are those of one attention block that does not
    consist of four plain projections (latent attention). `head_share` is the share of positions whose logits are computed
    (masked language models, classifiers). `decoder_sequence_length` is the length of the target (0: that of the input).
    `patch_inputs` counts the numbers in one patch if a projection of patches replaces the input embedding. `routed_size` is
    the width of the copies of a token that go to experts in a latent space (0: that of the model).
    """

    learned_positions: int = 0
    attention_parameters: float | None = None
    head_share: float = 1.0
    decoder_sequence_length: int = 0
    patch_inputs: int = 0
    routed_size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """Equal weight matrices: `held` in the model, of which each position passes through `active`.

    `positions` of one sample pass through them. The share `adapted` of the matrices gets a low-rank adapter under LoRA.
    `query_and_value` is the share of queries and values among them, `routed` that of routed experts.
    """

    inputs: float
    outputs: float
    held: int
    active: int
    positions: int
    adapted: float = 1.0
    query_and_value: float = 0.0
    routed: float = 0.0

    @property
    def parameters(self) -> float:
        """Parameters of all matrices."""
        return self.inputs * self.outputs * self.held

    @property
    def active_parameters(self) -> float:
        """Parameters of the matrices that one position passes through."""
        return self.inputs * self.outputs * self.active

    @property
    def multiply_adds(self) -> float:
        """Multiply-adds of one sample, forward."""
        return self.active_parameters * self.positions

    @property
    def adapter_parameters(self) -> float:
        """Parameters of all adapters per unit of rank: in + out (Hu 2021)."""
        return (self.inputs + self.outputs) * self.held * self.adapted

    @property
    def adapter_multiply_adds(self) -> float:
        """Multiply-adds of the adapters for one sample, forward, per unit of rank."""
        return (self.inputs + self.outputs) * self.active * self.positions * self.adapted


def projections(model: Transformer, particulars: Particulars, *, everywhere: bool = True) -> tuple[Projection, ...]:
    """Every weight matrix except embeddings and head; `model` must be completed (heads, head and expert sizes set).

    Adapters are on all projections if `everywhere`, else on query and value only.
    """
    matrices = (*_stem(model, particulars), *_encoder(model, particulars), *_decoder(model, particulars))
    return matrices if everywhere else tuple(replace(part, adapted=part.query_and_value) for part in matrices)


def decoder_length(model: Transformer, particulars: Particulars) -> int:
    """Decoder positions of one sample."""
    return particulars.decoder_sequence_length or model.sequence_length


def moe_layers(model: Transformer) -> int:
    """The number of layers with experts."""
    return model.layers - model.dense_layers if model.experts else 0


def _stem(model: Transformer, particulars: Particulars) -> Iterator[Projection]:
    if particulars.patch_inputs:
        yield Projection(
            inputs=particulars.patch_inputs,
            outputs=model.hidden_size,
            held=1,
            active=1,
            positions=model.sequence_length,
            adapted=0.0,
        )


def _encoder(model: Transformer, particulars: Particulars) -> Iterator[Projection]:
    mixtures = moe_layers(model)
    length = model.sequence_length
    yield from _attention(model, particulars, model.layers, length, length)
    if model.layers > mixtures:
        yield from _feed_forward(model, model.layers - mixtures, length)
    if mixtures:
        yield from _experts(model, mixtures)


def _decoder(model: Transformer, particulars: Particulars) -> Iterator[Projection]:
    if model.decoder_layers:
        length = decoder_length(model, particulars)
        yield from _attention(model, particulars, model.decoder_layers, length, length)
        yield from _attention(model, particulars, model.decoder_layers, length, model.sequence_length)
        yield from _feed_forward(model, model.decoder_layers, length)


def _attention(
    model: Transformer, particulars: Particulars, blocks: int, queries: int, keys: int
) -> Iterator[Projection]:
    """Query and output of `queries` positions, key and value of `keys` positions."""
    hidden, heads = model.hidden_size, model.attention_heads * model.head_size
    if particulars.attention_parameters is not None:
        width = particulars.attention_parameters / hidden
        yield Projection(
            inputs=hidden, outputs=width, held=blocks, active=blocks, positions=queries, query_and_value=0.5
        )
        return
    shared = model.kv_heads * model.head_size
    yield Projection(
        inputs=hidden, outputs=heads, held=2 * blocks, active=2 * blocks, positions=queries, query_and_value=0.5
    )
    yield Projection(
        inputs=hidden, outputs=shared, held=2 * blocks, active=2 * blocks, positions=keys, query_and_value=0.5
    )


def _feed_forward(model: Transformer, blocks: int, positions: int) -> Iterator[Projection]:
    matrices = (3 if model.gated_mlp else 2) * blocks
    yield Projection(
        inputs=model.hidden_size, outputs=model.ffn_size, held=matrices, active=matrices, positions=positions
    )


def _experts(model: Transformer, blocks: int) -> Iterator[Projection]:
    """Routed and shared experts, and the router, which sees every expert."""
    matrices = (3 if model.gated_mlp else 2) * blocks
    length = model.sequence_length
    yield Projection(
        inputs=model.hidden_size,
        outputs=model.expert_ffn_size,
        held=matrices * (model.experts + model.shared_experts),
        active=matrices * (model.active_experts + model.shared_experts),
        positions=length,
        routed=model.experts / (model.experts + model.shared_experts),
    )
    yield Projection(
        inputs=model.hidden_size, outputs=model.experts, held=blocks, active=blocks, positions=length, adapted=0.0
    )
