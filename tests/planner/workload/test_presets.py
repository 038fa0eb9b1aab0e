"""Every preset against its published size, and what a preset may and must be given."""

from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import SOFTWARE, Preset, Training
from gpuplan.planner.workload import find_preset, presets, work_of
from gpuplan.planner.workload.preset_work import _network
from gpuplan.planner.workload.presets import planned_as
from gpuplan.planner.workload.step_work import TASKS, Work
from gpuplan.planner.workload.transformer import _of_one_sample

FULL = Training()
#: Enough for every default batch to be the paper's.
PLENTY = {"tokens": 1e13, "samples": 1e9}


def work(model: str, training: Training = FULL, **amount: Any) -> Work:
    unit = find_preset(model).unit
    return work_of(Preset(model=model, **(amount or {unit: PLENTY[unit]})), training)


def faults(training: Training = FULL, **preset: Any) -> dict[str, str]:
    with pytest.raises(UnusableInput) as refused:
        work_of(Preset(**preset), training)
    return {fault.field: fault.message for fault in refused.value.faults}


@pytest.mark.parametrize("name", presets())
def test_a_preset_has_its_published_size_its_sources_its_needs_and_the_batch_of_its_paper(name: str) -> None:
    row, asked = presets()[name], work(name)
    assert asked.parameters == pytest.approx(row.published_parameters, rel=0.01)
    assert row.source
    assert row.batch_source
    assert row.task in TASKS
    assert (row.global_batch_tokens > 0) != (row.global_batch_samples > 0)
    assert row.unit in {"tokens", "samples"}
    assert asked.task == row.task
    assert asked.linear_flops_per_unit > 0
    assert asked.vector_bytes_per_unit > 0
    none, selective, full = asked.activation_bytes_per_sample
    assert 0 < full <= selective <= none
    assert asked.steps >= 1
    unpublished = row.unit == "tokens" and row.batch_source.startswith("not published")
    source = "for a model and run of this size, DeepSeek-AI 2024" if unpublished else row.batch_source
    assert any(assumption.startswith("global batch of") and source in assumption for assumption in asked.assumptions)
    assert asked.samples_per_step == int(asked.samples_per_step)


def test_names_and_aliases_never_mean_two_models() -> None:
    for row in presets().values():
        assert find_preset(row.name) is row
        for alias in row.aliases:
            assert find_preset(alias) is row, alias


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("Llama 3 8B", "llama-3-8b"),
        ("meta-llama/Llama-3.1-8B", "llama-3-8b"),
        ("GPT-3 1.3B", "gpt3-1.3b"),
        ("Llama-3.3-70B-Instruct", "llama-3-70b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("gemma 2 9b it", "gemma-2-9b"),
        ("whisper large v3", "whisper-large"),
        ("Swin-B", "swin-base"),
        ("ConvNeXt-L", "convnext-large"),
        ("3D U-Net", "unet-3d"),
        ("gpt3-13b", "gpt3-13b"),
        ("ResNet50", "resnet-50"),
        ("ViT-B-16", "vit-b/16"),
        ("Stable Diffusion 1.5", "stable-diffusion-1.5"),
        ("mixtral_8x7b", "mixtral-8x7b"),
        ("T5", "t5-base"),
        ("llama3.1:8b", "llama-3-8b"),
        ("Llama3.1-8B", "llama-3-8b"),
        ("META-LLAMA/LLAMA-3.1-8B-INSTRUCT", "llama-3-8b"),
        ("llama3:latest", "llama-3-8b"),
        ("qwen3:30b-a3b", "qwen3-30b-a3b"),
        ("gpt-oss:20b", "gpt-oss-20b"),
        ("deepseek-r1:671b", "deepseek-r1"),
        ("Gemma 3 27B it", "gemma-3-27b"),
        ("YOLOv8", "yolov8n"),
        ("YOLOv11n", "yolo11n"),
        ("Flux", "flux.1-dev"),
        ("Faster R-CNN", "faster-rcnn"),
        ("SSD", "ssd300-vgg16"),
        ("Tacotron 2", "tacotron2"),
        ("CLIP", "clip-vit-b/32"),
        ("SD3", "sd3-medium"),
        ("DLRM-DCNv2", "dlrm-dcnv2"),
        ("Mamba-2 2.7B", "mamba2-2.7b"),
    ],
)
def test_usual_spellings_are_understood(spelling: str, name: str) -> None:
    assert find_preset(spelling).name == name


@pytest.mark.parametrize(
    ("text", "offered"), [("lama-3-8b", "llama-3-8b"), ("resnet-51", "resnet-50"), ("zzz", "resnet-18"), ("", "gpt2")]
)
def test_an_unknown_model_is_refused_with_the_nearest_names(text: str, offered: str) -> None:
    assert offered in faults(model=text, tokens=1e9)["workload.model"]


#: Ids on Hugging Face of models that presets have the dimensions of, and whether the plan says so by name.
IDS = [
    ("openai-community/gpt2-xl", "gpt2-xl", False),
    ("huggyllama/llama-7b", "llama-7b", False),
    ("meta-llama/Llama-2-7b-hf", "llama-2-7b", False),
    ("meta-llama/Meta-Llama-3-8B", "llama-3-8b", True),
    ("meta-llama/Meta-Llama-3-70B-Instruct", "llama-3-70b", True),
    ("meta-llama/Meta-Llama-3.1-8B", "llama-3-8b", True),
    ("meta-llama/Llama-3.1-405B", "llama-3.1-405b", False),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama-4-scout", True),
    ("mistralai/Mistral-7B-v0.1", "mistral-7b", True),
    ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b", True),
    ("mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b", True),
    ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b", False),
    ("Qwen/Qwen3-8B-Base", "qwen3-8b", True),
    ("Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b", True),
    ("google/gemma-2-9b-it", "gemma-2-9b", False),
    ("microsoft/Phi-3-mini-4k-instruct", "phi-3-mini", True),
    ("deepseek-ai/DeepSeek-V3-0324", "deepseek-v3", True),
    ("deepseek-ai/DeepSeek-R1", "deepseek-r1", False),
    ("moonshotai/Kimi-K2-Instruct", "kimi-k2", False),
    ("tiiuae/falcon-40b", "falcon-40b", False),
    ("bigscience/bloom", "bloom-176b", True),
    ("EleutherAI/pythia-6.9b-deduped", "pythia-6.9b", True),
    ("mosaicml/mpt-7b", "mpt-7b", False),
    ("google-bert/bert-base-uncased", "bert-base", True),
    ("FacebookAI/roberta-large", "roberta-large", False),
    ("google-t5/t5-base", "t5-base", False),
    ("google/vit-base-patch16-224-in21k", "vit-b/16", True),
    ("openai/whisper-large-v3", "whisper-large", True),
    ("microsoft/resnet-50", "resnet-50", False),
    ("stable-diffusion-v1-5/stable-diffusion-v1-5", "stable-diffusion-1.5", True),
    ("stabilityai/stable-diffusion-xl-base-1.0", "sdxl", True),
    ("facebook/bart-large", "bart-large", False),
    ("microsoft/swin-tiny-patch4-window7-224", "swin-tiny", True),
    ("openai/whisper-large-v3-turbo", "whisper-large-v3-turbo", False),
    ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "llama-3-8b", True),
    ("deepseek-ai/DeepSeek-V2-Lite-Chat", "deepseek-v2-lite", False),
    ("Qwen/Qwen2.5-VL-7B-Instruct", "qwen2.5-vl-7b", False),
    ("Qwen/Qwen3-30B-A3B-Thinking-2507", "qwen3-30b-a3b", True),
    ("mistralai/Mistral-Small-24B-Instruct-2501", "mistral-small-24b", True),
    ("zai-org/GLM-4.5-Air-FP8", "glm-4.5-air", True),
    ("unsloth/Llama-3.2-3B-Instruct-bnb-4bit", "llama-3.2-3b", True),
    ("allenai/OLMo-2-1124-7B-Instruct", "olmo-2-7b", True),
    ("answerdotai/ModernBERT-base", "modernbert-base", False),
    ("facebook/esm2_t33_650M_UR50D", "esm2-650m", True),
    ("facebook/sam-vit-huge", "sam-vit-h", True),
    ("google/siglip-so400m-patch14-384", "siglip-so400m", True),
    ("black-forest-labs/FLUX.1-dev", "flux.1-dev", False),
    ("Wan-AI/Wan2.1-T2V-14B", "wan2.1-14b", True),
]


@pytest.mark.parametrize(("text", "name", "is_reported"), IDS)
def test_ids_on_hugging_face_are_understood_and_another_name_is_said(text: str, name: str, is_reported: bool) -> None:
    assert find_preset(text).name == name
    assert planned_as(text) == (f"{text} is planned as {name}, a model of its dimensions" if is_reported else None)


@pytest.mark.parametrize(
    "text",
    [
        "openai/whisper-large-v4",
        "deepseek-ai/DeepSeek-R1-Distill-Llama-3B",
        "llama-3-13b",
        "gemma-3-123m",
        "grok-2.5",
        "sam-2.1",
    ],
)
def test_a_model_of_other_dimensions_is_never_taken_for_a_preset(text: str) -> None:
    assert "unknown model" in faults(model=text, tokens=1e9)["workload.model"]


def test_a_name_that_is_near_none_is_told_which_families_there_are() -> None:
    message = faults(model="schnet", samples=1e6)["workload.model"]
    assert "nearest" not in message
    assert "detectors (ssd-resnet34)" in message


@pytest.mark.parametrize("text", ["yolov8z", "qwen3-9b", "gemma-3-9000b", "whisper-gigantic", "resnet-51", "mixtral"])
def test_near_names_are_models_of_one_kind_and_dimensions_can_be_given_instead(text: str) -> None:
    message = faults(model=f"{text}-x", tokens=1e9)["workload.model"]
    near = message.split("nearest: ")[1].split(";")[0].split(", ")
    kinds = {presets()[name].task.replace("mixture-of-experts", "language") for name in near}
    assert len(kinds) == 1
    assert all(name.startswith(text[:4]) for name in near)
    assert "workload.kind transformer" in message


def test_deepseek_r1_has_the_dimensions_of_the_model_it_is_trained_from() -> None:
    assert find_preset("deepseek-r1").name == "deepseek-r1"
    assert work("deepseek-r1").parameters == work("deepseek-v3").parameters


def test_a_huge_name_is_cut_short() -> None:
    assert len(faults(model="x" * 10_000, tokens=1e9)["workload.model"]) < 1000


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model": "llama-3-8b"}, "workload.tokens"),
    ({"model": "resnet-50"}, "workload.samples"),
    ({"model": "llama-3-8b", "tokens": 1e9, "samples": 1e5}, "workload.samples"),
    ({"model": "resnet-50", "tokens": 1e9}, "workload.tokens"),
    ({"model": "resnet-50", "samples": 1e6, "global_batch_tokens": 1e5}, "workload.global_batch_tokens"),
    ({"model": "resnet-50", "samples": 1e6, "sequence_length": 128}, "workload.sequence_length"),
    ({"model": "resnet-50", "samples": 1e6, "image_size": 0}, "workload.image_size"),
    ({"model": "vit-b/16", "samples": 1e6, "image_size": 225}, "workload.image_size"),
    ({"model": "unet", "samples": 1e6, "image_size": 100}, "workload.image_size"),
    ({"model": "dcgan", "samples": 1e6, "image_size": 100}, "workload.image_size"),
    ({"model": "sdxl", "samples": 1e6, "image_size": 500}, "workload.image_size"),
    ({"model": "llama-3-8b", "tokens": 1e9, "image_size": 224}, "workload.image_size"),
    ({"model": "llama-3-8b", "tokens": 1e9, "sequence_length": 0}, "workload.sequence_length"),
    ({"model": "bert-large", "tokens": 1e9, "sequence_length": 1024}, "workload.sequence_length"),
    ({"model": "llama-3-8b", "tokens": 1000.0}, "workload.tokens"),
    ({"model": "llama-3-8b", "tokens": 1e9, "global_batch_tokens": 1000.0}, "workload.global_batch_tokens"),
    ({"model": "llama-3-8b", "tokens": float("nan")}, "workload.tokens"),
    ({"model": "llama-3-8b", "tokens": -1.0}, "workload.tokens"),
    ({"model": "llama-3-8b", "tokens": 1e29}, "workload.tokens"),
    ({"model": "resnet-50", "samples": 1e29}, "workload.samples"),
    ({"model": "resnet-50", "samples": float("inf")}, "workload.samples"),
]


@pytest.mark.parametrize(("preset", "field"), REFUSED)
def test_what_does_not_apply_or_is_missing_is_refused_by_field(preset: dict[str, Any], field: str) -> None:
    assert field in faults(**preset)


def test_samples_of_a_language_model_are_sequences() -> None:
    asked = work("llama-3-8b", samples=1e6, sequence_length=2048)
    assert (asked.unit, asked.units_total, asked.units_per_sample) == ("tokens", 2048e6, 2048)
    assert any("samples of 2048 tokens" in assumption for assumption in asked.assumptions)


def test_a_batch_in_samples_is_a_batch_in_tokens() -> None:
    by_sample = work("llama-3-8b", tokens=1e12, global_batch_samples=512.0)
    by_token = work("llama-3-8b", tokens=1e12, global_batch_tokens=512.0 * 8192)
    assert by_sample.units_per_step == by_token.units_per_step == 512 * 8192
    assert not any(assumption.startswith("global batch") for assumption in by_token.assumptions)


def test_a_short_job_gets_a_batch_that_leaves_it_a_thousand_steps() -> None:
    asked = work("llama-3-8b", tokens=1e8)
    assert 1000 <= asked.steps < 2000
    assert any("1000 steps" in assumption for assumption in asked.assumptions)


def test_adapters_get_a_batch_that_is_usual_for_them() -> None:
    asked = work("llama-3-70b", Training(method="lora"), tokens=1e11)
    assert asked.samples_per_step == 64
    assert any("usual for adapters" in assumption for assumption in asked.assumptions)


def test_adapters_of_a_short_job_get_no_less_than_sixteen_sequences() -> None:
    assert work("llama-3-70b", Training(method="lora"), tokens=2e7).samples_per_step == 16
    assert work("sdxl", Training(method="lora"), samples=3000).samples_per_step == 2


def test_a_batch_larger_than_the_job_is_one_step_and_said() -> None:
    asked = work("llama-3-8b", tokens=1e6, global_batch_tokens=4e6)
    assert asked.steps == 1
    assert any("smaller than the batch" in assumption for assumption in asked.assumptions)


def test_a_vision_transformer_grows_with_the_square_of_the_image() -> None:
    small, large = (work("vit-b/16", samples=1e9, image_size=size) for size in (224, 448))
    tokens = (196 + 1, 784 + 1)
    assert large.linear_flops_per_unit / small.linear_flops_per_unit == pytest.approx(tokens[1] / tokens[0], rel=0.01)
    assert large.attention_flops_per_unit / small.attention_flops_per_unit == pytest.approx(
        (tokens[1] / tokens[0]) ** 2
    )
    # 17.6 GFLOP multiply-adds forward at 224 (torchvision), 6 FLOPs each forward and backward.
    assert small.flops_per_unit == pytest.approx(17.56e9 * 6, rel=0.02)


def test_latent_attention_counts_its_parameters_exactly_and_says_what_its_scores_are() -> None:
    asked = work("deepseek-v3")
    assert asked.active_parameters == pytest.approx(37e9, rel=0.02)
    assert any("latent attention" in assumption for assumption in asked.assumptions)


@pytest.mark.parametrize(
    ("model", "active"),
    [
        ("qwen3-30b-a3b", 3.3e9),
        ("qwen3-235b-a22b", 22e9),
        ("gpt-oss-120b", 5.7e9),
        ("kimi-k2", 32.6e9),
        ("mixtral-8x22b", 39e9),
        ("nemotron-3-nano", 3.6e9),
        ("nemotron-3-super", 12.7e9),
        ("gemma-4-26b-a4b", 3.8e9),
        ("deepseek-v4-flash", 13.3e9),
    ],
)
def test_mixtures_activate_what_their_cards_say(model: str, active: float) -> None:
    assert work(model).active_parameters == pytest.approx(active, rel=0.03)


def test_experts_in_a_latent_space_get_narrow_copies_of_tokens() -> None:
    latent = work("nemotron-3-super")
    assert latent.shape is not None
    assert latent.shape.routed_size == 1024
    # 22 of 512 experts, 5.5M weights each, of 12.7B in all: 42 % of the multiply-adds outside the head, from a width of 1,024.
    assert 0.42 / 1024 / 2 < 0.75 / latent.shape.matmul_width < 1 / 1024
    assert latent.modelled_sigma > 0


@pytest.mark.parametrize(
    ("model", "width"), [("gpt2-xl", 1600), ("llama-3.1-405b", 16_384), ("qwen3-30b-a3b", 979), ("gpt-oss-120b", 2042)]
)
def test_matmuls_are_as_wide_as_the_model_and_narrow_experts_make_them_narrower(model: str, width: float) -> None:
    shape = work(model).shape
    assert shape is not None
    assert shape.matmul_width == pytest.approx(width, rel=0.1)


def test_masked_language_models_compute_logits_where_a_mask_is() -> None:
    bert = work("bert-large")
    assert bert.head_flops_per_unit == pytest.approx(0.15 * 6 * 30522 * 1024)


def test_targets_of_an_encoder_decoder_stay_in_proportion() -> None:
    for length, target in ((512, 114), (1024, 228)):
        asked = work("t5-base", tokens=1e12, sequence_length=length)
        assert any(f"{target} target tokens" in assumption for assumption in asked.assumptions)


@given(st.sampled_from(list(presets())), st.sampled_from(SOFTWARE), st.floats(1.0, 1e12))
def test_any_preset_answers_for_any_amount_of_a_sequence_or_more(name: str, software: str, amount: float) -> None:
    unit = presets()[name].unit
    amount = max(amount, float(presets()[name].sequence_length))
    asked = work(name, Training(software=software), **{unit: amount})
    assert asked.units_total == pytest.approx(amount)
    assert 0 < asked.units_per_step <= asked.units_total
    assert asked.total_flops > 0


def test_a_preset_that_is_known_is_not_counted_again_for_another_amount() -> None:
    def cache_misses() -> list[int]:
        return [cached.cache_info().misses for cached in (_network, _of_one_sample)]

    # Fewer than the caches hold.
    some = dict(islice(presets().items(), 60))
    for name in some:
        work(name)
    before = cache_misses()
    for name, row in some.items():
        work(name, FULL, **{row.unit: PLENTY[row.unit] * 3})
    assert cache_misses() == before
