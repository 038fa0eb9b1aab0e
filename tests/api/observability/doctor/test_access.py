"""Whom a service will let in: the examination refuses what `gpuplan serve` refuses, and nothing else."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.ports import free_port


@pytest.fixture
def access(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, database_url: str
) -> Callable[..., dict[str, str]]:
    """What is found of access where the service is to listen at a host."""
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", database_url)

    def examine(host: str) -> dict[str, str]:
        answer = json.loads(run("doctor", "--host", host, "--port", str(free_port()), "--json").out)
        [access_finding] = [finding for finding in answer["findings"] if finding["name"] == "access"]
        assert access_finding["status"] != "broken" or answer["outcome"] == "broken"
        return dict(access_finding)

    return examine


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_service_for_this_machine_alone_needs_no_key(access: Callable[..., dict[str, str]], host: str) -> None:
    assert access(host)["status"] == "ok"


def test_a_service_for_others_is_broken_until_a_key_lets_somebody_in(
    access: Callable[..., dict[str, str]], run: Callable[..., Any]
) -> None:
    before = access("0.0.0.0")
    assert before["status"] == "broken"
    assert "'0.0.0.0'" in before["found"]
    assert "gpuplan keys create" in before["advice"]
    made = run("keys", "create", "--name", "ops", "--scope", "admin", "--json")
    assert access("0.0.0.0")["status"] == "ok"
    assert run("keys", "revoke", json.loads(made.out)["id"]).code == 0
    assert access("0.0.0.0")["status"] == "broken", "a revoked key lets nobody in"
