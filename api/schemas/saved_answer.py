"""Reads an answer for verification: the output of `gpuplan plan --json`, or a saved plan.

Its job and settings are read by the same rules as user input. Its figures are not checked here; that is the task of
the verification.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from gpuplan.api.schemas.job import JOB_EXAMPLE, parse_job, planned_job
from gpuplan.api.schemas.settings_file import SettingsFile, as_assumed
from gpuplan.catalog.parsing.document_fields import read_as
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.model.learned import NOTHING, AcceleratorCorrection, LearnedCorrections, Shift
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.verify.submitted_plan import SubmittedPlan

#: Key of an answer's body, by outcome.
PARTS = {"planned": "plan", "infeasible": "infeasible"}
#: Keys of every answer of this release.
COMMON = ("id", "job", "snapshot_id", "version", "settings", "start")
#: What earlier releases did, by the setting that they lack: prices as observed, and nodes lost independently.
EARLIER_SETTINGS = {"prices": "as-observed", "quotas": [], "node_loss_exponent": 1.0}
#: Most corrections: one per accelerator.
MOST_CORRECTIONS = 1000


class AnswerDocument(BaseModel):
    """The answer of `/v1/plans`, or its `plan` or `infeasible` alone: any document that has this form."""

    # Abbreviated, so it would not verify; a real one comes from `/v1/plans`.
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "outcome": "planned",
                    "plan": {"id": "plan-5cc3ddf113d641b9c615", "snapshot_id": "c7d92d374907", "job": JOB_EXAMPLE},
                    "meta": {"created_at": "2026-11-21T08:00:00Z"},
                }
            ]
        }
    )

    outcome: Literal["planned", "infeasible"] = "planned"
    plan: dict[str, JsonValue] = {}
    infeasible: dict[str, JsonValue] = {}
    meta: dict[str, JsonValue] = {}


def parse_answer(document: Mapping[str, Any]) -> SubmittedPlan:
    """Read the plan to verify.

    Raises `UnusableInput` at the field for a document that is not an answer of `gpuplan plan`, for missing keys, and for
    an invalid job or invalid settings.
    """
    part, body = _body(document)
    if infinite := [*_not_finite(body, (part,))]:
        raise UnusableInput(*(Fault(at, "is not a finite number; every figure of a plan is finite") for at in infinite))
    release = body.get("version")
    for name in COMMON:
        if name not in body:
            raise UnusableInput.at(part, name, message=f"is missing{_of(release)}; plan the job again to verify it")
    for name in ("id", "snapshot_id", "version", "start"):
        if not isinstance(body[name], str) or not body[name].isprintable() or len(body[name]) > 200:
            raise UnusableInput.at(part, name, message=f"{shown(body[name])} is not accepted; it is text in a plan")
    try:
        job = parse_job(planned_job(_mapping(body, "job", part)), now=datetime.now(UTC))
    except UnusableInput as error:
        raise _under(error, part, "job") from None
    if "start" not in body["job"] or job.start is None:
        raise UnusableInput.at(part, "job", "start", message="is missing; the job of a plan has a start")
    return SubmittedPlan(
        part=part,
        body=body,
        job=job,
        start=job.start,
        settings=_settings(_mapping(body, "settings", part), part, release),
        learned=_learned(body["learned"], part) if "learned" in body else NOTHING,
    )


def _body(document: Mapping[str, Any]) -> tuple[str, JsonObject]:
    outcome = document.get("outcome")
    if not isinstance(outcome, str) or outcome not in PARTS:
        raise UnusableInput.at(
            "outcome",
            message=f"{shown(outcome)} is not accepted; give the output of `gpuplan plan --json`, "
            f"whose outcome is {' or '.join(PARTS)}",
        )
    part = PARTS[outcome]
    body = document.get(part)
    if not isinstance(body, dict):
        message = f"{shown(body)} is not accepted; an answer that is {outcome} has a mapping here"
        raise UnusableInput.at(part, message=message)
    return part, body


def _not_finite(value: object, at: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """Paths of numbers that are not finite, which JSON cannot express."""
    if isinstance(value, float) and not math.isfinite(value):
        yield at
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _not_finite(inner, (*at, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _not_finite(inner, (*at, index))


def _mapping(body: JsonObject, name: str, part: str) -> JsonObject:
    value = body[name]
    if not isinstance(value, dict):
        raise UnusableInput.at(part, name, message=f"{shown(value)} is not accepted; it is a mapping in a plan")
    return value


def _settings(given: JsonObject, part: str, release: object) -> PlannerSettings:
    """The settings. Every assumption is required: a missing one would get today's default, not what the plan assumed."""
    given = EARLIER_SETTINGS | given
    for field in fields(PlannerSettings):
        if field.name not in given:
            message = f"is missing{_of(release)}, which lacks this assumption; plan the job again to verify it"
            raise UnusableInput.at(part, "settings", field.name, message=message)
    try:
        return as_assumed(read_as(SettingsFile, given))
    except UnusableInput as error:
        raise _under(error, part, "settings") from None


def _learned(given: object, part: str) -> LearnedCorrections:
    """The corrections learned from past runs, as in the plan."""
    at = (part, "learned")
    if not isinstance(given, dict) or not isinstance(given.get("corrections"), list):
        raise UnusableInput.at(*at, message=f"{shown(given)} is not accepted; it has task and corrections in a plan")
    rows, task = given["corrections"], given.get("task")
    if not isinstance(task, str) or not 0 < len(rows) <= MOST_CORRECTIONS:
        raise UnusableInput.at(*at, message="is not accepted; in a plan it has a task and its corrections")
    corrections = [_correction(row, (*at, "corrections", i)) for i, row in enumerate(rows)]
    if corrections[-1].accelerator:
        raise UnusableInput.at(*at, "corrections", message="lacks the last row; in a plan that one has no accelerator")
    return LearnedCorrections(task=task, corrections=tuple(corrections[:-1]), others=corrections[-1])


def _correction(row: object, at: tuple[str | int, ...]) -> AcceleratorCorrection:
    if not isinstance(row, dict):
        raise UnusableInput.at(*at, message=f"{shown(row)} is not accepted; it is a mapping in a plan")
    name = row.get("accelerator")
    if name is not None and not isinstance(name, str):
        raise UnusableInput.at(*at, "accelerator", message=f"{shown(name)} is not accepted; it is a name or null")
    removed = _number(row, "variance_removed", at, low=0.0, high=100.0)
    return AcceleratorCorrection(
        accelerator=name or "",
        hours=_shift(row, "hours", at),
        memory=_shift(row, "memory", at),
        variance_removed=removed,
    )


def _shift(row: JsonObject, what: str, at: tuple[str | int, ...]) -> Shift:
    factor = _number(row, f"{what}_factor", at, low=1e-3, high=1e3)
    return Shift(log=math.log(factor), runs=int(_number(row, f"{what}_runs", at, low=0, high=1e9)))


def _number(row: JsonObject, name: str, at: tuple[str | int, ...], *, low: float, high: float) -> float:
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        message = f"{shown(value)} is not accepted; it is a number from {low:g} to {high:g} in a plan"
        raise UnusableInput.at(*at, name, message=message)
    return float(value)


def _under(error: UnusableInput, *path: str) -> UnusableInput:
    """The error with its path in the answer; the planner's own errors already name the settings."""
    return error.under(*path)


def _of(release: object) -> str:
    return f": the plan was made by gpuplan {release}" if isinstance(release, str) and release else ""
