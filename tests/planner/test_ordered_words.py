"""What is ordered, in words: machines are counted, a slice is one thing with its hosts."""

import pytest

from gpuplan.planner.model.outcome import ordered


@pytest.mark.parametrize(
    ("nodes", "hosts", "words"),
    [
        (4, None, "4 x p5.48xlarge"),
        (1024, 1, "1,024 x p5.48xlarge"),
        (32, 32, "p5.48xlarge (one slice, 32 hosts)"),
        (64, 32, "p5.48xlarge (2 slices, 64 hosts)"),
    ],
)
def test_hosts_of_a_slice_are_never_taken_for_so_many_slices(nodes: int, hosts: int | None, words: str) -> None:
    assert ordered("p5.48xlarge", nodes, hosts) == words
