"""Convolutional, diffusion, adversarial and recurrent models against published counts."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Preset, Training
from gpuplan.planner.workload import work_of
from gpuplan.planner.workload.layer_tallies import Tally, attention, convolution, linear, normalised, upsampling
from gpuplan.planner.workload.step_work import Work

FULL = Training()


def work(model: str, training: Training = FULL, *, image_size: int | None = None) -> Work:
    return work_of(Preset(model=model, samples=1e9, image_size=image_size), training)


@pytest.mark.parametrize(
    ("model", "parameters", "gigamacs"),
    [
        # torchvision's own table of weights: parameters and multiply-adds forward at 224 x 224.
        ("resnet-18", 11_689_512, 1.814),
        ("resnet-34", 21_797_672, 3.664),
        ("resnet-50", 25_557_032, 4.089),
        ("resnet-101", 44_549_160, 7.801),
        ("resnet-152", 60_192_808, 11.514),
        ("vgg-16", 138_357_544, 15.470),
    ],
)
def test_image_classifiers_match_torchvision(model: str, parameters: int, gigamacs: float) -> None:
    counts = work(model)
    assert counts.parameters == parameters
    assert counts.flops_per_unit == pytest.approx(6 * gigamacs * 1e9, rel=0.003)


def test_small_networks_match_their_published_parameters_exactly() -> None:
    assert work("lenet-5").parameters == 61_706
    assert work("mnist-cnn").parameters == 1_199_882
    assert work("dcgan").parameters == 3_576_704 + 2_765_568


def test_stable_diffusion_matches_its_card_and_the_published_multiply_adds() -> None:
    """859,520,964 parameters; Kim 2023 (BK-SDM) counts 339 G multiply-adds of layers at 64 x 64 latents."""
    counts = work("stable-diffusion-1.5")
    assert counts.parameters == 859_520_964
    assert counts.linear_flops_per_unit / 6 == pytest.approx(339e9, rel=0.01)
    assert counts.flops_per_unit / 3 == pytest.approx(0.8e12, rel=0.03)


def test_sdxl_matches_its_card() -> None:
    assert work("sdxl").parameters == 2_567_463_684


def test_stylegan2_matches_what_its_authors_print() -> None:
    assert work("stylegan2").parameters == pytest.approx(30_370_060 + 29_012_513, rel=1e-6)


@pytest.mark.parametrize("model", ["resnet-50", "unet", "stable-diffusion-1.5", "vgg-16"])
def test_twice_the_edge_of_an_image_is_four_times_the_work(model: str) -> None:
    small, large = (work(model, image_size=size) for size in (256, 512))
    assert large.linear_flops_per_unit == pytest.approx(4 * small.linear_flops_per_unit, rel=0.02)
    assert large.activation_bytes_per_sample[0] == pytest.approx(4 * small.activation_bytes_per_sample[0], rel=0.03)


def test_a_larger_image_leaves_the_parameters_of_a_pooled_network_alone() -> None:
    assert work("resnet-50", image_size=448).parameters == work("resnet-50").parameters
    assert work("vgg-16", image_size=448).parameters > work("vgg-16").parameters


def test_attention_over_latents_grows_with_the_fourth_power_of_the_edge() -> None:
    small, large = (work("sdxl", image_size=size) for size in (512, 1024))
    assert 10 < large.attention_flops_per_unit / small.attention_flops_per_unit <= 16


def test_adapters_fit_the_projections_of_a_diffusion_model() -> None:
    full, lora = work("stable-diffusion-1.5"), work("stable-diffusion-1.5", Training(method="lora", rank=8))
    assert 0 < lora.trainable_parameters < 0.01 * full.parameters
    assert lora.frozen_parameter_bytes == pytest.approx(2 * full.parameters)
    assert lora.flops_per_unit < full.flops_per_unit
    assert lora.attention_flops_per_unit == full.attention_flops_per_unit


@pytest.mark.parametrize("model", ["resnet-50", "lstm-lm", "dcgan", "unet"])
def test_adapters_are_refused_where_nothing_can_carry_them(model: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        work(model, Training(method="lora"))
    assert refused.value.faults[0].field == "training.method"
    assert "accepted: full" in refused.value.faults[0].message


def test_a_gan_says_how_often_a_step_passes_through_each_half() -> None:
    assert any("9 through the discriminator" in assumption for assumption in work("dcgan").assumptions)


def test_an_lstm_waits_for_every_position_and_gives_logits() -> None:
    short = work_of(Preset(model="lstm-lm", tokens=1e9), FULL)
    long = work_of(Preset(model="lstm-lm", tokens=1e9, sequence_length=350), FULL)
    assert (short.sequential_steps, long.sequential_steps) == (36, 351)
    assert short.parameters == pytest.approx(66e6, rel=0.01)
    assert short.linear_flops_per_unit == long.linear_flops_per_unit == pytest.approx(6 * 36e6)
    assert short.head_flops_per_unit == pytest.approx(6 * 10_000 * 1500, rel=0.001)
    assert short.logits_bytes_per_sample > 0


def test_convolutional_work_moves_fewer_bytes_where_it_is_fused() -> None:
    fused, plain = work("resnet-50"), work("resnet-50", Training(software="plain"))
    assert fused.vector_bytes_per_unit < plain.vector_bytes_per_unit


def test_a_convolution_is_counted_as_written_in_any_textbook() -> None:
    tally = convolution(64, 128, 3, 56, stride=2, bias=True)
    assert tally.parameters == 3 * 3 * 64 * 128 + 128
    assert tally.flops == 2 * 3 * 3 * 64 * 128 * 28 * 28
    assert tally.saved == 64 * 56 * 56
    assert convolution(64, 64, 3, 56, groups=64).flops == 2 * 9 * 64 * 56 * 56


def test_a_transposed_convolution_costs_what_its_mirror_costs() -> None:
    assert upsampling(128, 64, 4, 8, stride=2).flops == convolution(64, 128, 4, 16, stride=2).flops


tallies = st.one_of(
    st.builds(convolution, st.integers(1, 64), st.integers(1, 64), st.sampled_from([1, 3, 5]), st.integers(1, 64)),
    st.builds(linear, st.integers(1, 512), st.integers(1, 512), st.integers(1, 64)),
    st.builds(normalised, st.integers(1, 64), st.integers(1, 4096)),
    st.builds(attention, st.integers(1, 512), st.integers(1, 16), st.integers(1, 256), st.integers(1, 256)),
)


@given(tallies, tallies, st.integers(1, 5))
def test_sums_of_layers_add_every_count(first: Tally, second: Tally, count: int) -> None:
    for field in fields(Tally):
        one, other = getattr(first, field.name), getattr(second, field.name)
        assert getattr(first + second, field.name) == one + other
        assert getattr(first.times(count), field.name) == one * count


@given(tallies, st.integers(2, 5))
def test_passing_again_costs_work_but_neither_parameters_nor_memory(tally: Tally, count: int) -> None:
    again = tally.repeated(count)
    assert (again.flops, again.moved) == (tally.flops * count, tally.moved * count)
    assert (again.parameters, again.saved) == (tally.parameters, tally.saved)


@given(tallies)
def test_no_layer_recomputes_more_than_it_keeps(tally: Tally) -> None:
    assert 0 <= tally.recomputable <= tally.saved


@pytest.mark.parametrize(
    ("images_per_second", "bandwidth_gbs"),
    [
        # ResNet-50 v1.5 at 16 bit on one device: V100 and A100-80GB by NVIDIA's published recipes, RTX 3090 by timm's.
        (1200, 900),
        (2470, 2039),
        (1218, 936),
    ],
)
def test_resnet_50_uses_a_like_share_of_bandwidth_wherever_it_was_measured(
    images_per_second: float, bandwidth_gbs: float
) -> None:
    share = images_per_second * work("resnet-50").vector_bytes_per_unit / (bandwidth_gbs * 1e9)
    assert 0.44 < share < 0.50


def test_attention_keeps_and_moves_its_scores_only_where_nothing_is_fused() -> None:
    tally = attention(512, 8, 100, 77)
    assert tally.attention_flops == 4 * 512 * 100 * 77
    assert (tally.saved, tally.saved_unfused) == (512 * (100 + 2 * 77), 2 * 8 * 100 * 77)
    assert tally.moved_unfused == 14 * 8 * 100 * 77
