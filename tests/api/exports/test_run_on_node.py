"""The script that every node runs: resumes from the newest complete checkpoint, keeps new ones, and ends in time."""

import json
import signal
from pathlib import Path

import pytest

from gpuplan.api.exports.node_script import SCRIPT
from tests.api.exports.node import Node

pytestmark = pytest.mark.slow(reason="runs whole scripts")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path, SCRIPT)


def test_a_first_run_starts_from_the_beginning_and_keeps_its_checkpoint_log_and_exit_status(node: Node) -> None:
    done = node.run("training", "ok")
    assert (done.returncode, done.stdout) == (0, "resume=nothing\n")
    assert (node.bucket / "step-10" / "weights").read_text() == "first\n"
    assert [path.name for path in (node.bucket / ".complete" / "step-10").iterdir()] == ["0-of-1"]
    run = node.bucket / ".runs" / "plan-0123456789abcdef0123-phase-1"
    assert (run / "exit-0").read_text() == "0\n"
    assert (run / "log-0").read_text() == "resume=nothing\n"


def test_a_run_resumes_from_the_newest_complete_checkpoint_whatever_number_of_nodes_wrote_it(node: Node) -> None:
    node.keep("step-9", nodes=2, of=2)
    node.keep("step-100", nodes=4, of=4)
    node.keep("step-200", nodes=3, of=4)
    done = node.run("training", "ok")
    assert done.stdout == f"resume={node.local}/step-100\n"
    assert (node.local / "step-100" / "weights").read_text() == "step-100"
    copied = [json.loads(line)[1:] for line in node.calls.read_text().splitlines() if json.loads(line)[0] == "copyto"]
    assert not any(words[0].endswith("/step-100") and words[0].startswith("/") for words in copied)


def test_a_failing_run_keeps_what_it_saved_and_says_its_own_status(node: Node) -> None:
    done = node.run("training", "fails")
    assert done.returncode == 3
    assert (node.bucket / "step-10" / "weights").exists()
    assert (node.bucket / ".runs" / "plan-0123456789abcdef0123-phase-1" / "exit-0").read_text() == "3\n"


@pytest.mark.parametrize(
    ("number", "status", "why"),
    [
        (signal.SIGTERM, 143, "this node was told to end"),
        (signal.SIGINT, 143, "this node was told to end"),
        (signal.SIGUSR1, 75, "the run limit of 10 h is near"),
    ],
)
def test_a_signal_has_the_run_save_a_last_checkpoint_and_says_how_to_go_on(
    node: Node, number: signal.Signals, status: int, why: str
) -> None:
    done = node.signalled(number, "training", "runs")
    assert done.returncode == status
    assert f"asking the run for a last checkpoint: {why}" in done.stderr
    assert "To go on from the newest checkpoint: bash run.sh" in done.stderr
    assert (node.bucket / ".complete" / "step-900" / "0-of-1").exists()
    again = node.run("training", "ok", GPUPLAN_RUN="again")
    assert again.stdout == f"resume={node.local}/step-900\n"


def test_the_run_is_asked_before_the_limit(node: Node) -> None:
    done = node.run("training", "runs", str(node.folder / "limit"))
    assert done.returncode == 75
    assert 36_000 - 900 - 60 < int((node.folder / "asked-for").read_text()) <= 36_000 - 900
    assert (node.bucket / "step-900" / "weights").read_text() == "last\n"


def test_a_run_that_does_not_save_is_ended_all_the_same(node: Node) -> None:
    done = node.signalled(signal.SIGUSR1, "training", "hangs", GPUPLAN_SAVE_SECONDS="1")
    assert done.returncode == 75


def test_the_limit_counts_from_the_first_start_of_a_run_and_anew_for_the_next(node: Node) -> None:
    run = node.bucket / ".runs" / "sky-7"
    run.mkdir(parents=True)
    (run / "started-0").write_text("1000000\n")
    done = node.run("training", "ok", GPUPLAN_RUN="sky-7")
    assert (done.returncode, done.stdout) == (75, "")
    assert "the run limit of 10 h has passed. To go on from the newest checkpoint: bash run.sh" in done.stderr
    assert node.run("training", "ok", GPUPLAN_RUN="sky-8").returncode == 0


def test_torchrun_is_left_alone_and_its_workers_are_asked(node: Node) -> None:
    launcher = node.folder / "bin" / "torchrun"
    launcher.write_text('#!/bin/bash\ntrap "echo KILLS ITS WORKERS" TERM\n"$@" & child=$!\nwait $child\n')
    launcher.chmod(0o755)
    done = node.signalled(signal.SIGTERM, "torchrun", "training", "runs")
    assert "KILLS" not in done.stdout
    assert (node.bucket / "step-900" / "weights").exists()


def test_the_placeholder_refuses_to_run(node: Node) -> None:
    done = node.run("training", "ok", GPUPLAN_CHECKPOINTS="SET_DATA_CHECKPOINTS")
    assert (done.returncode, done.stdout) == (78, "")
    assert "give the job data.checkpoints, or export again with --checkpoints s3://bucket/path" in done.stderr


def test_a_store_that_refuses_stops_the_run_before_it_starts_not_from_the_beginning(node: Node) -> None:
    (node.store / "REFUSES").write_text("")
    done = node.run("training", "ok")
    assert (done.returncode, done.stdout) == (74, "")
    assert "cannot read s3://bucket/a" in done.stderr


def test_a_last_checkpoint_that_is_not_kept_is_no_success(node: Node) -> None:
    training = node.folder / "bin" / "full"
    training.write_text(
        f'#!/bin/bash\ntraining ok\ntouch "{node.store}/REFUSES"\nmkdir "$GPUPLAN_CHECKPOINT_DIR/step-11"\n'
    )
    training.chmod(0o755)
    done = node.run("full")
    assert done.returncode == 74
    assert "THE LAST CHECKPOINT IS NOT KEPT" in done.stderr


def test_what_is_still_being_written_is_not_kept(node: Node) -> None:
    (node.local / "step-20.tmp").mkdir(parents=True)
    node.run("training", "ok")
    assert not (node.bucket / "step-20.tmp").exists()


@pytest.mark.parametrize(
    ("place", "remote"),
    [
        ("s3://bucket/a/b", ":s3,provider=AWS,env_auth,no_check_bucket:bucket/a/b"),
        ("gs://bucket", ":gcs,env_auth,bucket_policy_only,no_check_bucket:bucket"),
        (
            "abfs://runs@account1.dfs.core.windows.net/a/b",
            ":azureblob,account=account1,env_auth,no_check_container:runs/a/b",
        ),
        ("abfs://runs@account1.dfs.core.windows.net", ":azureblob,account=account1,env_auth,no_check_container:runs"),
    ],
)
def test_each_kind_of_bucket_is_one_remote_of_rclone(node: Node, place: str, remote: str) -> None:
    assert node.run("training", "ok", GPUPLAN_CHECKPOINTS=place).returncode == 0
    verb, source, target = json.loads(
        next(line for line in node.calls.read_text().splitlines() if json.loads(line)[0] == "copyto")
    )
    assert (verb, source, target) == ("copyto", f"{node.local}/step-10", f"{remote}/step-10")


def test_on_a_mounted_file_system_nothing_is_copied_and_the_newest_is_found_there(node: Node) -> None:
    # A path below /mnt is not for tests to write to, so the script is told another one.
    node.script = SCRIPT.replace("/mnt/*)", f"{node.local})")
    for name in ("step-9", "step-10", "step-11.tmp"):
        (node.local / name).mkdir(parents=True)
    done = node.run("training", "fails", GPUPLAN_CHECKPOINTS=str(node.local))
    assert done.stdout == f"resume={node.local}/step-10\n"
    assert not node.calls.exists()
    needed = node.run("training", "ok", GPUPLAN_CHECKPOINTS=str(node.local), GPUPLAN_MOUNT_IS_NEEDED="yes")
    assert needed.returncode == 78
    assert "is on the machine's own disk, which goes with it" in needed.stderr
