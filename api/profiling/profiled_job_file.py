"""Writes a counted module as a job file, after checking it like any other job."""

import os
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import numpy as np
import yaml

from gpuplan.api.profiling import workload_from_counts
from gpuplan.api.profiling.counter_process import run_counter
from gpuplan.api.schemas.job import parse_job
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import count
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.workloads import Profile
from gpuplan.planner.performance.training_states import parameter_bytes
from gpuplan.planner.workload import work_of


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWords:
    """What a user states beside the module: the words of a job file, unread; None is not stated."""

    name: str
    samples: str | None = None
    global_batch: str | None = None
    deadline: str | None = None
    budget_usd: str | None = None
    precision: str | None = None
    optimizer: str | None = None

    def document(self, workload: JsonObject) -> JsonObject:
        """The job file with the counted workload."""
        training = {"precision": self.precision, "optimizer": self.optimizer}
        parts = {
            "training": {key: value for key, value in training.items() if value},
            "deadline": self.deadline,
            "budget_usd": self.budget_usd,
        }
        return {"name": self.name, "workload": workload} | {key: value for key, value in parts.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledJob:
    """The document of a job file with its counted workload, notes, and GiB of weights, gradients and optimizer state."""

    document: JsonObject
    workload: Profile
    assumptions: list[str]
    states_gib: float


def job_from_counts(request: JsonObject, words: JobWords, *, python: str, timeout_seconds: float) -> ProfiledJob:
    """The job of a counted module. Raises `UnusableInput` for a module that cannot be counted and for an invalid job."""
    total, batch = _amount("samples", words.samples), _amount("global_batch", words.global_batch)
    if total and batch and batch > total:
        raise UnusableInput.at(
            "global_batch", message=f"{batch:g} is more than --samples, {total:g}; give at most that"
        )
    result = run_counter(request, python=python, timeout_seconds=timeout_seconds)
    workload, assumptions = workload_from_counts.workload(
        result | {"stated_batch": request["batch"]},
        model=request["target"],
        samples=total,
        global_batch=batch,
    )
    document = words.document(workload)
    parsed = parse_job(document, now=datetime.now(UTC))
    return ProfiledJob(
        document=document,
        workload=cast("Profile", parsed.workload),
        assumptions=assumptions,
        states_gib=_states_gib(parsed),
    )


def _states_gib(job: TrainingJob) -> float:
    """GiB of states in 16-bit training, or 32-bit if the job says so; on one device, not sharded."""
    work = work_of(job.workload, job.training)
    element = np.array([4.0 if job.training.precision in {"fp32", "tf32"} else 2.0])
    state_bytes = parameter_bytes(job.training, element)
    per_parameter = float((state_bytes.weights + state_bytes.gradients + state_bytes.optimizer)[0])
    return (per_parameter * work.trainable_parameters + work.frozen_parameter_bytes) / 2**30


def _amount(name: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return count(text)
    except ValueError as error:
        raise UnusableInput.at(name, message=str(error)) from None


def write_job(path: Path, document: JsonObject, command: str) -> None:
    """Write the job file atomically. Raises `UnusableInput` at "output" if it cannot be written."""
    text = f"# Counted by: {command}\n" + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=10_000)
    try:
        handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(unfinished).chmod(0o644)
        Path(unfinished).replace(path)
    except OSError as error:
        raise UnusableInput.at("output", message=f"{path} cannot be written: {error.strerror or error}") from error
