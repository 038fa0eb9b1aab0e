"""A planning process whose planner does what the name of a job says: what no budget in the planner would keep it from."""

import os
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import gpuplan.planner.planning
from gpuplan.api.jobs.planning_processes.planning_process import answer_requests
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.catalog.runtime.time_limit import go_on

_plan = gpuplan.planner.planning.plan


def hungry(asked: Connection, environment: Environment, most_mib: int) -> None:
    """As `answer_requests`, with this planner."""
    gpuplan.planner.planning.plan = _hungry_plan
    answer_requests(asked, environment, most_mib)


def _hungry_plan(job: Any, *args: Any, **kwargs: Any) -> Any:
    what, _, folder = job.name.partition(" ")
    match what:
        case "memory":
            buffers = []
            while True:
                buffers.append(bytearray(8 * 2**20))
        case "killed":  # as by the kernel, when the machine has no memory left
            os.kill(os.getpid(), signal.SIGKILL)
        case "for-ever":
            while True:
                pass
        case "slow":
            while True:
                go_on()
        case "waits":
            Path(folder, f"began-{os.getpid()}").touch()
            while not Path(folder, "go-on").exists():
                time.sleep(0.01)
    return _plan(job, *args, **kwargs)
