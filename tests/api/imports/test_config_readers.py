"""Other tools' configurations are read as their tools read them, and a value is never made up."""

import json
from pathlib import Path

import pytest

from gpuplan.api.imports.facts import FACT_NAMES
from gpuplan.api.imports.job_from_facts import Given, job_of
from gpuplan.api.imports.reading import read_file, read_text
from gpuplan.api.imports.rendering import job_file
from gpuplan.api.schemas.job import parse_job
from gpuplan.catalog.parsing.structured_text import read_document
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.api.imports.config_texts import AXOLOTL, LLAMA, LLAMA_FACTORY, MEGATRON, TORCHTUNE, TRAINER


@pytest.mark.shared_data
def test_cells_of_collected_files_are_read_right_and_none_silently_wrong(shared_data: Path) -> None:
    from tools.benchmarks.config_readers import score

    made = score(shared_data / "configs")
    assert not made.silent
    assert made.share >= FLOOR, "\n".join(made.wrong)
    assert max(abs(off) for off in made.parameters.values()) <= 0.01


#: Least share of cells right, a little below what was measured.
FLOOR = 0.98


def test_each_fact_names_its_line_or_the_default_it_rests_on() -> None:
    facts = read_text(LLAMA_FACTORY, "run.yaml")
    origins = {name: str(fact.origin) for name, fact in facts.in_order()}
    assert origins["model_name"] == "run.yaml:1"
    assert origins["checkpointing"] == "default of LLaMA-Factory"
    assert set(origins) <= set(FACT_NAMES)


def test_the_global_batch_is_a_formula_until_the_processes_are_known_and_then_held() -> None:
    facts = read_text(LLAMA_FACTORY, "run.yaml")
    assert str(facts.value("global_batch")) == "8 x world samples"
    made = job_of(facts, Given(samples="1000", gpus=4))
    assert made.document["workload"]["global_batch_tokens"] == 32 * 1024
    assert made.document["workload"]["tokens"] == 1000 * 2 * 1024


def test_a_number_of_steps_beats_epochs() -> None:
    facts = read_text(TRAINER, "args.json")
    assert facts.number("steps") == 500
    assert facts.text("epochs") == "(3, overruled)"


def test_a_switch_that_is_written_out_as_false_means_no_adapters() -> None:
    facts = read_text(TRAINER.replace('"max_steps"', '"use_peft": false, "lora_r": 16, "max_steps"'), "args.json")
    assert facts.text("method") == "full"
    assert facts.value("lora_rank") is None


def test_what_a_component_is_called_tells_torchtunes_method_and_model() -> None:
    facts = read_text(TORCHTUNE, "tune.yaml")
    assert (facts.text("method"), facts.text("model_name")) == ("qlora", "llama3_2_1b")
    assert job_of(facts, Given(tokens="1B", length=512)).document["workload"]["model"] == "llama-3.2-1b"


def test_a_pair_of_answers_is_two_sequences() -> None:
    facts = read_text(AXOLOTL + "rl: dpo\n", "axolotl.yml")
    made = job_of(facts, Given(samples="1000", gpus=1))
    assert made.document["training"]["stage"] == "dpo"
    assert made.document["workload"]["tokens"] == 2 * 1000 * 2048


def test_parameters_of_a_model_follow_from_its_dimensions() -> None:
    facts = read_text(json.dumps(LLAMA), "config.json")
    assert facts.number("parameters_total") == 8_030_261_248


def test_a_job_file_with_its_comments_can_be_planned() -> None:
    odd = LLAMA | {"hidden_size": 3072, "num_attention_heads": 24, "num_hidden_layers": 30}
    text = job_file(job_of(read_text(json.dumps(odd), "config.json"), Given(tokens="2B", length=4096, by="3d")))
    assert "config.json:" in text
    from datetime import UTC, datetime

    job = parse_job(read_document(text, name="job.yaml"), now=datetime(2026, 11, 27, tzinfo=UTC))
    assert job.deadline_hours == 72


def test_what_is_missing_is_refused_with_the_flag_to_give() -> None:
    made = job_of(read_text(LLAMA_FACTORY, "run.yaml"), Given())
    with pytest.raises(UnusableInput, match="--tokens 2B, --samples N or --data PATH"):
        made.complete()


def test_a_method_that_is_neither_full_nor_adapters_is_refused() -> None:
    facts = read_text(TRAINER.replace('"max_steps"', '"tune_mm_mlp_adapter": true, "max_steps"'), "args.json")
    with pytest.raises(UnusableInput, match="projector only is neither full, lora nor qlora"):
        job_of(facts, Given(tokens="1B"))


def test_layers_that_differ_are_no_plain_transformer() -> None:
    facts = read_text(
        json.dumps(
            LLAMA
            | {"hybrid_override_pattern": "M-*-", "mamba_num_heads": 8, "mamba_head_dim": 64, "ssm_state_size": 16}
        ),
        "config.json",
    )
    with pytest.raises(UnusableInput, match=r"no plain transformer describes .*: 1 Mamba"):
        job_of(facts, Given(tokens="1B"))


def test_a_deepspeed_file_that_is_named_fills_in_the_stage(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}, "train_batch_size": "auto"}')
    (tmp_path / "run.yaml").write_text(LLAMA_FACTORY + "deepspeed: ds.json\n")
    facts = read_file(tmp_path / "run.yaml")
    assert facts.text("sharding") == "zero 2"
    assert str(facts.value("global_batch")) == "8 x world samples"


def test_a_stage_that_only_a_file_name_tells_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(LLAMA_FACTORY + "deepspeed: ds_z3.json\n")
    facts = read_file(tmp_path / "run.yaml")
    assert facts.text("sharding") == "deepspeed, from included file"
    assert facts.missing_files == ["ds_z3.json"]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        (TRAINER, "args.json", {"software": "eager"}),
        (TRAINER.replace('"fp16": true', '"torch_compile": true'), "args.json", {"software": "compiled"}),
        (
            LLAMA_FACTORY + "enable_liger_kernel: true\nlora_dropout: 0\n",
            "run.yaml",
            {"software": "eager", "cross_entropy": "linear", "adapter_dropout": False},
        ),
        (LLAMA_FACTORY + "use_unsloth: true\n", "run.yaml", {"software": "fused", "cross_entropy": "linear"}),
        (
            AXOLOTL + "gradient_checkpointing: unsloth\nlora_dropout: 0.05\n",
            "axolotl.yml",
            {"software": "eager", "activation_checkpointing": "offloaded"},
        ),
        (
            TORCHTUNE + "loss:\n  _component_: torchtune.modules.loss.CEWithChunkedOutputLoss\n",
            "tune.yaml",
            {"software": "eager", "cross_entropy": "chunked"},
        ),
    ],
)
def test_kernels_are_those_of_the_tool_or_of_its_switches(text: str, name: str, expected: dict[str, object]) -> None:
    made = job_of(read_text(text, name), Given(samples="1000", gpus=4, length=1024))
    training = made.document["training"]
    named = {"software", "cross_entropy", "adapter_dropout", "activation_checkpointing"} & set(training)
    assert {field: training[field] for field in named if field in expected} == expected
    assert ("adapter_dropout" in named) == ("adapter_dropout" in expected)


@pytest.mark.parametrize(
    ("text", "name", "ways", "origin"),
    [
        (TRAINER, "args.json", "data", "default of Hugging Face trainer arguments"),
        (AXOLOTL + "tensor_parallel_size: 2\n", "axolotl.yml", "any", "axolotl.yml:"),
        (MEGATRON, "pretrain.sh", "any", "pretrain.sh:"),
    ],
)
def test_parallelism_is_what_the_file_splits_or_what_its_tool_is_made_for(
    text: str, name: str, ways: str, origin: str
) -> None:
    made = job_of(read_text(text, name), Given(samples="1000", gpus=16, length=1024))
    assert made.document["training"]["parallelism"] == ways
    assert str(made.origins["training.parallelism"]).startswith(origin)


def test_scripts_beside_transformers_have_the_defaults_of_the_trainer_though_they_name_a_data_set_as_trl_does() -> None:
    arguments = "model_name_or_path: gpt2-xl\ndataset_name: wikitext\noutput_dir: o\nper_device_train_batch_size: 2\n"
    trl = read_text(arguments, "args.yaml")
    example = read_text(arguments + "do_train: true\nblock_size: 512\n", "args.yaml")
    assert (trl.text("checkpointing"), trl.text("precision"), trl.whole("sequence_length")) == ("full", "bf16", 1024)
    assert (example.text("checkpointing"), example.text("precision")) == ("none", "fp32")
    unsloth = read_text(arguments + "use_gradient_checkpointing: unsloth\n", "args.yaml")
    assert unsloth.text("checkpointing") == "offloaded"


def test_group_relative_training_of_axolotl_counts_completions() -> None:
    text = AXOLOTL + "rl: grpo\nadapter: lora\nlora_r: 8\ntrl:\n  max_completion_length: 256\n"
    facts = read_text(text, "axolotl.yml")
    assert str(facts.value("global_batch")) == "8 x world completions"
    job = job_of(facts, Given(samples="1000", gpus=1)).document
    assert (job["training"]["stage"], job["training"]["completion_tokens"]) == ("grpo", 256)


def test_a_script_without_a_known_training_run_says_so() -> None:
    facts = read_text("#!/bin/bash\npython -m verl.trainer.main_ppo data.train_batch_size=1024\n", "run.sh")
    assert facts.not_understood == ["run.sh: none of its commands is a training run of a known tool"]
