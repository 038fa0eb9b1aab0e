"""The catalogue as a table: what a buyer must know of an offer besides its price."""

import json
from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("instance_type", "ending"),
    [("tpu-v6e-16", "per host, rented as 4 together"), ("tpu-v6e-8", ""), ("p4d.24xlarge", "")],
)
def test_the_price_of_a_slice_is_told_to_be_that_of_one_of_its_hosts(
    run: Callable[..., Any], instance_type: str, ending: str
) -> None:
    listed = run("offers", "--instance-type", instance_type, "--kind", "on_demand").out
    rows = [line for line in listed.splitlines() if f" {instance_type} " in line]
    assert rows
    assert all(line.endswith(ending) and ("per host" in line) == bool(ending) for line in rows)


def test_a_machine_that_is_sold_to_some_accounts_alone_says_so(run: Callable[..., Any]) -> None:
    listed = run("offers", "--instance-type", "p3.2xlarge", "--kind", "on_demand", "--region", "us-east-1").out
    assert "only for accounts that already use it" in " ".join(listed.split())
    answer = json.loads(run("offers", "--instance-type", "p3.2xlarge", "--format", "json").out)
    assert {"only for accounts" in offer["sale_notice"] for offer in answer["offers"]} == {True}
