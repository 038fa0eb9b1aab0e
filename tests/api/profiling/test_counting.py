"""What the counter finds in modules whose counts are known on paper."""

from typing import Any

import pytest

pytestmark = pytest.mark.slow(reason="needs torch")

Results = dict[str, dict[str, Any]]


def first(result: dict[str, Any]) -> dict[str, Any]:
    assert "error" not in result, result
    count: dict[str, Any] = result["counts"][0]
    return count


def test_resnet_50_has_the_published_parameters_and_three_times_the_published_flops(results: Results) -> None:
    count = first(results["resnet50"])
    assert results["resnet50"]["model"]["parameters"] == 25_557_032
    per_image = count["matmul_flops"] / count["batch"]
    # The first layer needs no gradient of its input: one per cent less than three times forward.
    assert per_image == pytest.approx(3 * 4.09e9 * 2, rel=0.02)
    assert count["convolution_flops"] > 0.99 * count["matmul_flops"]
    assert results["resnet50"]["device"] == "meta"


def test_a_small_convolutional_network_is_counted_exactly(results: Results) -> None:
    count = first(results["convnet"])
    assert results["convnet"]["model"]["parameters"] == 1_199_882
    conv1, conv2 = 26 * 26 * 32 * 9, 24 * 24 * 64 * 9 * 32
    linear = 9216 * 128 + 128 * 10
    assert count["matmul_flops"] == 64 * 2 * (2 * conv1 + 3 * conv2 + 3 * linear)


def test_a_loss_of_the_user_s_own_is_called_with_its_target(results: Results) -> None:
    assert first(results["convnet_and_loss"])["matmul_flops"] == first(results["convnet"])["matmul_flops"]
    assert first(results["convnet_and_loss"])["kernels"] > first(results["convnet"])["kernels"]


def test_an_lstm_has_the_flops_of_its_closed_form_and_its_steps_wait(results: Results) -> None:
    count = first(results["lstm"])
    positions, width, inputs = 16 * 1000, 128, 64
    layer1 = 2 * positions * 4 * width * (2 * inputs + 3 * width)
    layer2 = 2 * positions * 4 * width * 3 * (width + width)
    assert count["matmul_flops"] == layer1 + layer2 + 3 * 2 * 16 * width * 10
    assert count["sequential_steps"] == 1000 + 2 - 1
    assert results["lstm"]["model"]["parameters"] == 4 * 128 * (64 + 128 + 2 + 128 + 128 + 2) + 1290


@pytest.mark.parametrize(
    ("name", "gates", "directions", "steps"), [("plain_rnn", 1, 1, 1000), ("gru_both_ways", 3, 2, 1000)]
)
def test_other_recurrences_follow_the_same_form(
    results: Results, name: str, gates: int, directions: int, steps: int
) -> None:
    count = first(results[name])
    products = 2 * 8 * 1000 * gates * 64 * (2 * 32 + 3 * 64) * directions
    assert count["matmul_flops"] == products + 3 * 2 * 8 * 64 * directions * 10
    assert count["sequential_steps"] == steps


def test_a_recurrence_written_as_a_loop_costs_what_the_layer_does_and_waits_as_long(results: Results) -> None:
    loop, one = first(results["loop"]), first(results["one step"])
    assert loop["sequential_steps"] == 100
    head = 3 * 2 * 8 * 64 * 10
    # The state before the first step is no parameter, so it has no gradient here; the layer's stand-in has one.
    assert loop["matmul_flops"] - head == pytest.approx(100 * (one["matmul_flops"] - head), rel=0.005)


def test_layers_that_run_once_do_not_wait(results: Results) -> None:
    for name in ("resnet50", "convnet", "gan", "encoder_block", "one step"):
        assert first(results[name])["sequential_steps"] == 1, name


def test_a_gan_step_passes_three_times_through_the_discriminator_and_once_through_the_generator(
    results: Results,
) -> None:
    gan, generator, discriminator = (first(results[name]) for name in ("gan", "generator", "discriminator"))
    assert results["gan"]["model"] | {"buffer_bytes": 0} == {
        "parameters": 6_342_272, "trainable_parameters": 6_342_272, "buffer_bytes": 0, "modules": 2,
    }  # fmt: skip
    # Only the pass that trains the generator needs the gradient of the images.
    images = 2 * 16 * 32 * 32 * 64 * 3 * 16
    assert gan["matmul_flops"] == generator["matmul_flops"] + 3 * discriminator["matmul_flops"] + images


def test_a_gan_may_be_named_or_bring_its_own_step(results: Results) -> None:
    for name in ("gan_by_name", "gan_with_its_own_step"):
        assert first(results[name])["matmul_flops"] == first(results["gan"])["matmul_flops"], name
        assert results[name]["model"] == results["gan"]["model"], name


def test_a_gan_keeps_no_more_than_one_pass_at_a_time(results: Results) -> None:
    gan, generator, discriminator = (
        first(results[name])["saved_bytes"] for name in ("gan", "generator", "discriminator")
    )
    assert gan == pytest.approx(generator + discriminator, rel=0.1)


def test_a_transformer_block_has_six_flops_per_weight_and_half_its_scores_when_causal(results: Results) -> None:
    tokens, weights = 8 * 128, 12 * 512 * 512
    causal, encoder = first(results["causal_block"]), first(results["encoder_block"])
    assert causal["matmul_flops"] == 6 * tokens * weights
    attention = 3 * 4 * 512 * 128 * tokens
    assert encoder["attention_flops"] == attention
    assert causal["attention_flops"] == attention / 2
    assert encoder["attention_scores"] == 8 * 8 * 128 * 128


def test_attention_grows_with_the_square_of_the_sequence_and_what_is_kept_does_not(results: Results) -> None:
    short, long = first(results["causal_block"]), first(results["long causal_block"])
    assert long["attention_flops"] == 4 * short["attention_flops"]
    assert long["saved_bytes"] == 2 * short["saved_bytes"]


def test_a_block_keeps_what_its_tensors_take_on_paper(results: Results) -> None:
    # Input, normed, query, key, value, result, projected in, sum, normed, ffn in and out (4 h each), at 2 bytes;
    # statistics of norms and softmax on top.
    width = 512
    numbers = (2 + 3 + 1 + 2 + 4 + 4) * width
    assert first(results["causal_block"])["saved_bytes"] / (8 * 128) == pytest.approx(2 * numbers, rel=0.1)


def test_frozen_weights_need_no_gradient_and_are_not_trained(results: Results) -> None:
    assert results["partly_frozen"]["model"]["trainable_parameters"] == 2570
    assert results["partly_frozen"]["model"]["parameters"] == 2570 + 65_792
    # The frozen layer stands first: forward only. The head: forward and its weights' gradient.
    assert first(results["partly_frozen"])["matmul_flops"] == 2 * 4 * 256 * 256 + 2 * 2 * 4 * 256 * 10


def test_two_inputs_of_different_types_are_given_in_order(results: Results) -> None:
    assert first(results["two_inputs"])["matmul_flops"] == 2 * 8 * (2 * 256 * 64 + 3 * 64 * 5)


def test_what_fails_on_the_meta_device_is_counted_on_the_cpu_at_a_small_batch_and_says_so(results: Results) -> None:
    result = results["looks_at_values"]
    assert (result["device"], [count["batch"] for count in result["counts"]]) == ("cpu", [2, 4])
    assert "on the meta device the forward pass raised" in result["notes"][-1]
    assert first(result)["matmul_flops"] == 2 * 2 * (2 * 64 * 64 + 3 * 64 * 8)


def test_a_module_that_is_there_already_is_counted_like_one_that_is_made(results: Results) -> None:
    made, already_made = results["looks_at_values"], results["made already"]
    assert (already_made["device"], already_made["model"]) == ("cpu", made["model"])
    assert first(already_made)["matmul_flops"] == first(made)["matmul_flops"]


def test_layers_that_learn_their_size_are_counted_with_it(results: Results) -> None:
    assert results["lazy"]["model"]["parameters"] == 32 * 65 + 8 * 33
    assert first(results["lazy"])["matmul_flops"] == 4 * 2 * (2 * 64 * 32 + 3 * 32 * 8)


def test_a_sparse_gradient_costs_the_rows_that_were_looked_up_and_not_the_table(results: Results) -> None:
    assert first(results["sparse_table"])["eager_bytes"] < 100_000 * 16 * 2 / 10


def test_a_model_of_one_batch_size_is_counted_at_that(results: Results) -> None:
    result = results["one_batch_only"]
    assert [count["batch"] for count in result["counts"]] == [16]
    assert "counted at one batch size" in result["notes"][0]


def test_a_model_larger_than_the_machine_is_counted_where_it_takes_no_memory(results: Results) -> None:
    assert results["huge"]["model"]["parameters"] == 8 * 65_536**2


@pytest.mark.parametrize("name", ["convnet", "resnet50", "lstm", "gan", "causal_block", "encoder_block", "two_inputs"])
def test_counts_agree_with_each_other(results: Results, name: str) -> None:
    small, large = results[name]["counts"]
    assert large["batch"] == 2 * small["batch"]
    for count in (small, large):
        assert count["fused_bytes"] <= count["eager_bytes"]
        assert 0 < count["fused_kernels"] <= count["kernels"]
        assert 0 < count["full_saved_bytes"] <= count["selective_saved_bytes"] <= count["saved_bytes"]
        assert count["convolution_flops"] <= count["matmul_flops"]
    for name_of_count in ("matmul_flops", "attention_flops", "saved_bytes"):
        assert large[name_of_count] == pytest.approx(2 * small[name_of_count], rel=0.001)
    assert small["eager_bytes"] < large["eager_bytes"] <= 2 * small["eager_bytes"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("needs", "models_to_count:needs needs arguments (width); accepted: a factory that takes none"),
        ("raises", "models_to_count:raises() raised ValueError: no such dataset (models_to_count.py line"),
        ("returns_a_list_of_numbers", "gave (int, int, int); accepted: a torch.nn.Module, (module, loss)"),
        ("three_modules", "gave 3 modules and no step; accepted:"),
        ("nothing_to_train", "has no trainable parameters"),
        ("stops_the_interpreter", "raised SystemExit: 3"),
        ("misspelt", "models_to_count has no 'resnet51'; it has"),
        ("wrong shape", "the forward pass raised RuntimeError"),
        ("too few inputs", "the forward pass raised TypeError"),
        ("loss without target", "give its targets as --target"),
    ],
)
def test_what_cannot_be_counted_is_said_in_one_line(results: Results, name: str, message: str) -> None:
    error = results[name]["error"]
    assert error["field"] == "target"
    assert message in error["message"]
    assert "\n" not in error["message"]
