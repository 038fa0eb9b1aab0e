"""Phrases that answers share."""

import pytest

from gpuplan.api.presentation.phrases import name_in_list
from gpuplan.catalog.parsing.json_object import JsonObject

LLAMA = {"kind": "preset", "model": "llama-3-8b", "tokens": 3e11}


@pytest.mark.parametrize(
    ("job", "shown"),
    [
        ({"name": "llama-3-8b", "workload": LLAMA}, "llama-3-8b, 300B tokens"),
        (
            {"name": "llama-3-8b", "workload": LLAMA | {"tokens": 2e8}, "training": {"method": "lora"}},
            "llama-3-8b, 200M tokens, lora",
        ),
        ({"name": "nightly", "workload": LLAMA}, "nightly"),
        ({"name": "resnet-50", "workload": {"model": "resnet-50", "samples": 1.15e8}}, "resnet-50, 115M samples"),
        ({"name": "job", "workload": {"kind": "explicit", "total_flops": 1.2e22}}, "job, 1.2e+22 FLOPs"),
    ],
)
def test_a_job_without_a_name_of_its_own_is_told_apart_in_a_list(job: JsonObject, shown: str) -> None:
    assert name_in_list({"training": {"method": "full"}} | job) == shown
