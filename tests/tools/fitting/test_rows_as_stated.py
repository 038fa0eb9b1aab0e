"""What rows of measured runs say of lengths and of host memory, and how it is read."""

import pytest

from gpuplan.planner.model.job import OFFLOADED
from tools.fitting.measured_runs import Run, runs


@pytest.fixture(scope="module")
def by_id() -> dict[str, Run]:
    groups = {"nv-dle", "bigscience-v100"}
    return {run.row["id"]: run for run in runs() if run.row["group"] in groups}


def test_berts_long_samples_are_as_long_as_their_bins(by_id: dict[str, Run]) -> None:
    binned = by_id["nv-dle-0052"]
    assert binned.work.units_per_sample == 288
    # 264 sequences a second of 512 tokens would be more than four fifths of the dense peak of an A100.
    assert 264 * 512 * binned.work.flops_per_unit > 0.8 * 312e12
    assert binned.per_accelerator == 264 * 288
    unbinned = [run for run in by_id.values() if run.row["notes"].startswith("TensorFlow2 pretrain")]
    assert {run.row["seq_len"] for run in unbinned} >= {"128", "512"}
    assert "288" not in {run.row["seq_len"] for run in unbinned}


def test_what_notes_place_in_host_memory_is_there(by_id: dict[str, Run]) -> None:
    everything, optimizer, nothing = (by_id[f"bigscience-v100-00{index}"].training for index in (47, 72, 68))
    assert (everything.offload, everything.activation_checkpointing) == ("parameters", OFFLOADED)
    assert (optimizer.offload, optimizer.activation_checkpointing) == ("optimizer", "auto")
    assert nothing.offload == "none"
