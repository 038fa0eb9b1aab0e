"""Bytes kept and moved, and what adapters cost, written out by hand for blocks small enough to follow."""

from dataclasses import replace

import pytest

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Preset, Training, Transformer
from gpuplan.planner.workload import work_of
from gpuplan.planner.workload.block_totals import saved_bytes
from gpuplan.planner.workload.layer_tallies import Block, Tally

FULL, PLAIN = Training(), Training(software="plain")
HIDDEN, FFN, HEADS, KV_WIDTH, VOCABULARY, LENGTH = 512, 1000, 8, 128, 2000, 64
ONE_BLOCK = Transformer(
    layers=1,
    hidden_size=HIDDEN,
    ffn_size=FFN,
    attention_heads=HEADS,
    kv_heads=2,
    head_size=64,
    vocabulary_size=VOCABULARY,
    sequence_length=LENGTH,
    gated_mlp=True,
    causal=True,
    tokens=1e9,
    global_batch_tokens=64e3,
)
UNGATED = replace(ONE_BLOCK, gated_mlp=False)
MIXTURE = replace(ONE_BLOCK, experts=6, active_experts=2, shared_experts=1, expert_ffn_size=FFN)
#: Attention of one token: norm in and out, query and result, key and value at 16 bit; softmax statistics at 32.
ATTENTION = 2 * (2 * HIDDEN + 2 * HIDDEN + 2 * KV_WIDTH) + 4 * HEADS


def bytes_per_token(model: Transformer, training: Training = FULL) -> tuple[float, ...]:
    return tuple(saved / LENGTH for saved in work_of(model, training).activation_bytes_per_sample)


def moved_per_token(model: Transformer, training: Training = FULL) -> float:
    return work_of(model, training).vector_bytes_per_unit


def test_a_gated_block_keeps_gate_up_and_product() -> None:
    none, selective, full = bytes_per_token(ONE_BLOCK)
    assert none == ATTENTION + 2 * (2 * HIDDEN + 3 * FFN)
    assert selective == none - 2 * (2 * HIDDEN + FFN)
    assert full == min(selective, 2 * HIDDEN + none)


def test_a_block_that_is_not_gated_keeps_one_tensor_less() -> None:
    assert bytes_per_token(ONE_BLOCK)[0] - bytes_per_token(UNGATED)[0] == 2 * FFN


def test_full_checkpointing_of_many_blocks_keeps_their_inputs_and_one_working_set() -> None:
    ten_blocks = bytes_per_token(replace(ONE_BLOCK, layers=10))
    # The gradients of gate and up stand where those of the product have gone.
    assert ten_blocks[2] == 10 * 2 * HIDDEN + bytes_per_token(ONE_BLOCK)[0] + 2 * 2 * FFN


def test_checkpointing_by_operation_keeps_every_second_matmul_and_the_result_of_attention() -> None:
    compiled = replace(FULL, software="compiled")
    attention = 2 * (HIDDEN + HIDDEN + HIDDEN + KV_WIDTH) + 4 * HEADS
    assert bytes_per_token(ONE_BLOCK, compiled)[1] == attention + 2 * (FFN + HIDDEN)
    assert bytes_per_token(UNGATED, compiled)[1] == attention + 2 * FFN


def test_a_block_of_experts_keeps_its_copies_of_every_token_and_the_routing() -> None:
    copies, routing, width = 2 * HIDDEN * 2, 4 * 6, 3 * FFN
    none, selective, _ = bytes_per_token(MIXTURE)
    assert none == ATTENTION + 2 * (2 * HIDDEN + 3 * width) + 2 * copies + routing
    assert selective == none - 2 * (2 * HIDDEN + width) - copies


def test_a_gated_block_moves_norms_residuals_rotation_and_activation() -> None:
    attention = 2 * (10 * HIDDEN + 4 * (HIDDEN + KV_WIDTH))
    loss = 4 * 2 * VOCABULARY
    assert moved_per_token(ONE_BLOCK) == attention + 2 * (10 * HIDDEN + 8 * FFN) + loss
    assert moved_per_token(UNGATED) == attention + 2 * (10 * HIDDEN + 5 * FFN) + loss


def test_a_block_of_experts_moves_its_copies_eight_times_and_its_routing_thrice() -> None:
    wide = replace(ONE_BLOCK, ffn_size=3 * FFN)
    assert moved_per_token(MIXTURE) - moved_per_token(wide) == 8 * (2 * HIDDEN * 2) + 3 * (4 * 6)


def test_plain_software_moves_everything_twice_and_scores_fourteen_times() -> None:
    blocks = moved_per_token(ONE_BLOCK) - 8 * VOCABULARY
    scores = 2 * 14 * HEADS * LENGTH
    assert moved_per_token(ONE_BLOCK, PLAIN) == 2 * blocks + scores + 28 * VOCABULARY


def test_logits_are_kept_at_16_and_32_bit_and_three_times_at_32_where_not_fused() -> None:
    assert work_of(ONE_BLOCK, FULL).logits_bytes_per_sample == LENGTH * VOCABULARY * 6
    assert work_of(ONE_BLOCK, PLAIN).logits_bytes_per_sample == LENGTH * VOCABULARY * 14


def test_adapters_sit_on_experts_but_not_on_the_router() -> None:
    attention = 2 * (HIDDEN + HIDDEN) + 2 * (HIDDEN + KV_WIDTH)
    adapter_width = 3 * (HIDDEN + FFN)
    full, lora = work_of(MIXTURE, FULL), work_of(MIXTURE, Training(method="lora", rank=4))
    assert lora.trainable_parameters == 4 * (attention + 7 * adapter_width)
    assert lora.active_parameters - full.active_parameters == pytest.approx(4 * (attention + 3 * adapter_width))
    assert lora.linear_flops_per_unit == pytest.approx(
        full.linear_flops_per_unit * 4 / 6 + 6 * 4 * (attention + 3 * adapter_width)
    )


def test_adapters_of_routed_experts_are_told_apart_and_none_sit_there_beside_query_and_value() -> None:
    everywhere = work_of(MIXTURE, Training(method="lora", rank=4))
    attention = work_of(MIXTURE, Training(method="lora", rank=4, adapters_on="query_value"))
    adapter_width = MIXTURE.layers * 3 * (HIDDEN + FFN)
    assert everywhere.expert_adapter_parameters == pytest.approx(4 * MIXTURE.experts * adapter_width)
    assert attention.expert_adapter_parameters == 0
    assert work_of(MIXTURE, FULL).expert_adapter_parameters == 0


def test_adapters_of_a_counted_model_are_trained_in_three_passes() -> None:
    ranks = [
        work_of(Preset(model="sdxl", samples=1e6), Training(method="lora", rank=rank)).linear_flops_per_unit
        for rank in (1, 2)
    ]
    base = 2 / 3 * work_of(Preset(model="sdxl", samples=1e6), FULL).linear_flops_per_unit
    per_rank = ranks[1] - ranks[0]
    assert ranks[0] == pytest.approx(base + per_rank)
    # 70 transformer layers see between 1024 and 4096 latents: adapters multiply per position, 6 FLOPs per weight.
    weights = work_of(Preset(model="sdxl", samples=1e6), Training(method="lora", rank=1)).trainable_parameters
    assert 6 * weights * 77 < per_rank < 6 * weights * 4096
    assert per_rank == pytest.approx(6 * weights * 1024, rel=0.25)


def test_stated_parameters_a_fifth_off_are_refused() -> None:
    parameters = work_of(ONE_BLOCK, FULL).parameters
    work_of(replace(ONE_BLOCK, parameters=parameters * 1.09), FULL)
    with pytest.raises(UnusableInput, match="10 % apart"):
        work_of(replace(ONE_BLOCK, parameters=parameters * 1.2), FULL)


def test_full_checkpointing_of_counted_blocks_keeps_entries_and_the_largest_block() -> None:
    small, large = Tally(saved=100.0, recomputable=10.0), Tally(saved=300.0, recomputable=20.0, saved_unfused=50.0)
    blocks = (Block(entry=5, tally=small), Block(entry=7, tally=large), *(Block(entry=1, tally=small),) * 8)
    none, selective, full = saved_bytes(blocks, fused=True)
    assert none == 2 * (9 * 100 + 300)
    assert selective == 2 * (9 * 90 + 280)
    assert full == 2 * (5 + 7 + 8) + 2 * 300
    assert saved_bytes(blocks, fused=False)[0] == none + 2 * 50


def test_an_lstm_keeps_and_moves_its_gates_and_states() -> None:
    """Per layer and token: inputs of both matmuls and 6 of hidden size kept; 25 of hidden size moved in the cell."""
    width, tokens = 1500, 35
    work = work_of(Preset(model="lstm-lm", tokens=1e9), FULL)
    assert work.activation_bytes_per_sample[0] == 2 * 2 * tokens * (width + width + 6 * width)
    matmuls = 3 * ((width + 4 * width) + (width + 4 * width))
    assert work.vector_bytes_per_unit == pytest.approx(2 * 2 * (matmuls + 25 * width) + 8 * 10_000)


def test_an_adversarial_step_costs_its_passes_through_either_half() -> None:
    """DCGAN at 64 x 64: the generator's five layers 3 times, the discriminator's five 9 times, 2 FLOPs per weight use."""
    generator = 16 * (100 * 512 + 16 * 512 * 256 + 64 * 256 * 128 + 256 * 128 * 64 + 1024 * 64 * 3)
    discriminator = 16 * (1024 * 3 * 64 + 256 * 64 * 128 + 64 * 128 * 256 + 16 * 256 * 512 + 512)
    work = work_of(Preset(model="dcgan", samples=1e6), FULL)
    assert work.flops_per_unit == pytest.approx(2 * (3 * generator + 9 * discriminator))


def test_style_based_training_says_what_its_regularisation_adds() -> None:
    assumptions = " ".join(work_of(Preset(model="stylegan2", samples=1e6), FULL).assumptions)
    assert "4.75 forward equivalents through the generator" in assumptions


def test_a_vision_transformer_projects_patches_and_reads_out_one_position() -> None:
    work = work_of(Preset(model="vit-b/16", samples=1e9), FULL)
    blocks, stem, positions = 12 * 12 * 768**2, 3 * 16 * 16 * 768, 197
    assert work.linear_flops_per_unit == 6 * (blocks + stem) * positions
    assert work.head_flops_per_unit == pytest.approx(6 * 1000 * 768)
