"""What is found of no run within the node counts searched is told as that: more nodes may meet it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import Ended

Run = Callable[..., Ended]
JobFile = Callable[..., Path]

#: In time on 32 nodes of A10G and not on 4.
FAR = {
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "2B", "sequence_length": 4096},
    "training": {"method": "lora", "precision": "bf16", "parallelism": "any"},
    "start": "2026-11-21T12:00Z",
    "deadline": "12h",
}


def on(max_nodes: int) -> dict[str, Any]:
    limits = {"providers": ["aws"], "accelerators": ["A10G"], "price_kinds": ["on_demand"], "max_phases": 1}
    return FAR | {"constraints": limits | {"max_nodes": max_nodes}}


def test_what_only_more_nodes_than_were_searched_meet_is_not_told_as_a_contradiction(
    run: Run, job_file: JobFile
) -> None:
    assert run("plan", job_file(on(64))).code == 0
    none = run("plan", job_file(on(1)))
    assert none.code == 4
    conflict = "constraints.accelerators and deadline: no configuration within 4 nodes meets both"
    assert conflict in " ".join(none.out.split())
    details = run("plan", job_file(on(1)), "--details")
    assert conflict in " ".join(details.out.split())
    assert "on up to 4 nodes (a larger max_nodes widens the search)" in " ".join(details.out.split())


@pytest.mark.slow(reason="one long case")
def test_an_answer_carries_how_many_nodes_were_searched_and_verify_holds_it_to_that(
    run: Run, job_file: JobFile
) -> None:
    answer = run("plan", job_file(on(1)), "--json").out
    assert json.loads(answer)["infeasible"]["searched_nodes"] == 4
    assert run("verify", job_file(answer, "none.json")).code == 0
    forged = run("verify", job_file(answer.replace('"searched_nodes": 4', '"searched_nodes": 4096'), "forged.json"))
    assert forged.code == 4
    assert "searched_nodes" in forged.out


@pytest.mark.slow(reason="one long case")
def test_no_more_nodes_are_offered_than_a_job_may_have(run: Run, job_file: JobFile) -> None:
    hopeless = on(4096) | {"deadline": "5min"}
    none = run("plan", job_file(hopeless), "--details")
    assert none.code == 4
    assert "within 4,096 nodes" in none.out
    assert "on up to 4,096 nodes (the most that a job may have)" in " ".join(none.out.split())


def test_why_and_replan_say_within_how_many_nodes_they_looked(run: Run, job_file: JobFile) -> None:
    why = run("why", job_file(on(1) | {"deadline": "12h"}), "--not", "A10G")
    assert "within 4 nodes" in why.out
    moved = run("replan", job_file(on(1)), "--done", "0", "--now", "2026-11-21T13:00Z")
    assert "within 4 nodes" in moved.out
