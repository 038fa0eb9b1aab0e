"""Snapshots written all the while by a process of their own, and whether every plan names one of them, at its prices.

`python -m tools.benchmarks.http_mixed --write DATABASE_URL SECONDS EVERY` writes; each snapshot has every price of the embedded
one times a factor of its own, so that a plan that mixed two snapshots shows prices that its snapshot does not have.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from typing import Any

from gpuplan.catalog.model.money import usd_micros
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.snapshot import Snapshot, snapshot_of
from gpuplan.catalog.store.store import Store
from tools.benchmarks.http_client import Client
from tools.benchmarks.http_loops import HEADING, Make, open_loop
from tools.benchmarks.http_service import Served

#: Each snapshot is dearer than the one before by this much.
STEP = 0.003


def write(url: str, seconds: float, every: float) -> int:
    """Write a new snapshot each `every` seconds, and print how many."""
    store, base, start, written = Store.open(url), embedded_snapshot(), time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        written += 1
        store.put_snapshot(_dearer(base, 1 + STEP * written), source="refresh")
        time.sleep(max(0.0, start + written * every - time.perf_counter()))
    print(written)
    return 0


def _dearer(base: Snapshot, factor: float) -> Snapshot:
    offers = [replace(offer, usd_micros_per_hour=round(offer.usd_micros_per_hour * factor)) for offer in base.offers]
    return snapshot_of(base.instance_types, offers)


async def while_refreshing(served: Served, client: Client, make: Make, rate: float, seconds: float) -> None:
    """Plans at `rate` per second while snapshots are written, then held against what each snapshot says."""
    plans: list[dict[str, Any]] = []
    command = [sys.executable, "-m", "tools.benchmarks.http_mixed", "--write", served.database_url, str(seconds), "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        answered = await open_loop(
            served, client, make, rate, seconds, look=lambda body: plans.append(json.loads(body))
        )
        written = (await asyncio.to_thread(writer.communicate))[0].strip()
    print(f"{'asked/s':>8} {HEADING}")
    print(f"{rate:>8.0f} {answered.line()}")
    counts, named = _compared_with(served.database_url, plans)
    print(f"{written} snapshots were written meanwhile; plans name {named} of them: {dict(counts)}")


def _compared_with(url: str, answers: list[dict[str, Any]]) -> tuple[Counter[str], int]:
    """How many answers name a snapshot there is and its prices, and how many do not; and the snapshots named."""
    store, counts = Store.open(url), Counter[str]()
    snapshot_ids = {snapshot.id for snapshot in store.snapshots()}
    by_snapshot: dict[str, list[dict[str, Any]]] = {}
    for answer in answers:
        body = answer.get("plan") or answer["infeasible"]
        by_snapshot.setdefault(body["snapshot_id"], []).append(body)
    for snapshot_id, bodies in by_snapshot.items():
        if snapshot_id not in snapshot_ids:
            counts["name no snapshot that was written"] += len(bodies)
            continue
        prices: dict[tuple[str, ...], int] = {
            offer.key: offer.usd_micros_per_hour for offer in store.snapshot(snapshot_id).offers
        }
        for body in bodies:
            counts["whole" if _whole(body, prices) else "MIXED"] += 1
    return counts, len(by_snapshot)


def _whole(body: dict[str, Any], prices: dict[tuple[str, ...], int]) -> bool:
    """Whether every phase and alternative is at the price that the snapshot has."""
    named = [*body.get("phases", ()), *(body.get("alternatives") or ())]
    return all(
        prices.get(tuple(item[part] for part in ("provider", "region", "zone", "instance_type", "price_kind")))
        == usd_micros(item["usd_per_node_hour"])
        for item in named
        if "usd_per_node_hour" in item
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        sys.exit(write(sys.argv[2], float(sys.argv[3]), float(sys.argv[4])))
    sys.exit("run tools.benchmarks.http_load with --refreshing")
