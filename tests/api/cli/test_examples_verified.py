"""The plans of the examples are verified: these are the first that a newcomer verifies."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.conftest import Ended

EXAMPLES = Path(__file__).parents[3] / "examples"
VERIFIED = ("llama-3-8b", "resnet-50")


@pytest.mark.slow(reason="verifies each plan against all node counts")
@pytest.mark.parametrize("name", VERIFIED)
def test_the_plan_of_an_example_is_verified(
    run: Callable[..., Ended], job_file: Callable[..., Path], name: str
) -> None:
    plan = run("plan", EXAMPLES / f"{name}.yaml", "--json")
    assert plan.code == 0
    verification = run("verify", job_file(plan.out, "plan.json"))
    assert (verification.code, verification.err) == (0, ""), verification.out
