"""A price file in JSON whose parts stand in another order than AWS writes them."""

import json
from typing import Any

import httpx
import pytest

from gpuplan.providers.aws.priced_files import documents_of_json
from tests.providers.aws.price_documents import json_file, product


def documents(file: dict[str, Any]) -> list[dict[str, Any]]:
    return documents_of_json(httpx.Response(200, content=json.dumps(file).encode()))


@pytest.mark.parametrize("count", [1, 400], ids=["in one chunk", "in many chunks"])
@pytest.mark.parametrize("accelerated", [True, False], ids=["accelerated first", "ordinary first"])
def test_terms_that_come_before_the_products_are_joined_to_them(count: int, accelerated: bool) -> None:
    ordinary = [product(sku="M5", instanceType="m5.large", gpu="")]
    machines = [product(sku=f"P{number}") for number in range(count)]
    file = json.loads(json_file([*machines, *ordinary] if accelerated else [*ordinary, *machines]))
    products_last = {name: file[name] for name in sorted(file, key=lambda name: name == "products")}
    assert list(products_last)[-1] == "products"
    assert documents(products_last) == documents(file)
    assert [[*document["terms"]["OnDemand"].values()] != [] for document in documents(products_last)] == [True] * count
