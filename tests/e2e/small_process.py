"""The world of a release that ships few prices and knows a run that waits for a file, for processes of their own."""

import os
import time
from pathlib import Path
from typing import Any

import catalog.embedded
import catalog.store
from api.runs.execute import KINDS
from api.runs.pulse import Pulse
from catalog.runs import Run
from tests.providers.fake_clouds import SHIPPED_AT, price, snapshot

SHIPPED = snapshot(
    *(
        price(each, observed_at=SHIPPED_AT, source="shipped", usd_micros=96_000_000)
        for each in ("us-east-1", "us-west-2")
    )
)


def gated(_: object, run: Run, pulse: Pulse) -> dict[str, Any]:
    """Writes down who began it, then waits for its gate; the answer is who ended it."""
    with Path(run.request["log"]).open("a", encoding="utf-8") as log:
        log.write(f"{os.getpid()}\n")
    while not Path(run.request["gate"]).exists() and not pulse.cancelled():
        pulse.tell({"waits": True})
        time.sleep(0.02)
    return {"ended_by": os.getpid()}


def small_world() -> None:
    """A release of few prices, and the kind of run that waits."""
    catalog.store.embedded_snapshot_id = lambda: SHIPPED.id
    catalog.embedded.embedded_snapshot = lambda: SHIPPED  # type: ignore[assignment]
    KINDS["gated"] = gated
