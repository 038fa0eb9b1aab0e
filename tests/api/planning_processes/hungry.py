"""A planning process whose planner does what the name of a job says: what no budget in the planner would keep it from."""

import os
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import planner.plan
from api.planning_processes.child import answer_questions
from api.settings import Environment
from catalog.allowed_time import go_on

_plan = planner.plan.plan


def hungry(asked: Connection, environment: Environment, most_mib: int) -> None:
    """As `answer_questions`, with this planner."""
    planner.plan.plan = _hungry_plan
    answer_questions(asked, environment, most_mib)


def _hungry_plan(job: Any, *args: Any, **kwargs: Any) -> Any:
    what, _, folder = job.name.partition(" ")
    match what:
        case "memory":
            kept = []
            while True:
                kept.append(bytearray(8 * 2**20))
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
