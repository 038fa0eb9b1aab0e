"""A ladder of dense decoders in the shape of Llama: 128 columns and one head per layer, gated, 8/3 as wide inside.

Llama 2 7B is 32 layers of 4096, 70B 80 layers of 8192. Heads of keys and values are a quarter of the others, so that every
rung shards over 8 accelerators where its heads do.
"""

from dataclasses import dataclass

from gpuplan.catalog.parsing.json_object import JsonObject

#: Width of a head, and of the model per layer.
_HEAD = 128
#: The vocabulary of Llama 2; larger ones add parameters that do not grow with the model.
_VOCABULARY = 32_000
_KEY_VALUE_SHARE = 4
#: Layers of all rungs: 43 M to 1.9 T parameters.
LADDER = (
    4,
    8,
    *range(12, 32, 4),
    32,
    36,
    40,
    44,
    48,
    52,
    56,
    64,
    72,
    80,
    88,
    96,
    104,
    112,
    128,
    144,
    160,
    176,
    192,
    208,
    224,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseModel:
    """One rung."""

    layers: int

    @property
    def hidden_size(self) -> int:
        """Columns of the residual stream."""
        return _HEAD * self.layers

    @property
    def ffn_size(self) -> int:
        """8/3 of the width, to a multiple of 256."""
        return 256 * round(self.hidden_size * 8 / 3 / 256)

    @property
    def parameters(self) -> int:
        """All of them, the input and output embeddings and the norms' weights included."""
        attention = self.hidden_size**2 * (2 + 2 / _KEY_VALUE_SHARE)
        block = attention + 3 * self.hidden_size * self.ffn_size
        norms = (2 * self.layers + 1) * self.hidden_size
        return int(self.layers * block + 2 * _VOCABULARY * self.hidden_size + norms)

    def workload(self, tokens: float, sequence_length: int) -> JsonObject:
        """The workload of a job document that trains it."""
        return {
            "kind": "transformer",
            "layers": self.layers,
            "hidden_size": self.hidden_size,
            "ffn_size": self.ffn_size,
            "attention_heads": self.layers,
            "kv_heads": self.layers // _KEY_VALUE_SHARE,
            "vocabulary_size": _VOCABULARY,
            "gated_mlp": True,
            "sequence_length": sequence_length,
            "tokens": tokens,
        }
