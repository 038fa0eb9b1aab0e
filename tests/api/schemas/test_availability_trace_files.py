"""Availability traces as files: the public format and ours, and every way to get them wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.schemas.availability_trace_files import MOST_PROBES, distinct, parse_traces, read_traces
from gpuplan.catalog.runtime.errors import UnusableInput

GAP = {"metadata": {"gap_seconds": 600}}


def test_the_public_format_is_read_with_the_files_name() -> None:
    (trace,) = parse_traces(GAP | {"data": [0, 1, 1, 0]}, name="us-west-2a_v100_1")
    assert trace.name == "us-west-2a_v100_1"
    assert trace.hours == pytest.approx(4 / 6)
    assert trace.up(1, 1 / 6).tolist() == [False, True, True, False]


def test_counts_are_up_where_all_nodes_can_be_had() -> None:
    (trace,) = parse_traces(GAP | {"data": [4, 3, 4]}, name="x")
    assert trace.up(4, 1 / 6).tolist() == [True, False, True]


def test_several_zones_may_share_a_file() -> None:
    traces = parse_traces(GAP | {"zones": {"a": [1], "b": [0]}}, name="x")
    assert [trace.name for trace in traces] == ["a", "b"]


def test_a_coarser_grid_never_invents_availability() -> None:
    (trace,) = parse_traces(GAP | {"data": [1, 1, 1, 0, 1, 1]}, name="x")
    assert trace.up(1, 0.5).tolist() == [True, False]
    # 15 minutes do not line up with probes every ten: each step asks all probes that it touches.
    assert trace.up(1, 0.25).tolist() == [True, True, False, True]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([1, 2], "is not a trace; write"),
        ({"data": [1]}, "metadata.gap_seconds: None is not accepted"),
        ({"metadata": {"gap_seconds": 0}, "data": [1]}, "metadata.gap_seconds: 0 is not accepted"),
        (GAP, "data: None is not accepted"),
        (GAP | {"data": []}, r"data: \[\] is not accepted"),
        (GAP | {"data": [1, -1]}, r"data\[1\]: -1 is not accepted; write 0 or 1"),
        (GAP | {"data": [1, 0.5]}, r"data\[1\]: 0.5 is not accepted"),
        (GAP | {"data": [1], "name": ""}, "name: '' is not accepted"),
        (GAP | {"zones": {}}, "zones: {} is not accepted"),
        (GAP | {"zones": {"a": ["x"]}}, r"zones.a\[0\]: 'x' is not accepted"),
        (GAP | {"data": [1] * (MOST_PROBES + 1)}, "data: 3000001 probes are too many"),
    ],
)
def test_a_bad_trace_is_refused_by_field(document: Any, message: str) -> None:
    with pytest.raises(UnusableInput, match=message):
        parse_traces(document, name="x")


def test_a_file_that_is_no_trace_is_refused_by_name(tmp_path: Path) -> None:
    bad, missing, deep = tmp_path / "bad.json", tmp_path / "missing.json", tmp_path / "deep.json"
    bad.write_text("{")
    deep.write_text("[" * 100_000)
    for path, message in (
        (bad, "traces: bad.json is not JSON"),
        (missing, "traces: cannot read"),
        (deep, "deep.json is not JSON"),
    ):
        with pytest.raises(UnusableInput, match=message):
            read_traces(path, field="traces")


def test_one_zone_twice_is_refused() -> None:
    traces = parse_traces(GAP | {"data": [1]}, name="x")
    with pytest.raises(UnusableInput, match="traces: 'x' is given twice"):
        distinct(traces + traces, field="traces")


@pytest.mark.shared_data
def test_every_public_trace_is_read(shared_data: Path) -> None:
    for path in sorted((shared_data / "spot" / "cant_be_late_traces").glob("*.json")):
        (trace,) = read_traces(path, field="traces")
        assert len(trace.available) == len(json.loads(path.read_text())["data"])
        assert 0 < trace.up(1, 1 / 12).mean() < 1
