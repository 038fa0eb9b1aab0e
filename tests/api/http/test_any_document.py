"""Whatever a document holds, the answer is a problem that names a field: drawn trees, and figures that cannot be."""

import json
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.api.schemas.job import JOB_EXAMPLE

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("figure", ["Infinity", "-Infinity", "NaN", "1e999", "9" * 400])
def test_a_claim_with_a_figure_that_cannot_be_is_refused_at_that_figure(client: httpx.Client, figure: str) -> None:
    claimed = client.post("/v1/plans", json=JOB_EXAMPLE).json()
    claimed["plan"]["phases"][0]["mfu"] = "HERE"
    answer = client.post("/v1/verify", content=json.dumps(claimed).replace('"HERE"', figure), headers=JSON)
    assert (answer.status_code, [error["pointer"] for error in answer.json()["errors"]]) == (
        422,
        ["/plan/phases/0/mfu"],
    )


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=12,
    )
)
@settings(max_examples=40)
def test_any_tree_at_all_is_refused_with_a_problem(client: httpx.Client, tree: Any) -> None:
    answer = client.post("/v1/plans", content=json.dumps(tree), headers=JSON)
    assert answer.status_code in {400, 422}
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert len(problem["detail"]) > 10
    assert answer.status_code == 400 or all(error["pointer"].startswith("/") for error in problem["errors"])
