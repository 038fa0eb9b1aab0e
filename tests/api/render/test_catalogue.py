"""The catalogue as a table: what a buyer must know of an offer besides its price."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("instance_type", "said"),
    [("tpu-v6e-16", "per host, 4 of them together"), ("tpu-v6e-8", ""), ("p4d.24xlarge", "")],
)
def test_the_price_of_a_slice_is_told_to_be_that_of_one_of_its_hosts(
    run: Callable[..., Any], instance_type: str, said: str
) -> None:
    listed = run("offers", "--instance-type", instance_type, "--kind", "on_demand").out
    rows = [line for line in listed.splitlines() if f" {instance_type} " in line]
    assert rows
    assert all(line.endswith(said) and ("per host" in line) == bool(said) for line in rows)
