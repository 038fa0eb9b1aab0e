"""A counted module as a job document, checked as any job is before a line of it is written."""

import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from api.documents.job import parse_job
from api.profile import counts
from api.profile.child import run_counter
from catalog.errors import UnusableInput
from catalog.quantities import count
from planner.estimate.states import parameter_bytes
from planner.job import TrainingJob
from planner.workload import work_of


def counted_job(
    request: dict[str, Any],
    *,
    python: str,
    timeout_seconds: float,
    amounts: dict[str, str | None],
    job: dict[str, Any],
) -> tuple[dict[str, Any], list[str], float]:
    """The job document, what to say about it, and GiB of weights, gradients and optimizer state.

    `amounts` are samples and global_batch as text; `job` the rest of the document. Raises
    `UnusableInput` for what cannot be counted or makes no job.
    """
    given = {name: _amount(name, text) for name, text in amounts.items()}
    total, batch = given["samples"], given["global_batch"]
    if total and batch and batch > total:
        raise UnusableInput.at(
            "global_batch", message=f"{batch:g} is more than --samples, {total:g}; give at most that"
        )
    result = run_counter(request, python=python, timeout_seconds=timeout_seconds)
    workload, said = counts.workload(
        result | {"stated_batch": request["batch"]},
        model=request["target"],
        samples=total,
        global_batch=batch,
    )
    document = {"name": job["name"], "workload": workload} | {name: value for name, value in job.items() if value}
    parsed = parse_job(document, now=datetime.now(UTC))
    return document, said, _states_gib(parsed)


def _states_gib(job: TrainingJob) -> float:
    """In 16-bit training, or 32-bit where the job says so; on one device, not sharded."""
    work = work_of(job.workload, job.training)
    element = np.array([4.0 if job.training.precision in {"fp32", "tf32"} else 2.0])
    each = parameter_bytes(job.training, element)
    per_parameter = float((each.weights + each.gradients + each.optimizer)[0])
    return (per_parameter * work.trainable_parameters + work.frozen_parameter_bytes) / 2**30


def _amount(name: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return count(text)
    except ValueError as error:
        raise UnusableInput.at(name, message=str(error)) from None


def write_job(path: Path, document: dict[str, Any], command: str) -> None:
    """Write the job file whole or not at all. Raises `UnusableInput` at "output" where it cannot be written."""
    text = f"# Counted by: {command}\n" + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=10_000)
    try:
        handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(unfinished).chmod(0o644)
        Path(unfinished).replace(path)
    except OSError as error:
        raise UnusableInput.at("output", message=f"{path} cannot be written: {error.strerror or error}") from error
