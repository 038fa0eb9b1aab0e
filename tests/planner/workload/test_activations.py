"""What adapters, quantised weights and plain software keep, written out by hand for one small block."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Preset, Training, Transformer
from gpuplan.planner.workload import presets, work_of
from gpuplan.planner.workload.activations import REST_BYTES

HIDDEN, FFN, HEADS, KV_WIDTH, LENGTH = 512, 1000, 8, 128, 64
BLOCK = Transformer(
    layers=1,
    hidden_size=HIDDEN,
    ffn_size=FFN,
    attention_heads=HEADS,
    kv_heads=2,
    head_size=64,
    vocabulary_size=2000,
    sequence_length=LENGTH,
    gated_mlp=True,
    causal=True,
    tokens=1e9,
    global_batch_tokens=64e3,
)
LORA = Training(method="lora", rank=4)
#: Query, key, value and result, query and key once more before rotation, softmax statistics.
ATTENTION = 2 * (2 * HIDDEN + 2 * KV_WIDTH) + 2 * (HIDDEN + KV_WIDTH) + 4 * HEADS
NORMS = 2 * (4 + REST_BYTES) * HIDDEN
TOKEN_PRESETS = [name for name, row in presets().items() if row.architecture == "transformer" and row.unit == "tokens"]


def stored_bytes(model: Transformer, training: Training) -> float:
    """Bytes per token without checkpointing."""
    return work_of(model, training).activation_bytes_per_sample[0] / LENGTH


def test_adapters_on_query_and_value_keep_one_copy_of_their_input() -> None:
    alone = replace(LORA, adapters_on="query_value")
    assert stored_bytes(BLOCK, alone) == NORMS + ATTENTION + 3 * HIDDEN + 2 * 3 * FFN


def test_adapters_everywhere_keep_a_copy_of_every_projections_input() -> None:
    alone = replace(LORA, adapters_on="query_value")
    assert stored_bytes(BLOCK, LORA) - stored_bytes(BLOCK, alone) == 3 * (HIDDEN + 2 * HIDDEN + FFN)


def test_adapters_without_dropout_share_the_inputs_of_their_matmuls() -> None:
    undropped = replace(LORA, adapter_dropout=False)
    copies, shared = 3 * (2 * HIDDEN + 2 * HIDDEN + FFN), 2 * (HIDDEN + HIDDEN + FFN)
    assert stored_bytes(BLOCK, LORA) - stored_bytes(BLOCK, undropped) == copies - shared
    four_bit = replace(LORA, method="qlora")
    assert stored_bytes(BLOCK, four_bit) - stored_bytes(BLOCK, replace(four_bit, adapter_dropout=False)) == copies


def test_kernels_that_replace_the_loss_replace_those_under_adapters_too() -> None:
    linear = replace(LORA, method="qlora", adapter_dropout=False, cross_entropy="linear")
    fused = 2 * 2 * HIDDEN + 2 * (2 * HIDDEN + 2 * KV_WIDTH) + 4 * HEADS + 2 * 2 * HIDDEN + 2 * 3 * FFN
    assert stored_bytes(BLOCK, linear) == fused


def test_matmuls_with_four_bit_weights_keep_their_inputs() -> None:
    inputs = 2 * (HIDDEN + HIDDEN + HIDDEN + FFN)
    assert stored_bytes(BLOCK, replace(LORA, method="qlora")) - stored_bytes(BLOCK, LORA) == inputs


def test_layer_norms_under_adapters_keep_their_16_bit_input_alone() -> None:
    plain = replace(BLOCK, gated_mlp=False)
    expected = 2 * (2 + REST_BYTES) * HIDDEN + ATTENTION + 3 * (3 * HIDDEN + FFN) + 2 * FFN
    assert stored_bytes(plain, LORA) == expected


def test_full_training_of_plain_software_keeps_32_bit_norms_scores_and_masks() -> None:
    norms = 2 * (4 + 4 + 2 + REST_BYTES) * HIDDEN
    scores = (2 + 1 + 2) * HEADS * LENGTH
    assert stored_bytes(BLOCK, Training(software="plain")) == norms + ATTENTION + scores + 2 * HIDDEN + 2 * 4 * FFN


def test_query_and_value_adapters_are_half_of_the_attention_pairs() -> None:
    work = work_of(BLOCK, replace(LORA, adapters_on="query_value"))
    assert work.trainable_parameters == 4 * ((HIDDEN + HIDDEN) + (HIDDEN + KV_WIDTH))
    assert "adapters of rank 4 on query and value projections" in " ".join(work.assumptions)


def test_a_place_for_adapters_that_is_not_known_is_refused() -> None:
    with pytest.raises(UnusableInput, match="accepted: all, query_value"):
        work_of(BLOCK, replace(LORA, adapters_on="everything"))


@given(
    name=st.sampled_from(sorted(TOKEN_PRESETS)),
    method=st.sampled_from(["full", "lora", "qlora"]),
    software=st.sampled_from(["fused", "plain"]),
    places=st.sampled_from(["all", "query_value"]),
)
def test_more_checkpointing_never_keeps_more(name: str, method: str, software: str, places: str) -> None:
    training = Training(method=method, software=software, rank=4, adapters_on=places)
    none, selective, full = work_of(Preset(model=name, tokens=1e12), training).activation_bytes_per_sample
    assert 0 < full <= selective <= none


@given(name=st.sampled_from(sorted(TOKEN_PRESETS)), places=st.sampled_from(["all", "query_value"]))
def test_four_bit_weights_save_memory_on_weights_not_on_activations(name: str, places: str) -> None:
    lora, qlora = (
        work_of(Preset(model=name, tokens=1e12), Training(method=method, rank=4, adapters_on=places))
        for method in ("lora", "qlora")
    )
    assert qlora.frozen_parameter_bytes < lora.frozen_parameter_bytes
    assert qlora.activation_bytes_per_sample[0] > lora.activation_bytes_per_sample[0]
