"""A transformer's parameters, FLOPs and bytes against published figures and the laws they obey."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Training, Transformer
from gpuplan.planner.workload import work_of
from gpuplan.planner.workload.activations import REST_BYTES
from gpuplan.planner.workload.step_work import Work

LLAMA_3_8B = Transformer(
    layers=32,
    hidden_size=4096,
    ffn_size=14336,
    attention_heads=32,
    kv_heads=8,
    head_size=128,
    vocabulary_size=128256,
    sequence_length=8192,
    gated_mlp=True,
    causal=True,
    tokens=300e9,
    global_batch_tokens=2**22,
)
#: The block that Korthikanti 2022 counts: not gated, one key and value head per query head, no dropout when fused.
GPT = replace(LLAMA_3_8B, ffn_size=4 * 4096, kv_heads=32, gated_mlp=False, sequence_length=2048)
MIXTURE = replace(LLAMA_3_8B, experts=8, active_experts=2, expert_ffn_size=14336)
FULL = Training()

dense_models = st.builds(
    lambda layers, heads, grouping, size, ffn, vocabulary, length, gated, causal, tied: Transformer(
        layers=layers,
        hidden_size=heads * size,
        ffn_size=ffn,
        attention_heads=heads,
        kv_heads=heads // grouping,
        head_size=size,
        vocabulary_size=vocabulary,
        sequence_length=length,
        gated_mlp=gated,
        causal=causal,
        tokens=1e12,
        global_batch_tokens=4e6,
        tied_embeddings=tied,
    ),
    st.integers(1, 128),
    st.sampled_from([8, 16, 32, 64, 128]),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([64, 128, 256]),
    st.integers(512, 65536),
    st.integers(1000, 300_000),
    st.integers(16, 131_072),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
mixtures = st.builds(
    lambda model, experts, share, shared, dense: replace(
        model,
        experts=experts,
        active_experts=max(1, round(experts * share)),
        shared_experts=shared,
        expert_ffn_size=1024,
        dense_layers=min(dense, model.layers - 1),
    ),
    dense_models,
    st.integers(1, 256),
    st.floats(0, 1),
    st.integers(0, 2),
    st.integers(0, 4),
)
models = st.one_of(dense_models, mixtures)
software = st.sampled_from(["fused", "plain"])


def fault(model: Transformer, training: Training = FULL) -> tuple[str, str]:
    with pytest.raises(UnusableInput) as refused:
        work_of(model, training)
    return refused.value.faults[0].field, refused.value.faults[0].message


def test_llama_3_8b_has_the_parameters_of_its_model_card() -> None:
    assert work_of(LLAMA_3_8B, FULL).parameters == 8_030_261_248


def test_flops_per_token_are_six_per_weight_and_causal_attention() -> None:
    work = work_of(LLAMA_3_8B, FULL)
    embedding = 128256 * 4096
    norms = 65 * 4096
    assert work.linear_flops_per_unit == 6 * (work.parameters - 2 * embedding - norms)
    assert work.head_flops_per_unit == 6 * embedding
    assert work.attention_flops_per_unit == 6 * 32 * 4096 * 8192
    assert work.embedding_parameters == embedding


def test_without_a_causal_mask_attention_costs_twice() -> None:
    masked, full = work_of(LLAMA_3_8B, FULL), work_of(replace(LLAMA_3_8B, causal=False), FULL)
    assert full.attention_flops_per_unit == 2 * masked.attention_flops_per_unit
    assert full.linear_flops_per_unit == masked.linear_flops_per_unit


def test_a_gpt_block_keeps_what_korthikanti_counts_less_the_dropout_masks() -> None:
    tokens, layers, hidden, heads = 2048, 32, 4096, 32
    none, _, full = work_of(GPT, FULL).activation_bytes_per_sample
    softmax_statistics = 4 * heads * tokens * layers
    assert none == 32 * tokens * hidden * layers + softmax_statistics
    # The block that is recomputed also holds the gradient of its widest tensor, 4 h wide at 16 bit.
    assert full == pytest.approx(2 * tokens * hidden * layers + none / layers + 8 * tokens * hidden)


def test_plain_software_also_keeps_masks_32_bit_norms_and_attention_scores() -> None:
    """Norms 32-bit in, 16-bit out and the rest; query to result 8, packed 4; masks 2; GELU in parts: 5 of 4 h at 16 bit."""
    tokens, layers, hidden, heads = 2048, 32, 4096, 32
    none, selective, _ = work_of(GPT, Training(software="plain")).activation_bytes_per_sample
    block = 2 * (4 + 2 + REST_BYTES) + 8 + 4 + 2 + 5 * 4 * 2
    scores = 2 + 1 + 2
    assert none == layers * tokens * (hidden * block + heads * (4 + scores * tokens))
    assert selective < none - layers * 5 * heads * tokens * tokens


def test_element_wise_traffic_is_near_what_measured_runs_imply() -> None:
    """A fit of measured runs gives 43 x 2 L h bytes per token (k of the roofline); heads and logits come on top."""
    implied = 43 * 2 * 32 * 4096
    assert work_of(LLAMA_3_8B, FULL).vector_bytes_per_unit == pytest.approx(implied, rel=0.4)


def test_lora_passes_through_frozen_weights_twice_and_trains_the_adapters() -> None:
    full, lora = work_of(LLAMA_3_8B, FULL), work_of(LLAMA_3_8B, Training(method="lora", rank=16))
    per_layer = 2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14336)
    adapters = 16 * per_layer * 32
    assert lora.trainable_parameters == adapters
    assert lora.parameters == full.parameters + adapters
    assert lora.linear_flops_per_unit == pytest.approx(full.linear_flops_per_unit * 4 / 6 + 6 * adapters)
    assert lora.attention_flops_per_unit == full.attention_flops_per_unit
    assert lora.frozen_parameter_bytes == 2 * full.parameters


def test_qlora_stores_matrices_at_four_bits_and_embeddings_at_sixteen() -> None:
    work = work_of(LLAMA_3_8B, Training(method="qlora"))
    outside = 2 * 128256 * 4096 + 65 * 4096
    assert work.frozen_parameter_bytes == pytest.approx((8_030_261_248 - outside) * 4.127 / 8 + 2 * outside)


def test_hugging_faces_stack_holds_in_32_bit_what_it_does_not_quantise() -> None:
    outside = 2 * 128256 * 4096 + 65 * 4096
    cast_up, chunked, as_stored = (
        work_of(LLAMA_3_8B, training).frozen_parameter_bytes
        for training in (
            Training(method="qlora", software="eager"),
            Training(method="qlora", software="eager", cross_entropy="chunked"),
            Training(method="qlora"),
        )
    )
    assert cast_up - as_stored == pytest.approx(2 * outside)
    assert chunked == as_stored


def test_full_training_freezes_nothing() -> None:
    work = work_of(LLAMA_3_8B, FULL)
    assert work.frozen_parameter_bytes == 0
    assert work.trainable_parameters == work.parameters


def test_mixtral_activates_the_parameters_its_paper_states() -> None:
    work = work_of(replace(MIXTURE, vocabulary_size=32000), FULL)
    assert work.parameters == pytest.approx(46.7e9, rel=0.001)
    assert work.active_parameters == pytest.approx(12.9e9, rel=0.002)
    assert work.task == "mixture-of-experts"


def test_tied_embeddings_are_counted_once_and_still_multiply() -> None:
    apart, tied = work_of(LLAMA_3_8B, FULL), work_of(replace(LLAMA_3_8B, tied_embeddings=True), FULL)
    assert apart.parameters - tied.parameters == 128256 * 4096
    assert tied.embedding_parameters == 0
    assert tied.head_flops_per_unit == apart.head_flops_per_unit


def test_a_decoder_attends_to_itself_and_to_the_encoder() -> None:
    t5 = Transformer(
        layers=12,
        decoder_layers=12,
        hidden_size=768,
        ffn_size=3072,
        attention_heads=12,
        kv_heads=12,
        head_size=64,
        vocabulary_size=32128,
        sequence_length=512,
        gated_mlp=False,
        causal=False,
        tied_embeddings=True,
        tokens=1e9,
        global_batch_tokens=65536,
    )
    work = work_of(t5, FULL)
    assert work.parameters == pytest.approx(222_903_552, rel=1e-4)
    assert work.task == "encoder-decoder"
    # Encoder sees all of itself; the decoder half of itself and all of the encoder: 1 + 1/2 + 1 of 12 L h s.
    assert work.attention_flops_per_unit == 12 * 12 * 768 * 512 * 2.5
    assert any("512 target tokens" in assumption for assumption in work.assumptions)


def test_units_are_tokens_and_samples_are_sequences() -> None:
    work = work_of(LLAMA_3_8B, FULL)
    assert work.unit == "tokens"
    assert (work.units_total, work.units_per_step, work.units_per_sample) == (300e9, 2**22, 8192)
    assert work.samples_per_step == 512


def test_a_job_smaller_than_its_batch_is_one_step_and_says_so() -> None:
    work = work_of(replace(LLAMA_3_8B, tokens=1e6), FULL)
    assert work.steps == 1
    assert work.units_per_step == 1e6
    assert any("smaller than the batch" in assumption for assumption in work.assumptions)


def test_what_is_left_at_zero_follows_from_the_rest() -> None:
    short = replace(LLAMA_3_8B, head_size=0, kv_heads=0)
    assert work_of(short, FULL).parameters == work_of(replace(LLAMA_3_8B, kv_heads=32), FULL).parameters
    experts = replace(MIXTURE, expert_ffn_size=0)
    assert work_of(experts, FULL).parameters == work_of(MIXTURE, FULL).parameters


def test_stated_parameters_near_the_dimensions_are_accepted_and_the_difference_said() -> None:
    work = work_of(replace(LLAMA_3_8B, parameters=8.5e9), FULL)
    assert work.parameters == 8_030_261_248
    assert any("8.5e+09" in assumption for assumption in work.assumptions)


def test_stated_parameters_far_from_the_dimensions_are_refused_with_both_figures() -> None:
    field, message = fault(replace(LLAMA_3_8B, parameters=70e9))
    assert field == "workload.parameters"
    assert "7e+10" in message
    assert "8.03e+09" in message


CONTRADICTIONS: list[tuple[dict[str, Any], str]] = [
    ({"attention_heads": 30, "kv_heads": 30, "head_size": 0}, "workload.attention_heads"),
    ({"kv_heads": 5}, "workload.kv_heads"),
    ({"experts": 8, "active_experts": 9}, "workload.active_experts"),
    ({"experts": 8, "active_experts": 0}, "workload.active_experts"),
    ({"active_experts": 2}, "workload.active_experts"),
    ({"experts": 8, "active_experts": 2, "dense_layers": 32}, "workload.dense_layers"),
    ({"experts": 8, "active_experts": 2, "decoder_layers": 4}, "workload.decoder_layers"),
    ({"ffn_size": 0}, "workload.ffn_size"),
    ({"layers": 0}, "workload.layers"),
    ({"hidden_size": -1}, "workload.hidden_size"),
    ({"vocabulary_size": 10**12}, "workload.vocabulary_size"),
    ({"tokens": float("nan")}, "workload.tokens"),
    ({"tokens": float("inf")}, "workload.tokens"),
    ({"tokens": 1e40}, "workload.tokens"),
    ({"tokens": 100.0}, "workload.tokens"),
    ({"global_batch_tokens": 100.0}, "workload.global_batch_tokens"),
    ({"parameters": float("nan")}, "workload.parameters"),
]


@pytest.mark.parametrize(("changes", "field"), CONTRADICTIONS)
def test_contradictory_dimensions_are_refused_by_field(changes: dict[str, Any], field: str) -> None:
    assert fault(replace(LLAMA_3_8B, **changes))[0] == field


@pytest.mark.parametrize(
    ("training", "field", "accepted"),
    [
        (Training(method="dora"), "training.method", "full, lora, qlora"),
        (Training(method="lora", rank=0), "training.rank", "at least 1"),
        (Training(method="lora", rank=1024), "training.rank", "1024"),
        (Training(software="magic"), "training.software", "fused, compiled, eager, plain"),
        (Training(method="lora", precision="int3"), "training.precision", "bf16"),
    ],
)
def test_unknown_ways_of_training_are_refused_with_what_is_accepted(
    training: Training, field: str, accepted: str
) -> None:
    named, message = fault(LLAMA_3_8B, training)
    assert named == field
    assert accepted in message


def size(work: Work) -> tuple[float, float]:
    return work.parameters, work.flops_per_unit


@given(dense_models, st.sampled_from(["layers", "ffn_size", "vocabulary_size", "head_size", "attention_heads"]))
def test_parameters_and_flops_grow_with_every_dimension(model: Transformer, dimension: str) -> None:
    factor = 2 if dimension == "attention_heads" else 1
    changes = {dimension: getattr(model, dimension) * factor + (2 - factor)}
    smaller, larger = work_of(model, FULL), work_of(replace(model, **changes), FULL)
    assert all(after > before for before, after in zip(size(smaller), size(larger), strict=True))


@given(models)
def test_flops_grow_with_the_sequence_and_parameters_do_not(model: Transformer) -> None:
    shorter, longer = work_of(model, FULL), work_of(replace(model, sequence_length=2 * model.sequence_length), FULL)
    assert longer.attention_flops_per_unit == 2 * shorter.attention_flops_per_unit
    assert longer.linear_flops_per_unit == pytest.approx(shorter.linear_flops_per_unit)
    assert longer.parameters == shorter.parameters


@given(mixtures, st.sampled_from(["experts", "active_experts", "shared_experts", "expert_ffn_size"]))
def test_a_larger_mixture_has_more_parameters_or_more_flops(model: Transformer, dimension: str) -> None:
    dominated_offers_recheck = replace(model, experts=model.experts + 1) if dimension == "active_experts" else model
    changed = replace(dominated_offers_recheck, **{dimension: getattr(dominated_offers_recheck, dimension) + 1})
    smaller, larger = work_of(dominated_offers_recheck, FULL), work_of(changed, FULL)
    assert larger.parameters >= smaller.parameters
    assert larger.flops_per_unit > smaller.flops_per_unit
    assert larger.active_parameters > smaller.active_parameters


@given(models, software)
def test_active_parameters_never_exceed_all_of_them(model: Transformer, stack: str) -> None:
    for method in ("full", "lora"):
        work = work_of(model, Training(method=method, rank=4, software=stack))
        assert 0 < work.active_parameters <= work.parameters
        assert 0 < work.trainable_parameters <= work.parameters


@given(models, st.sampled_from(["lora", "qlora"]), st.integers(1, 32))
def test_adapters_cost_less_than_full_training(model: Transformer, method: str, rank: int) -> None:
    """Holds while ranks are a fraction of the widths: 3 r (in + out) < in x out."""
    narrowest = min(model.hidden_size, model.kv_heads * model.head_size, model.ffn_size, 1024)
    rank = max(1, min(rank, narrowest // 8))
    full, adapted = work_of(model, FULL), work_of(model, Training(method=method, rank=rank))
    assert adapted.flops_per_unit < full.flops_per_unit
    assert adapted.trainable_parameters < full.trainable_parameters


@given(models, software)
def test_more_checkpointing_never_keeps_more(model: Transformer, stack: str) -> None:
    none, selective, full = work_of(model, Training(software=stack)).activation_bytes_per_sample
    assert 0 < full <= selective <= none


@given(models)
def test_plain_software_never_keeps_or_moves_less(model: Transformer) -> None:
    fused, plain = work_of(model, FULL), work_of(model, Training(software="plain"))
    pairs = zip(fused.activation_bytes_per_sample, plain.activation_bytes_per_sample, strict=True)
    assert all(less <= plain_bytes for less, plain_bytes in pairs)
    assert fused.vector_bytes_per_unit < plain.vector_bytes_per_unit
    assert fused.logits_bytes_per_sample < plain.logits_bytes_per_sample


@given(models)
def test_the_shape_repeats_the_dimensions(model: Transformer) -> None:
    shape = work_of(model, FULL).shape
    assert shape is not None
    assert shape.layers == model.layers
    assert shape.moe_layers == (model.layers - model.dense_layers if model.experts else 0)
    assert shape.head_size * shape.attention_heads == model.hidden_size


@pytest.mark.parametrize(
    ("changed", "fields"),
    [
        ({"sequence_length": 0}, ["sequence_length"]),
        ({"layers": 0, "tokens": float("inf")}, ["layers", "tokens"]),
        ({"global_batch_tokens": 100.0}, ["global_batch_tokens"]),
        ({"tokens": 8191.0, "global_batch_tokens": 8191.0}, ["tokens"]),
    ],
)
def test_dimensions_and_amounts_that_are_wrong_are_named_together_and_nothing_else(
    changed: dict[str, Any], fields: list[str]
) -> None:
    work_of(LLAMA_3_8B, FULL)  # what is kept of the model hides nothing
    with pytest.raises(UnusableInput) as refused:
        work_of(replace(LLAMA_3_8B, **changed), FULL)
    assert [fault.path for fault in refused.value.faults] == [("workload", field) for field in fields]
