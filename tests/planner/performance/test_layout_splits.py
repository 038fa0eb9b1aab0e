"""The family of layouts: every split that the documentation names, and no other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.planner.performance.estimator_request import LayoutRequest
from gpuplan.planner.performance.layout_splits import Limits, splits_of

CLUSTERS = st.tuples(st.sampled_from((1, 2, 4, 6, 8, 16)), st.integers(1, 130), st.sampled_from((1, 4, 8, 72)))


def splits_by_hand(limits: Limits, gpus: int, fast: int) -> set[tuple[int, int, int, int]]:
    """(data, tensor, pipeline, context) of one cluster, by loops over all numbers."""
    splits = set()
    for tensor in (1, 2, 4, 8):
        if tensor > fast or gpus % tensor or limits.heads % tensor:
            continue
        widest = max(power for power in (1, 2, 4, 8) if power <= fast // tensor)
        contexts = {1, widest, max(1, widest // 2)} if limits.splits_sequence else {1}
        for pipeline in range(1, min(64, limits.layers) + 1):
            for context in contexts if pipeline in (1, 2, 4, 8) else {1}:
                if gpus % (tensor * pipeline * context) == 0:
                    splits.add((gpus // (tensor * pipeline * context), tensor, pipeline, context))
    return splits


@pytest.mark.slow(reason="one long case")
@given(
    clusters=st.lists(CLUSTERS, min_size=1, max_size=5),
    heads=st.sampled_from((1, 12, 32, 40)),
    layers=st.sampled_from((1, 12, 61, 126)),
    experts=st.sampled_from((1, 8, 384)),
    long=st.booleans(),
)
def test_every_split_of_the_family_is_timed(
    clusters: list[tuple[int, int, int]], heads: int, layers: int, experts: int, long: bool
) -> None:
    limits = Limits(heads=heads, layers=layers, experts=experts, splits_sequence=long)
    devices, nodes, link = (np.array(column, np.int64) for column in zip(*clusters, strict=True))
    domain = np.maximum(devices, link)
    splits = splits_of(limits, devices, nodes, domain, LayoutRequest())
    assert (np.diff(splits.row) >= 0).all()
    for number in range(len(clusters)):
        mine = np.flatnonzero(splits.row == number)
        ways = (splits.data, splits.tensor, splits.pipeline, splits.context)
        tried = list(zip(*(way[mine].astype(int).tolist() for way in ways), strict=True))
        assert set(tried) == splits_by_hand(limits, int(devices[number] * nodes[number]), int(domain[number]))
        for at in mine.tolist():
            ranks, expert = int(splits.data[at] * splits.context[at]), int(splits.expert[at])
            able = [ways for ways in range(1, experts + 1) if experts % ways == 0 and ranks % ways == 0]
            near = [ways for ways in able if ways <= domain[number] // splits.tensor[at]]
            assert expert in {max(near), max(able)}
        assert len(tried) == len(set(tried)) or experts > 1


def test_a_request_is_kept() -> None:
    limits = Limits(heads=32, layers=80, experts=1, splits_sequence=False)
    asked = LayoutRequest(tensor=8, pipeline=5)
    splits = splits_of(limits, np.array([8]), np.array([15]), np.array([8]), asked)
    assert (splits.data.tolist(), splits.tensor.tolist(), splits.pipeline.tolist()) == ([3.0], [8.0], [5.0])
