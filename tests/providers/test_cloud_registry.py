"""Clouds are registered by name, and imported only when their provider is made."""

import subprocess
import sys

import pytest

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.providers.cloud_registry import chosen_clouds, cloud_names

KNOWN = ("aws", "azure", "gcp")


def test_the_three_clouds_are_found_without_importing_any() -> None:
    code = "import sys; from gpuplan.providers.cloud_registry import cloud_names; print(*cloud_names(), *(m for m in sys.modules if m.startswith('gpuplan.providers.a')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    listed = ["hyperstack", "lambda", "nebius", "oci", "runpod", "scaleway", "vast", "verda"]
    assert done.stdout.split() == [*KNOWN, *listed]
    assert cloud_names() == (*KNOWN, *listed)


def test_all_clouds_are_asked_unless_some_are_named() -> None:
    assert chosen_clouds(None, KNOWN) == KNOWN
    assert chosen_clouds(["gcp", " AWS", "gcp"], KNOWN) == ("gcp", "aws")


def test_a_provider_that_shows_nothing_without_its_key_is_asked_only_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAMBDA_API_KEY", raising=False)
    assert chosen_clouds(None, ("aws", "lambda")) == ("aws",)
    assert chosen_clouds(["lambda"], ("aws", "lambda")) == ("lambda",)
    monkeypatch.setenv("LAMBDA_API_KEY", "secret")
    assert chosen_clouds(None, ("aws", "lambda")) == ("aws", "lambda")


def test_a_provider_with_public_prices_is_asked_if_its_endpoint_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen_clouds(None, ("aws", "oci", "lambda")) == ("aws",)
    monkeypatch.setenv("GPUPLAN_OCI_ENDPOINT", "https://prices.example.com")
    monkeypatch.setenv("GPUPLAN_LAMBDA_ENDPOINT", "https://lambda.example.com")
    assert chosen_clouds(None, ("aws", "oci", "lambda")) == ("aws", "oci")


@pytest.mark.parametrize("wanted", [["oracle"], [], ["aws", ""]])
def test_an_unknown_cloud_is_refused_with_those_that_are_known(wanted: list[str]) -> None:
    with pytest.raises(UnusableInput, match=r"provider: .*; accepted: aws, azure, gcp"):
        chosen_clouds(wanted, KNOWN)
