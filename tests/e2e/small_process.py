"""The world of a release that ships few prices and knows a run that waits for a file, for processes of their own."""

import os
import time
from pathlib import Path
from typing import Any

import gpuplan.catalog.snapshots.embedded_snapshot
import gpuplan.catalog.store.store
from gpuplan.api.jobs.heartbeat import Heartbeat
from gpuplan.api.jobs.run_execution import KINDS
from gpuplan.catalog.store.run_store import Run
from tests.providers.fake_clouds import SHIPPED_AT, price, snapshot

SHIPPED = snapshot(
    *(
        price(region, observed_at=SHIPPED_AT, source="shipped", usd_micros=96_000_000)
        for region in ("us-east-1", "us-west-2")
    )
)


def gated(_: object, run: Run, heartbeat: Heartbeat) -> dict[str, Any]:
    """Writes down who began it, then waits until its release file exists; the answer is who ended it."""
    with Path(run.request["log"]).open("a", encoding="utf-8") as log:
        log.write(f"{os.getpid()}\n")
    while not Path(run.request["release_file"]).exists() and not heartbeat.cancelled():
        heartbeat.tell({"waits": True})
        time.sleep(0.02)
    return {"ended_by": os.getpid()}


def small_world() -> None:
    """A release of few prices, and the kind of run that waits."""
    gpuplan.catalog.store.store.embedded_snapshot_id = lambda: SHIPPED.id
    gpuplan.catalog.snapshots.embedded_snapshot.embedded_snapshot = lambda: SHIPPED  # type: ignore[assignment]
    KINDS["gated"] = gated
