"""Answers as doors print them, on small catalogues whose ids are the hashes of their rows, and ways to tamper with them."""

import copy
import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gpuplan.api.schemas.canonical_job import canonical
from gpuplan.catalog.model.capacity_answers import CapacityAnswers
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.runtime.errors import Fault
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.catalog.snapshots.snapshot import snapshot_of
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.plan import Plan
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.model.verification import Verification
from gpuplan.planner.model.wire import wire
from gpuplan.planner.performance.past_runs import PastRun
from gpuplan.planner.planning import plan
from gpuplan.planner.serialization.content_ids import inventory_id
from gpuplan.planner.serialization.plan_document import answer_body
from gpuplan.planner.verify.submitted_plan import SubmittedPlan
from gpuplan.planner.verify.verification import verified
from tests.planner.small_catalogues import random_columns

Document = dict[str, Any]
Path = tuple[str | int, ...]
SETTINGS = PlannerSettings(least_saving_of_a_move_percent=0.0)


def snapshot_columns(types: list[InstanceType], offers: list[Offer]) -> Columns:
    """Columns whose id is the hash of the rows, as those of a store are."""
    snapshot = snapshot_of(types, offers)
    return columns_of(snapshot.id, snapshot.observed_at, snapshot.instance_types, snapshot.offers)


def small_columns(draw: random.Random, *, types: int = 2, offers: int = 12) -> Columns:
    """A small catalogue."""
    columns = random_columns(draw, types=types, offers=offers)
    return snapshot_columns(list(columns.instance_types), list(columns.offers))


def answer_of(
    job: TrainingJob,
    columns: Columns,
    *,
    settings: PlannerSettings = SETTINGS,
    owned: tuple[OwnedMachine, ...] = (),
    past_runs: tuple[PastRun, ...] = (),
    capacity: CapacityAnswers | None = None,
) -> Document:
    """The answer as JSON gives it back."""
    outcome = plan(job, columns, settings=settings, owned=owned, past_runs=past_runs, frontier=True, capacity=capacity)
    body = answer_body(outcome, canonical(job), version="0.1.0", inventory=inventory_id(owned))
    part = "plan" if isinstance(body, Plan) else "infeasible"
    shown = {"outcome": "planned" if part == "plan" else part, part: wire(body)}
    printed: Document = json.loads(json.dumps(shown, allow_nan=False))
    return printed


def part_of(answer: Document) -> str:
    return "plan" if answer["outcome"] == "planned" else "infeasible"


def checked(
    answer: Document,
    job: TrainingJob,
    columns: Columns,
    *,
    settings: PlannerSettings = SETTINGS,
    owned: tuple[OwnedMachine, ...] = (),
) -> Verification:
    """The answer verified."""
    part = part_of(answer)
    assert job.start is not None
    submitted_plan = SubmittedPlan(part=part, body=answer[part], job=job, start=job.start, settings=settings)
    return verified(submitted_plan, columns, owned=owned)


def tampered(answer: Document, path: Path, value: object) -> Document:
    """The same answer with another value at a path of its body, and an id to match, as a forger would give it."""
    changed_answer = copy.deepcopy(answer)
    parent = changed_answer[part_of(answer)]
    for part in path[:-1]:
        parent = parent[part]
    parent[path[-1]] = value
    return with_id(changed_answer)


def with_id(answer: Document) -> Document:
    """The answer under the id that its contents hash to."""
    part = part_of(answer)
    rest = {name: value for name, value in answer[part].items() if name != "id"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    prefix = "plan" if part == "plan" else "none"
    return answer | {part: {"id": f"{prefix}-{digest[:20]}"} | rest}


def numbers(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every number and every amount of money in a document, with its path."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from numbers(item, (*path, name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from numbers(item, (*path, number))
    elif (isinstance(value, int | float) and not isinstance(value, bool)) or _is_money(path, value):
        yield path, value


def _is_money(path: Path, value: object) -> bool:
    name = next((part for part in reversed(path) if isinstance(part, str)), "")
    return (
        isinstance(value, str)
        and ("usd" in str(path) or "usd" in name)
        and value.replace(".", "").lstrip("-").isdigit()
    )


def changed(value: Any) -> Any:
    """Another number of the same kind, a per mille or one off."""
    if isinstance(value, str):
        return f"{float(value) * 1.001 + 0.01:.6f}"
    if isinstance(value, int):
        return value + 1
    return value * 1.001 + 0.001 if value < 0.9 or value > 1 else value * 0.999


def names(verification: Verification) -> set[str]:
    """The figures that are wrong."""
    return {finding.figure for finding in verification.wrong}


def figure(path: Path) -> str:
    """A path as verifications name it."""
    return Fault(path, "").field


def on_all_nodes(job: TrainingJob, **changes: Any) -> TrainingJob:
    """The job with other constraints."""
    return replace(job, constraints=replace(job.constraints, **changes))
