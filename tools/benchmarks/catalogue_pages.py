"""Speed of the page's catalogue, prices and changes on a large store: 100,000 offers and some refreshes.

Run from the repository root: python -m tools.benchmarks.catalogue_pages [--offers 100000] [--nights 5]. Prints a table,
asserts nothing. Times are of whole answers over a loopback socket, bytes as sent (compressed).
"""

import argparse
import random
import socket
import statistics
import tempfile
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import uvicorn

from gpuplan.api.http.http_service import create_service
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import open_services
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.snapshot import Snapshot, snapshot_of
from gpuplan.catalog.store.store import Store

BEGIN = datetime(2026, 11, 1, 3, tzinfo=UTC)
PAGES = (
    "/catalogue",
    "/catalogue?order=-usd_per_accelerator",
    "/catalogue?accelerator=H100&kind=spot&geography=us&trains=1&order=region",
    "/catalogue?usd_to=3&memory_from=40&order=-memory",
    "/catalogue/accelerators",
    "/catalogue.csv?provider=gcp",
    "/prices?instance_type=p5.48xlarge",
    "/prices?instance_type=p5",
    "/changes",
    "/changes?what=cheaper&instance_type=p5*",
    "/portfolio",
)


def grown(snapshot: Snapshot, count: int) -> list[Offer]:
    """The offers of a snapshot, with copies in invented zones up to the requested number."""
    offers = list(snapshot.offers)
    while len(offers) < count:
        room = count - len(offers)
        offers += [
            replace(offer, zone=f"{offer.zone or offer.region}-{len(offers)}") for offer in snapshot.offers[:room]
        ]
    return offers


def filled(url: str, count: int, nights: int) -> None:
    """A store with this many offers, a tenth of whose prices change each night."""
    store, shipped = Store.open(url), embedded_snapshot()
    chance, offers = random.Random(1), grown(shipped, count)
    for night in range(nights):
        at = BEGIN + timedelta(days=night)
        offers = [
            replace(
                offer,
                observed_at=at,
                usd_micros_per_hour=max(1, int(offer.usd_micros_per_hour * chance.uniform(0.7, 1.3)))
                if chance.random() < 0.1
                else offer.usd_micros_per_hour,
            )
            for offer in offers
        ]
        store.put_snapshot(snapshot_of(shipped.instance_types, offers), source="refresh")
    store.close()


def measured(client: httpx.Client, path: str, times: int) -> tuple[float, list[float], int]:
    """Milliseconds of the first answer and of each one after, and the bytes of one."""
    taken, size = [], 0
    for _ in range(times + 1):
        began = time.perf_counter()
        with client.stream("GET", path) as answer:
            size = sum(map(len, answer.iter_raw()))
            if answer.status_code != 200:
                raise SystemExit(f"{path}: {answer.status_code}")
        taken.append((time.perf_counter() - began) * 1e3)
    return taken[0], taken[1:], size


def main() -> None:
    """Fill a store, serve it, ask."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offers", type=int, default=100_000)
    parser.add_argument("--nights", type=int, default=5)
    parser.add_argument("--times", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'gpuplan.sqlite3'}"
        filled(url, given.offers, given.nights)
        gpuplan = open_services(Environment(database_url=url))
        gpuplan.warm_up()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            server = uvicorn.Server(uvicorn.Config(create_service(gpuplan), log_config=None, access_log=False))
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
            thread.start()
            print(f"{len(gpuplan.context.columns()):,} offers, {given.nights} nights; milliseconds")
            print(f"{'page':<78} {'first':>7} {'p50':>7} {'max':>7} {'kB':>7}")
            with httpx.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=60) as client:
                for path in PAGES:
                    first, taken, size = measured(client, path, given.times)
                    print(
                        f"{path:<78} {first:>7.1f} {statistics.median(taken):>7.1f} {max(taken):>7.1f} {size / 1e3:>7.1f}"
                    )
            server.should_exit = True
            thread.join(10)


if __name__ == "__main__":
    main()
