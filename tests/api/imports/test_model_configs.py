"""Configurations of models that are no plain decoder: images, sound, two halves, towers beside the language model."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.imports.job_from_facts import Given, job_of
from gpuplan.api.imports.reading import read_file, read_text
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.api.imports.config_texts import LLAMA

_LAYER_12 = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
_CONVOLUTIONS = {"conv_dim": [512] * 7, "conv_kernel": [10, 3, 3, 3, 3, 2, 2]}
_QWEN_VL = {"depth": 32, "num_heads": 16, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2}


def facts_of(config: dict[str, Any]) -> Any:
    return read_text(json.dumps({"architectures": ["A"]} | config), "config.json")


@pytest.mark.parametrize(
    ("config", "published_millions"),
    [
        # Counted by their publishers: ViT-B/16, wav2vec 2.0 base, BART large, DistilBERT, ALBERT base.
        ({"model_type": "vit", "image_size": 224, "patch_size": 16} | _LAYER_12, 86.57),
        ({"model_type": "wav2vec2", "vocab_size": 32} | _LAYER_12 | _CONVOLUTIONS, 94.4),
        (
            {
                "model_type": "bart", "d_model": 1024, "encoder_layers": 12, "decoder_layers": 12,
                "encoder_attention_heads": 16, "encoder_ffn_dim": 4096, "vocab_size": 50265,
                "max_position_embeddings": 1024, "is_encoder_decoder": True,
            },
            406.3,
        ),
        (
            {
                "model_type": "distilbert", "dim": 768, "n_layers": 6, "n_heads": 12, "hidden_dim": 3072,
                "vocab_size": 30522, "max_position_embeddings": 512,
            },
            66.4,
        ),
        (
            {
                "model_type": "albert", "embedding_size": 128, "vocab_size": 30000, "max_position_embeddings": 512,
                "type_vocab_size": 2,
            }
            | _LAYER_12,
            11.7,
        ),
    ],
)  # fmt: skip
def test_parameters_are_those_of_the_publisher(config: dict[str, Any], published_millions: float) -> None:
    assert facts_of(config).number("parameters_total") == pytest.approx(published_millions * 1e6, rel=0.01)


@pytest.mark.parametrize(
    ("beside", "name", "billions"),
    [
        # Qwen2.5-VL 7B (8.29 B with 7.62 B of text), Qwen2-VL 2B (2.21 with 1.54), Qwen2-Audio's encoder, MiMo 7B.
        (
            {
                "vision_config": _QWEN_VL | {
                    "hidden_size": 1280, "intermediate_size": 3420, "hidden_act": "silu", "out_hidden_size": 3584,
                }
            },
            "vision tower",
            0.676,
        ),
        ({"vision_config": _QWEN_VL | {"embed_dim": 1280, "hidden_size": 1536, "mlp_ratio": 4}}, "vision tower", 0.665),
        (
            {
                "audio_config": {
                    "d_model": 1280, "encoder_layers": 32, "encoder_ffn_dim": 5120, "num_mel_bins": 128,
                    "max_source_positions": 1500,
                }
            },
            "audio tower",
            0.637,
        ),
        ({"num_nextn_predict_layers": 1, "intermediate_size": 11008, "hidden_size": 4096}, "multi-token layers", 0.211),
    ],
)  # fmt: skip
def test_towers_and_multi_token_layers_are_listed_apart(beside: dict[str, Any], name: str, billions: float) -> None:
    kv_heads = {"num_key_value_heads": 8}
    facts = facts_of(LLAMA | kv_heads | beside)
    assert facts.beside[name] / 1e9 == pytest.approx(billions, rel=0.01)
    alone = facts_of(LLAMA | kv_heads | {key: value for key, value in beside.items() if key in LLAMA})
    assert facts.number("parameters_total") == alone.number("parameters_total")
    assert facts.notes == [f"the plan is of the language model, without its {name}"]


def test_an_encoder_of_images_is_planned_on_its_patches() -> None:
    facts = facts_of(
        {"model_type": "dinov2", "image_size": 518, "patch_size": 14, "mlp_ratio": 4}
        | _LAYER_12
        | {"num_hidden_layers": 13}
    )
    workload = job_of(facts, Given(samples="1M")).document["workload"]
    assert (workload["sequence_length"], workload["causal"]) == (37 * 37 + 1, False)
    assert workload["tokens"] == 1e6 * workload["sequence_length"]


def test_two_towers_and_layers_that_no_single_number_describes_are_refused_with_the_reason() -> None:
    towers = {"text_config": _LAYER_12 | {"vocab_size": 999}, "vision_config": _LAYER_12, "projection_dim": 640}
    with pytest.raises(UnusableInput, match="it has a text and a vision tower"):
        job_of(facts_of({"model_type": "clip"} | towers), Given(tokens="1B", length=77))
    swin = {"model_type": "swin", "embed_dim": 96, "hidden_size": 768, "depths": [2, 2, 6, 2], "num_heads": [3, 6]}
    made = job_of(facts_of(swin), Given(tokens="1B", length=49))
    assert [one.why for one in made.missing] == [
        "no known model, and config.json does not state layers, attention_heads as one number"
    ]


@pytest.mark.parametrize("given", ["", "config.json", "model.safetensors.index.json"])
def test_the_bytes_of_all_weights_are_told_beside_what_the_dimensions_give(given: str, tmp_path: Path) -> None:
    config, index = tmp_path / "config.json", tmp_path / "model.safetensors.index.json"
    config.write_text(json.dumps(LLAMA | {"torch_dtype": "bfloat16"}))
    index.write_text('{"metadata": {"total_size": 16060522496}, "weight_map": {}}')
    facts = read_file(tmp_path / given)
    note = "model.safetensors.index.json: 16,060,522,496 bytes of weights, which are 8.030 B parameters in bfloat16"
    assert facts.notes == [note]
    index.write_text('{"metadata": {"total_size": 20e9}}')
    assert "+25 % from the dimensions" in read_file(tmp_path / given).notes[0]
    index.write_text("[" * 3000)
    assert "states no metadata.total_size" in read_file(tmp_path / given).not_understood[0]
