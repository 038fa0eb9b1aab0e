"""A price file in JSON whose parts stand in another order than AWS writes them."""

import json
from typing import Any

import httpx
import pytest

from providers.aws.file_products import documents_of_json
from tests.providers.aws.price_documents import json_file, product


def documents(file: dict[str, Any]) -> list[dict[str, Any]]:
    return documents_of_json(httpx.Response(200, content=json.dumps(file).encode()))


@pytest.mark.parametrize("ordinary", [[], [product(sku="M5", instanceType="m5.large", gpu="")]])
def test_terms_that_come_before_the_products_are_joined_to_them(ordinary: list[dict[str, Any]]) -> None:
    file = json.loads(json_file([*ordinary, product()]))
    products_last = {name: file[name] for name in sorted(file, key=lambda name: name == "products")}
    assert list(products_last)[-1] == "products"
    assert documents(products_last) == documents(file)
    assert [list(each["terms"]) for each in documents(products_last)] == [["OnDemand", "Reserved"]]
