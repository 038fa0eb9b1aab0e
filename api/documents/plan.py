"""An answer read back: what `gpuplan plan --json` printed, or a plan that was saved, for whoever wants to verify it.

The job and the settings in it are read by the same rules as those of users. The figures stay as they stand: it is for
the verification to say which of them are wrong.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from api.documents.job import parse_job
from api.settings import SettingsFile, as_assumed
from catalog.document_fields import read_as
from catalog.errors import Fault, UnusableInput
from catalog.quantities import shown
from planner.estimate.learned import NOTHING, Correction, Learned, Shift
from planner.settings import PlannerSettings
from planner.verify.claim import Claim

#: Where the body of an answer stands, by its outcome.
PARTS = {"planned": "plan", "infeasible": "infeasible"}
#: What every answer of this release has, whatever came of it.
COMMON = ("id", "job", "snapshot_id", "version", "settings", "start")
#: More corrections than there are accelerators mean nothing.
MOST_CORRECTIONS = 1000


def parse_answer(document: Mapping[str, Any]) -> Claim:
    """The claim that a document makes.

    Raises `UnusableInput` at the field for what is no answer of `gpuplan plan`, lacks what one has, or holds a job or
    settings that nobody could have asked for.
    """
    part, body = _body(document)
    if infinite := [*_not_finite(body, (part,))]:
        raise UnusableInput(
            *(Fault(at, "is no number that can be; every figure of a plan is finite") for at in infinite)
        )
    release = body.get("version")
    for name in COMMON:
        if name not in body:
            raise UnusableInput.at(part, name, message=f"is missing{_of(release)}; plan the job again to verify it")
    for name in ("id", "snapshot_id", "version", "start"):
        if not isinstance(body[name], str) or not body[name].isprintable() or len(body[name]) > 200:
            raise UnusableInput.at(part, name, message=f"{shown(body[name])} is not accepted; it is text in a plan")
    try:
        job = parse_job(_mapping(body, "job", part), now=datetime.now(UTC))
    except UnusableInput as error:
        raise _under(error, part, "job") from None
    if "start" not in body["job"] or job.start is None:
        raise UnusableInput.at(part, "job", "start", message="is missing; the job of a plan says when it starts")
    return Claim(
        part=part,
        body=body,
        job=job,
        start=job.start,
        settings=_settings(_mapping(body, "settings", part), part, release),
        learned=_learned(body["learned"], part) if "learned" in body else NOTHING,
    )


def _body(document: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    outcome = document.get("outcome")
    if not isinstance(outcome, str) or outcome not in PARTS:
        raise UnusableInput.at(
            "outcome",
            message=f"{shown(outcome)} is not accepted; give an answer as `gpuplan plan --json` prints it, "
            f"whose outcome is {' or '.join(PARTS)}",
        )
    part = PARTS[outcome]
    body = document.get(part)
    if not isinstance(body, dict):
        message = f"{shown(body)} is not accepted; an answer that is {outcome} has a mapping here"
        raise UnusableInput.at(part, message=message)
    return part, body


def _not_finite(value: object, at: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """Where figures stand that JSON has no word for, and so no answer could repeat."""
    if isinstance(value, float) and not math.isfinite(value):
        yield at
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _not_finite(each, (*at, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _not_finite(each, (*at, index))


def _mapping(body: dict[str, Any], name: str, part: str) -> dict[str, Any]:
    value = body[name]
    if not isinstance(value, dict):
        raise UnusableInput.at(part, name, message=f"{shown(value)} is not accepted; it is a mapping in a plan")
    return value


def _settings(given: dict[str, Any], part: str, release: object) -> PlannerSettings:
    """Every assumption must be there: one that is missing would be taken at today's default."""
    for field in fields(PlannerSettings):
        if field.name not in given:
            message = f"is missing{_of(release)}, which had no such assumption; plan the job again to verify it"
            raise UnusableInput.at(part, "settings", field.name, message=message)
    try:
        return as_assumed(read_as(SettingsFile, given))
    except UnusableInput as error:
        raise _under(error, part, "settings") from None


def _learned(given: object, part: str) -> Learned:
    """What past runs had taught, as the plan shows it."""
    at = (part, "learned")
    if not isinstance(given, dict) or not isinstance(given.get("corrections"), list):
        raise UnusableInput.at(*at, message=f"{shown(given)} is not accepted; it has task and corrections in a plan")
    rows, task = given["corrections"], given.get("task")
    if not isinstance(task, str) or not 0 < len(rows) <= MOST_CORRECTIONS:
        raise UnusableInput.at(*at, message="is not accepted; it names a task and the corrections of it in a plan")
    found = [_correction(row, (*at, "corrections", i)) for i, row in enumerate(rows)]
    if found[-1].accelerator:
        raise UnusableInput.at(*at, "corrections", message="lacks the last row, which has no accelerator in a plan")
    return Learned(task=task, corrections=tuple(found[:-1]), others=found[-1])


def _correction(row: object, at: tuple[str | int, ...]) -> Correction:
    if not isinstance(row, dict):
        raise UnusableInput.at(*at, message=f"{shown(row)} is not accepted; it is a mapping in a plan")
    name = row.get("accelerator")
    if name is not None and not isinstance(name, str):
        raise UnusableInput.at(*at, "accelerator", message=f"{shown(name)} is not accepted; it is a name or null")
    removed = _number(row, "variance_removed", at, low=0.0, high=100.0)
    return Correction(
        accelerator=name or "",
        hours=_shift(row, "hours", at),
        memory=_shift(row, "memory", at),
        variance_removed=removed,
    )


def _shift(row: dict[str, Any], what: str, at: tuple[str | int, ...]) -> Shift:
    factor = _number(row, f"{what}_factor", at, low=1e-3, high=1e3)
    return Shift(log=math.log(factor), runs=int(_number(row, f"{what}_runs", at, low=0, high=1e9)))


def _number(row: dict[str, Any], name: str, at: tuple[str | int, ...], *, low: float, high: float) -> float:
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        message = f"{shown(value)} is not accepted; it is a number from {low:g} to {high:g} in a plan"
        raise UnusableInput.at(*at, name, message=message)
    return float(value)


def _under(error: UnusableInput, *path: str) -> UnusableInput:
    """The fault at its place in the answer; the planner's own faults name the settings already."""
    return error.under(*path)


def _of(release: object) -> str:
    return f": the plan was made by gpuplan {release}" if isinstance(release, str) and release else ""
