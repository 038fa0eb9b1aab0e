"""Verification time in process, on the catalogue and repeated to 100,000 offers, and the tightness of its bound."""

import json
import resource
import statistics
import time
from dataclasses import replace

import numpy as np

from gpuplan.api.schemas.canonical_job import canonical
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.catalog.snapshots.snapshot import snapshot_of
from gpuplan.planner.model.plan import Plan
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.model.wire import wire
from gpuplan.planner.planning import plan
from gpuplan.planner.serialization.plan_document import answer_body
from gpuplan.planner.verify.submitted_plan import SubmittedPlan
from gpuplan.planner.verify.verification import verified
from tools.benchmarks.plan_speed import varied_jobs

#: Offers (0: the catalogue as it is) and the most nodes of every job (0: as drawn).
SIZES = ((0, 0), (0, 64), (0, 512), (0, 4096), (100_000, 0))
JOBS = 20


def repeated(columns: Columns, count: int) -> Columns:
    """The catalogue in so many more zones, each at prices of its own (within 10 %), under the id of those rows."""
    jitter = np.random.default_rng(count).uniform(0.9, 1.1, count)
    rows = [
        replace(
            columns.offer(i % len(columns)),
            zone=f"{columns.offer(i % len(columns)).zone}/{i // len(columns)}",
            usd_micros_per_hour=max(1, round(columns.offer(i % len(columns)).usd_micros_per_hour * jitter[i])),
        )
        for i in range(count)
    ]
    result = snapshot_of(columns.instance_types, rows)
    return columns_of(result.id, result.observed_at, result.instance_types, result.offers)


def main() -> None:
    """Print a row per size and most nodes."""
    snapshot = embedded_snapshot()
    embedded = columns_of(snapshot.id, snapshot.observed_at, snapshot.instance_types, snapshot.offers)
    settings = PlannerSettings()
    print(
        f"{'offers':>8} {'max_nodes':>9} {'median CPU s':>12} {'max CPU s':>9} {'verified':>9} {'bound below plan, median %':>27} {'kB a plan':>10} {'peak MiB':>9}"
    )
    for size, nodes in SIZES:
        columns = repeated(embedded, size) if size else embedded
        taken, right, below, kilobytes = [], 0, [], []
        for drawn in varied_jobs(JOBS, seed=5):
            most = nodes or drawn.constraints.max_nodes
            job = replace(drawn, constraints=replace(drawn.constraints, max_nodes=most))
            typed = answer_body(plan(job, columns, settings=settings), canonical(job), version="")
            answer = json.loads(json.dumps(wire(typed)))
            part = "plan" if isinstance(typed, Plan) else "infeasible"
            assert job.start is not None
            submitted_plan = SubmittedPlan(part=part, body=answer, job=job, start=job.start, settings=settings)
            kilobytes.append(len(json.dumps(answer)) / 1e3)
            began = time.process_time()
            result = verified(submitted_plan, columns)
            taken.append(time.process_time() - began)
            right += not result.wrong_count
            gap = getattr(result.covers, "which_is_below_the_plan_by_percent", None)
            below += [gap] if gap is not None else []
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{len(columns):>8,} {nodes or 'drawn':>9} {statistics.median(taken):>12.2f} {max(taken):>9.2f} {right:>6}/{JOBS} "
            f"{statistics.median(below):>27.4f} {max(kilobytes):>10.0f} {peak:>9.0f}"
        )


if __name__ == "__main__":
    main()
