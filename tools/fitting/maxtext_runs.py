"""MaxText's own models, as the scripts beside its tables of TFLOP/s state them.

Its tables name a size and a slice; `MaxText/configs/{v4,v5e,v5p,a3}` of AI-Hypercomputer/maxtext give dimensions, samples per chip,
recomputation and layout. `global_parameter_scale` doubles heads and width of the feed-forward, embedding and layers in turn.
"""

from dataclasses import dataclass

from gpuplan.planner.model.job import Transformer

SEQUENCE = 2048
VOCABULARY = 32_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimensions:
    """Layers, embedding, heads and their size, and width of the feed-forward of a model."""

    layers: int
    hidden: int
    heads: int
    head_size: int
    ffn: int
    gated: bool = True


_DIMENSIONS = {
    "maxtext-22b": Dimensions(layers=48, hidden=6144, heads=24, head_size=256, ffn=24_576, gated=False),
    "maxtext-52b": Dimensions(layers=32, hidden=12_288, heads=32, head_size=256, ffn=49_152, gated=False),
    "maxtext-16b": Dimensions(layers=32, hidden=4096, heads=64, head_size=128, ffn=28_672),
    "maxtext-32b": Dimensions(layers=32, hidden=8192, heads=64, head_size=128, ffn=28_672),
    "maxtext-64b": Dimensions(layers=64, hidden=8192, heads=64, head_size=128, ffn=28_672),
    "maxtext-128b": Dimensions(layers=64, hidden=8192, heads=128, head_size=128, ffn=57_344),
    "maxtext-256b": Dimensions(layers=64, hidden=16_384, heads=128, head_size=128, ffn=57_344),
    "maxtext-512b": Dimensions(layers=128, hidden=16_384, heads=128, head_size=128, ffn=57_344),
    "maxtext-1024b": Dimensions(layers=128, hidden=16_384, heads=256, head_size=128, ffn=114_688),
}
#: Samples per chip, recomputation, and ways of tensor parallelism; "minimal" recomputes what is no matmul.
_RUNS = {
    ("maxtext-22b", "TPU-v4"): (13, "full", 1),
    ("maxtext-52b", "TPU-v4"): (7, "full", 1),
    ("maxtext-16b", "TPU-v5e"): (6, "full", 1),
    ("maxtext-32b", "TPU-v5e"): (4, "full", 1),
    ("maxtext-64b", "TPU-v5e"): (2, "full", 1),
    ("maxtext-128b", "TPU-v5e"): (1, "selective", 16),
    ("maxtext-32b", "TPU-v5p"): (7, "selective", 4),
    ("maxtext-64b", "TPU-v5p"): (3, "selective", 4),
    ("maxtext-128b", "TPU-v5p"): (1, "selective", 8),
    ("maxtext-256b", "TPU-v5p"): (1, "selective", 8),
    ("maxtext-512b", "TPU-v5p"): (2, "full", 8),
    ("maxtext-1024b", "TPU-v5p"): (2, "full", 8),
}
#: Google's A3 High machines: four NICs of 200 Gbit/s (its machine-type page); Llama 2 7B with 4 samples of 4,096 tokens per GPU.
_A3_GBPS, _A3_SAMPLES = "800", 4


def configured(row: dict[str, str], gpus: int) -> dict[str, str]:
    """What the scripts add to a row of MaxText's tables; the row again where there is none."""
    if "/a3/" in row["source"]:
        return row | {"internode_gbps": _A3_GBPS, "global_batch": str(_A3_SAMPLES * gpus), "seq_len": "4096"}
    stated = _RUNS.get((row["model"], row["gpu"]))
    if stated is None:
        return row
    samples, recomputed, tensor = stated
    return row | {
        "seq_len": str(SEQUENCE),
        "global_batch": str(samples * gpus),
        "micro_batch": str(samples * tensor),
        "activation_ckpt": recomputed,
        "parallelism": f"tp{tensor} pp1 fsdp",
    }


def model_of(row: dict[str, str], batch: float) -> Transformer | None:
    """The model of a row with `batch` samples a step; None where it is none of MaxText's own."""
    size = _DIMENSIONS.get(row["model"])
    if size is None:
        return None
    return Transformer(
        layers=size.layers,
        hidden_size=size.hidden,
        ffn_size=size.ffn,
        attention_heads=size.heads,
        kv_heads=size.heads,
        head_size=size.head_size,
        vocabulary_size=VOCABULARY,
        sequence_length=SEQUENCE,
        gated_mlp=size.gated,
        causal=True,
        tokens=1e12,
        global_batch_tokens=batch * SEQUENCE,
        tied_embeddings=True,
    )
