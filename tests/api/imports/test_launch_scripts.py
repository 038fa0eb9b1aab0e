"""Launch scripts and wrappers are read without being run, and followed to the configuration inside."""

from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("X=${Y:-${Z:-8}}", "8"),
        ("export X=2 Y=3", "2"),
        ("A=(a 'b c' $(date)); X=${#A[@]}", "3"),
        ("A=(1 2); A+=(3)  # three\nX=${A[2]}", "3"),
        ("X=$(( (2 + 3) * 4 % 7 ))", "6"),
        ("X=`expr 6 \\* 2`", "12"),
        ("M=70B; case $M in 7B|8B) X=1 ;; 70*) X=2;; *) X=3; esac", "2"),
        ('if [[ -z "$N" && 2 -lt 3 ]]; then X=1; else X=2; fi', "1"),
        ("if [ -n $N ]; then X=1; elif test a = b; then X=2; else X=3; fi", "3"),
        ("[ 1 -eq 2 ] && X=1 || X=2", "2"),
        ("X=4\nfor i in 1 2; do X=$((X * 2)); done", "16"),
        ("X=4\nwhile [[ $# -gt 0 ]]; do case $1 in --x) X=$2; shift;; esac; done", "4"),
        ("set_it() { local y=$1; X=$((y * 2)); }\nset_it 4", "8"),
        ("Y=model-8b.yaml; X=${Y%.yaml}", "model-8b"),
        # What cannot be told stays open.
        ("X=1\nfor f in *.txt; do X=2; done", "$X"),
        ("X=1\nif [ -f there ]; then X=2; fi", "$X"),
        ("X=1\nX=$(nproc)", "$(nproc)"),
        ("X=1\nread X", "$X"),
    ],
)
def test_a_variable_has_the_value_that_bash_gives_it(setting: str, expected: str) -> None:
    last = list(ShellScript().commands(f"{setting}\ntorchrun $X\n"))[-1]
    assert " ".join(last.words[1:]) == expected


def test_a_script_is_followed_into_functions_shells_and_files_that_it_writes_and_includes(tmp_path: Path) -> None:
    (tmp_path / "common.sh").write_text("BATCH=16\n")
    text = """#!/bin/bash
. ./common.sh
cat > ds.json <<EOT
{"zero_optimization": {"stage": $((1 + 1))}, "it's": 1}
EOT
main() {
  CMD="torchrun --nproc_per_node $1 train.py --output_dir o --max_steps 9 --deepspeed ds.json"
  nohup srun --label bash -c "$CMD --per_device_train_batch_size \\$BATCH --bf16 $EXTRA_ARGS" > log.txt 2>&1 &
}
main 4
"""
    (tmp_path / "run.sh").write_text(text)
    facts = read_file(tmp_path / "run.sh")
    stated = {name: str(facts.value(name)) for name in ("sharding", "global_batch", "precision")}
    assert stated == {"sharding": "zero 2", "global_batch": "64 samples", "precision": "bf16"}
    assert facts.not_understood == ["run.sh:8: $EXTRA_ARGS may hold arguments, and nothing here states it"]


@pytest.mark.parametrize(
    "command",
    [
        "accelerate launch --num_processes 8 -m axolotl.cli.train a.yml --micro_batch_size 8 --num-epochs=3",
        "CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 uv run axolotl train a.yml --micro-batch-size=8 num_epochs=3",
        "axolotl train a.yml micro_batch_size=8 --num_epochs 3 -- --nproc_per_node 8",
    ],
)
def test_what_a_command_states_is_put_over_the_file_that_it_names(command: str, tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text(AXOLOTL)
    (tmp_path / "run.sh").write_text(f"{command}\n")
    facts = read_file(tmp_path / "run.sh")
    assert (str(facts.value("global_batch")), facts.number("epochs")) == (f"{8 * 4 * 8} samples", 3)
    assert str(facts.facts["micro_batch"].origin) == "run.sh:1"
    assert str(facts.facts["sequence_length"].origin) == "a.yml:5"


def test_a_configuration_that_comes_with_torchtune_is_known_by_its_name() -> None:
    text = "tune run --nproc_per_node 4 lora_finetune_distributed --config llama3_1/8B_lora batch_size=4"
    facts = read_text(f"{text} gradient_accumulation_steps=2\n", "run.sh")
    assert (facts.text("model_name"), facts.text("method")) == ("llama3_1_8b", "lora")
    assert str(facts.value("global_batch")) == "32 samples"
    assert facts.missing_files == ["llama3_1/8B_lora (of torchtune)"]


@pytest.mark.parametrize(
    "text", ["[[ " * 50_000, '"$(' * 50_000, "for i in 1 2 3 4; do\n" * 50, "f() {\nf;f\n}\nf\n", "A=(\n #"]
)
def test_a_script_that_is_built_to_take_long_ends(text: str) -> None:
    assert list(ShellScript().commands(text)) is not None


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


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("-N 4\n#SBATCH --gpus-per-node=a100:8 -t 48:00:00", ("a100", 8, 4, 48.0, 32)),
        ("--nodes=2 --ntasks-per-node=4\n#SBATCH --gpus-per-task=h100:1", ("h100", 4, 2, None, 8)),
        ("--gpus=16 --nodes 2  # two\n#SBATCH -C a100-80gb&ib --time 1-0", ("a100-80gb", 8, 2, 24.0, 16)),
        ("-N1-4 --gres=nvme:1,gpu:h100:4 --time=90", ("h100", 4, 4, 1.5, None)),
        ("--nodes=2 --gres=gpu:8 -p gpu-v100", ("v100", 8, 2, None, 16)),
        ("--nodes=2 --gres=gpu:8 -p long2", (None, 8, 2, None, 16)),
    ],
)
def test_machines_are_those_that_slurm_is_asked_for(lines: str, expected: tuple[object, ...]) -> None:
    text = f"#!/bin/bash\n#SBATCH {lines}\n##SBATCH --nodes=99\npython train.py --output_dir o --learning_rate 1\n"
    facts = read_text(text, "job.sbatch")
    asked = facts.machines
    assert asked is not None
    assert (asked.accelerator, asked.per_node, asked.nodes, asked.hours, facts.whole("stated_world_size")) == expected


def test_variables_that_slurm_sets_are_known_from_its_options() -> None:
    text = "#!/bin/bash\n#SBATCH -N 2 --gres=gpu:8\nW=$((SLURM_NNODES * SLURM_GPUS_ON_NODE))\n"
    text += "torchrun train.py --output_dir o --per_device_train_batch_size $((64 / W)) --learning_rate 1\n"
    assert read_text(text, "job.sbatch").whole("micro_batch") == 4


def test_a_launcher_that_contradicts_its_wrapper_is_named() -> None:
    text = "#!/bin/bash\n#SBATCH -N 2 --gres=gpu:8\ntorchrun --nnodes 2 --nproc_per_node 4 train.py\n"
    facts = read_text(text, "job.sbatch")
    assert facts.notes == ["job.sbatch:3: the launcher starts 8 processes, not the 16 stated before, which count"]


_POD = """
        spec:
          {place}
          containers:
            - name: train
              env: [{{name: BATCH, value: "2"}}]
              command: [bash, -c]
              args:
                - |
                  set -e
                  torchrun --nnodes $PET_NNODES --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen3-8B \\
                    --per_device_train_batch_size $BATCH --output_dir o --max_steps 9
              resources: {{limits: {{nvidia.com/gpu: "8"}}}}
"""
_SELECTOR = "nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}"
_AFFINITY = (
    "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: "
    "[{key: cloud.google.com/gke-accelerator, operator: In, values: [nvidia-h100-80gb]}]}]}}}"
)
PYTORCHJOB = f"""apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  runPolicy: {{activeDeadlineSeconds: 7200}}
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:{_POD.format(place=_SELECTOR)}
    Worker:
      replicas: 3
      template:{_POD.format(place=_SELECTOR)}"""
JOBSET = f"""apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
spec:
  replicatedJobs:
  - replicas: 1
    template:
     spec:
      parallelism: 4
      activeDeadlineSeconds: 7200
      template:{_POD.format(place=_AFFINITY)}"""


@pytest.mark.parametrize(("text", "accelerator"), [(PYTORCHJOB, "NVIDIA-A100-SXM4-80GB"), (JOBSET, "nvidia-h100-80gb")])
def test_pods_of_a_kubernetes_job_are_added_up_and_their_command_is_read(text: str, accelerator: str) -> None:
    facts = read_text(text, "job.yaml")
    assert facts.machines is not None
    assert (facts.machines.accelerator, facts.machines.per_node, facts.machines.nodes) == (accelerator, 8, 4)
    assert facts.machines.hours == 2
    assert str(facts.value("global_batch")) == "64 samples"
    line = text.splitlines().index(
        "                  torchrun --nnodes $PET_NNODES --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen3-8B \\"
    )
    assert str(facts.facts["micro_batch"].origin) == f"job.yaml:{line + 1}"


def test_the_trainer_of_a_trainjob_is_its_container() -> None:
    text = """apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
spec:
  trainer:
    numNodes: 2
    command: [torchrun, train.py]
    args: [--model_name_or_path, Qwen/Qwen3-8B, --per_device_train_batch_size=2, --max_steps, "5", --output_dir, o]
    resourcesPerNode: {requests: {nvidia.com/gpu: 4}}
"""
    facts = read_text(text, "job.yaml")
    assert facts.machines is not None
    assert (facts.machines.per_node, facts.machines.nodes) == (4, 2)
    assert str(facts.value("global_batch")) == "16 samples"


def test_accelerators_that_differ_in_number_leave_the_processes_open() -> None:
    either = SKYPILOT.replace(
        "accelerators: A100-80GB:8", "any_of: [{accelerators: 'A100:8'}, {accelerators: 'H100:4'}]"
    )
    facts = read_text(either, "task.yaml")
    assert facts.machines is None
    assert facts.notes == ["any of A100:8, H100:4 may run it"]
    assert "accelerators differ in number" in facts.not_understood[0]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            'STAGE=$1\nif [ "$STAGE" == "" ]; then STAGE=3; fi\ndeepspeed main.py --model_name_or_path a/b --per_device_train_batch_size 4 --deepspeed --zero_stage $STAGE --offload --dtype bf16',
            {"sharding": "zero 3", "offload": "optimizer and parameters", "precision": "bf16"},
        ),
        (
            "swift sft --model a/b --train_type lora --per_device_train_batch_size 1 --output_dir o --torch_dtype float16",
            {"method": "lora", "precision": "fp16", "checkpointing": "full"},
        ),
    ],
)
def test_programs_on_the_trainer_have_words_and_defaults_of_their_own(command: str, expected: dict[str, str]) -> None:
    facts = read_text(f"{command}\n", "run.sh")
    assert {name: str(facts.value(name)) for name in expected} == expected
