"""Launch scripts and wrappers are read without being run, and followed to the configuration inside."""

from pathlib import Path

from gpuplan.api.imports.reading import read_file, read_text
from gpuplan.api.imports.shell_script import ShellScript
from tests.api.imports.config_texts import AXOLOTL, MEGATRON, SKYPILOT


def test_variables_arrays_and_arithmetic_of_a_megatron_script_are_filled_in() -> None:
    facts = read_text(MEGATRON, "train.sh")
    stated = {
        "layers": 32,
        "kv_heads": 8,
        "ffn_size": 10880,
        "stated_world_size": 16,
        "tensor_parallel": 2,
        "gradient_accumulation": 16,
        "steps": 500_000,
        "precision": "fp8",
        "global_batch": "128 samples",
        "tokens": 500_000 * 128 * 4096,
    }
    assert {name: str(facts.value(name)) for name in stated} == {name: str(value) for name, value in stated.items()}
    assert facts.value("vocabulary_size") is None


def test_an_sbatch_script_says_machines_and_time() -> None:
    machines = read_text(MEGATRON, "train.sh").machines
    assert machines is not None
    assert (machines.nodes, machines.per_node, machines.hours) == (2, 8, 36)


def test_a_wrapper_is_followed_to_the_configuration_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "axolotl.yml").write_text(AXOLOTL)
    (tmp_path / "task.yaml").write_text(SKYPILOT)
    facts = read_file(tmp_path / "task.yaml")
    assert facts.text("model_name") == "Qwen/Qwen3-8B"
    assert str(facts.value("global_batch")) == "128 samples"
    assert facts.machines is not None
    assert (facts.machines.accelerator, facts.machines.nodes) == ("A100-80GB", 2)


def test_nothing_in_a_script_is_executed(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    text = f"#!/bin/bash\nX=$(touch {mark})\ntouch {mark}\n`touch {mark}`\ntorchrun train.py --x $X\n"
    assert [command.words[0] for command in ShellScript().commands(text)][-1] == "torchrun"
    read_text(text, "run.sh")
    assert not mark.exists()


def test_a_value_that_a_command_computes_is_named_and_not_made_up() -> None:
    facts = read_text(MEGATRON.replace("--micro-batch-size 1", "--micro-batch-size $UNKNOWN"), "train.sh")
    assert facts.value("micro_batch") is None
    assert any("$UNKNOWN" in line for line in facts.not_understood)
