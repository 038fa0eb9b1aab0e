"""Every whole number of nodes that a job allows is a candidate, on every machine that works in a cluster."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.planner.candidates.machine_shapes import shapes_of
from gpuplan.planner.candidates.node_counts import machine_candidates
from tests.planner.small_catalogues import random_types

SHAPES = shapes_of(tuple(random_types(random.Random("machine rows"), 12)))


@pytest.mark.slow(reason="one long case")
@given(st.sets(st.integers(0, len(SHAPES) - 1)), st.integers(1, 600))
def test_every_node_count_up_to_the_most_allowed_is_a_row(wanted: set[int], most: int) -> None:
    rows = machine_candidates(SHAPES, tuple(sorted(wanted)), most)
    expected = []
    for shape in sorted(wanted):
        hosts = int(SHAPES.fixed_nodes[shape])
        if hosts:
            counts = [hosts] if hosts <= most else []
        else:
            counts = list(range(1, most + 1)) if SHAPES.clusters[shape] else [1]
        expected += [(shape, count) for count in counts]
    assert list(zip(rows.shape.tolist(), rows.nodes.tolist(), strict=True)) == expected
    assert np.array_equal(rows.machines.nodes[rows.row], rows.nodes)
    assert all(
        rows.shape[rows.first[shape] : rows.first[shape + 1]].tolist()
        == [shape] * (rows.first[shape + 1] - rows.first[shape])
        for shape in range(len(SHAPES))
    )
