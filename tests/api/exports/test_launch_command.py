"""The launcher line, and the layout that the training script reads from its environment."""

import pytest

from gpuplan.api.exports.handover_reader import read_handover
from gpuplan.api.exports.launch_command import environment, launch, read_command, read_wishes
from gpuplan.api.exports.plan_handover import Wishes
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.api.exports.documents import answer, in_phases, phase


def line(command: str, *, nodes: int = 1) -> list[str]:
    handover = read_handover(answer(phase(nodes=nodes)))
    return launch(handover.phases[0], Wishes(command=read_command(command)), rank="R", address="A")


def test_a_script_a_module_and_a_program_are_started_each_in_its_way() -> None:
    assert line("python train.py --lr 1e-4")[-3:] == ["train.py", "--lr", "1e-4"]
    assert line("python3 -m pkg.train x")[-3:] == ["--module", "pkg.train", "x"]
    assert line("./run.sh 'a b'")[-3:] == ["--no-python", "./run.sh", "a b"]
    assert line("python -u train.py")[-4:] == ["--no-python", "python", "-u", "train.py"]


def test_several_nodes_meet_at_the_first_and_one_stands_alone() -> None:
    assert line("python t.py")[:4] == ["torchrun", "--standalone", "--nproc-per-node", "8"]
    assert line("python t.py", nodes=4) == (
        [
            "torchrun",
            "--nnodes",
            "4",
            "--node-rank",
            "R",
            "--master-addr",
            "A",
            "--master-port",
            "29500",
            "--nproc-per-node",
            "8",
            "t.py",
        ]
    )


def test_the_hosts_of_a_tpu_slice_run_the_command_as_it_stands() -> None:
    handover = read_handover(answer(phase("gcp-tpu")))
    assert launch(handover.phases[0], Wishes(), rank="", address="") == ["python", "train.py"]


@pytest.mark.parametrize("command", ["", "   ", "python 'train", "a\nb", "x" * 5000, "''", "a\x00b", "w " * 300])
def test_what_is_no_command_is_refused_at_command(command: str) -> None:
    with pytest.raises(UnusableInput, match="command: "):
        read_command(command)


def test_what_is_no_image_and_no_reservation_is_refused_by_name() -> None:
    with pytest.raises(UnusableInput, match="image: "):
        read_wishes(command="x", image="a b")
    with pytest.raises(UnusableInput, match="reservation: "):
        read_wishes(command="x", reservation="$(id)")


def test_the_environment_says_layout_precision_checkpoint_and_switch_time() -> None:
    handover = read_handover(in_phases())
    first = environment(handover, handover.phases[0])
    assert first["GPUPLAN_TENSOR_PARALLEL"] == "2"
    assert first["GPUPLAN_MICRO_BATCH"] == "4"
    assert first["GPUPLAN_ACTIVATION_CHECKPOINTING"] == "full"
    assert first["GPUPLAN_PRECISION"] == "bf16"
    assert first["GPUPLAN_CHECKPOINT_SECONDS"] == "900"
    assert first["GPUPLAN_HAND_OVER_AT"] == "2026-12-01T00:00:00Z"
    second = environment(handover, handover.phases[1])
    assert (second["GPUPLAN_SHARE_BEFORE"], second["GPUPLAN_SHARE"]) == ("0.75", "0.25")
    standby = environment(handover, handover.phases[2])
    assert standby["GPUPLAN_SWITCH_BY"] == second["GPUPLAN_SWITCH_BY"] == "2026-12-02T18:00:00Z"
    assert standby["GPUPLAN_SWITCH_SHARE"] == "0.58"
    assert "GPUPLAN_HAND_OVER_AT" not in second
    assert "GPUPLAN_SHARE" not in standby
