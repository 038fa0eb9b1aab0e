"""Our calibration rows are the imported facts, each with its source."""

from pathlib import Path

import pytest

from tools.fitting.import_runs import FACTS, MEMORY, RUNS, comparison, imported, internode_gbps
from tools.fitting.measured_runs import rows


@pytest.mark.slow(reason="2 cases")
@pytest.mark.shared_data
@pytest.mark.parametrize("name", [RUNS, MEMORY])
def test_importing_again_gives_the_committed_bytes(name: str, shared_data: Path) -> None:
    assert imported(name, shared_data / "runs") == (FACTS / name).read_bytes()


@pytest.mark.parametrize("name", [RUNS, MEMORY])
def test_every_row_names_its_source_and_group(name: str) -> None:
    imported = rows(name)
    assert imported
    assert all(row["source"] and row["group"] for row in imported)


def test_all_rounds_of_one_organiser_and_both_megatron_stacks_are_families() -> None:
    families = {row["group"]: row["family"] for row in rows(RUNS)}
    assert {families[group] for group in families if group.startswith("mlperf")} == {"mlperf"}
    assert families["megatron-bridge"] == families["nemo-docs"] == families["megatron-papers"]


def test_times_to_train_are_compared_only_with_batches_of_like_size() -> None:
    row = {
        "throughput_unit": "minutes_to_train",
        "source_group": "mlperf-v1.1",
        "model": "ssd",
        "source": "",
        "notes": "",
    }
    row |= {"precision": "", "seq_len": ""}
    near, far = comparison(row | {"global_batch": "1024"}), comparison(row | {"global_batch": "8192"})
    assert near == comparison(row | {"global_batch": "2048"})
    assert near != far


@pytest.mark.parametrize(
    ("text", "gbps"),
    [
        ("400Gbps/node", "400"),
        ("8x ConnectX-7 IB NDR 400Gb/Sec", "3200"),
        ("Storage: 2x ConnectX-6 IB HDR 200Gb/sec, Compute: 8x ConnectX-6 HDR 200Gb/sec", "1600"),
        ("unknown", ""),
    ],
)
def test_the_fabric_of_a_node_is_all_its_computing_nics(text: str, gbps: str) -> None:
    assert internode_gbps(text) == gbps
