"""How long the longest plans take, and how much memory: random jobs of odd sizes, budgets and deadlines, for so many seconds.

Run from the repository root: python -m tools.benchmarks.longest_plans [SECONDS [SEED [LIMIT]]]. With LIMIT, plans are stopped
after so many seconds, as the service does. Prints the slowest with their jobs, asserts nothing.
"""

import json
import random
import resource
import sys
import tempfile
import time
from typing import Any

from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import open_services
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.runtime.time_limit import OutOfTime, at_most

MODELS = ("llama-3-8b", "llama-3-70b", "mixtral-8x7b", "bert-large", "gpt3-175b")
MANY_KINDS = ("on_demand", "spot", "reserved_1y", "reserved_3y", "capacity_block", "flex_start", "calendar")
SHOWN = 8


def odd_job(chance: random.Random) -> dict[str, Any]:
    """A job that may be anything between easy and impossible."""
    job: dict[str, Any] = {
        "name": "odd",
        "workload": {"kind": "preset", "model": chance.choice(MODELS), "tokens": 10 ** chance.uniform(8, 14)},
        "training": {"precision": chance.choice(["auto", "bf16"])},
        "start": "2026-11-21T12:00Z",
        "deadline": f"{10 ** chance.uniform(0.5, 4):.3f}h",
        "confidence": chance.choice([0.5, 0.9, 0.99, 0.9999]),
        "constraints": {"max_nodes": chance.choice([8, 64, 512, 4096])},
    }
    if chance.random() < 0.4:
        job["budget_usd"] = 10 ** chance.uniform(2, 7)
    if chance.random() < 0.3:
        job["objective"] = chance.choice(["time", "carbon"])
    if chance.random() < 0.3:
        job["data"] = {"location": "aws:us-east-1", "dataset_gb": 10 ** chance.uniform(0, 6)}
    if chance.random() < 0.5:
        job["constraints"]["price_kinds"] = list(MANY_KINDS)
    return job


def main() -> None:
    seconds, seed, *limits = [float(text) for text in sys.argv[1:]] or [60.0, 5.0]
    limit = limits[0] if limits else None
    chance, rows = random.Random(int(seed)), []
    with tempfile.TemporaryDirectory() as folder:
        gpuplan = open_services(Environment(database_url=f"sqlite:///{folder}/gpuplan.sqlite3"))
        gpuplan.warm_up()
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            job, began = odd_job(chance), time.perf_counter()
            try:
                with at_most(limit):
                    outcome = gpuplan.plans.plan(job, frontier=chance.random() < 0.3, save=False)["outcome"]
            except (OutOfTime, UnusableInput) as error:
                outcome = type(error).__name__
            rows.append((time.perf_counter() - began, outcome, job))
    rows.sort(key=lambda row: -row[0])
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(rows)} jobs, at most {peak_mib:.0f} MiB")
    for took, outcome, job in rows[:SHOWN]:
        print(f"{took:8.2f} s {outcome:<14} {json.dumps(job)}")


if __name__ == "__main__":
    main()
