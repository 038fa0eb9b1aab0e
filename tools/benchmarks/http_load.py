"""How fast the service answers: plans to saturation and at half of it, pages of the catalogue, many clients for long.

Run from the repository root: python -m tools.benchmarks.http_load [--only NAME ...]. Starts its own service on a free loopback
port, pinned to one core, with this generator on another; jobs vary in size, deadline and constraints, so that no answer
is the one before. Prints tables, asserts nothing.

    plans        saturation by bisection, then p50 to p99 at half of it
    catalogue    pages per second of /v1/offers, plain and with If-None-Match, and of the accelerators
    closed       --clients that each wait for their answer, for --seconds (300 for the long run), and memory meanwhile
    processes    saturation of --processes that share a database (--database-url: PostgreSQL)
"""

import argparse
import asyncio
import random
from functools import partial
from typing import Any

from tools.benchmarks.http_client import Client, request
from tools.benchmarks.http_loops import HEADING, closed_loop, open_loop, saturation
from tools.benchmarks.http_service import Served, cores, served

MODELS = ("llama-3-8b", "llama-3-70b", "mixtral-8x7b", "bert-large", "gpt3-175b")
MODES = ("plans", "catalogue", "closed", "processes")
#: Requests at once that keep a service busy with short answers.
_PAGE_CLIENTS = 16
_PAGES = ("/v1/offers?accelerator=H100-80GB-SXM&limit=100", "/v1/offers?limit=1000", "/v1/accelerators")


def varied_job(number: int) -> dict[str, Any]:
    """A job that differs from its neighbours in model, size, deadline and constraints."""
    chance = random.Random(number)
    providers = chance.sample(["aws", "gcp", "azure"], k=chance.randint(1, 3))
    return {
        "name": f"job-{number}",
        "workload": {"kind": "preset", "model": chance.choice(MODELS), "tokens": chance.uniform(0.5, 20) * 1e9},
        "training": {"precision": "auto"},
        "deadline": f"{chance.randint(24, 900)}h",
        "constraints": {"providers": providers, "max_nodes": chance.choice([4, 8, 16, 32])},
    }


class Jobs:
    """Requests to plan a job, each another than all before."""

    def __init__(self) -> None:
        self._number = 0

    def __call__(self, _: int) -> bytes:
        self._number += 1
        return request("POST", "/v1/plans", varied_job(self._number))


async def plans(at: Served, client: Client, given: argparse.Namespace, jobs: Jobs) -> None:
    """Saturation, and what answers take at half of it."""
    print("\nplans, open loop, rising until the answers no longer keep up")
    most = await saturation(at, client, jobs, given.step_seconds)
    print(f"keeps up with {most:.0f} plans per second; at half of that:")
    print(f"{'asked/s':>8} {HEADING}")
    half = await open_loop(at, client, jobs, most / 2, given.half_seconds)
    print(f"{most / 2:>8.0f} {half.line()}", flush=True)


async def catalogue(at: Served, client: Client, given: argparse.Namespace) -> None:
    """Pages that a client keeps and asks about again, and pages in full."""
    print(f"\ncatalogue, closed loop of {_PAGE_CLIENTS}\n{'':>58} {HEADING}")
    for path in _PAGES:
        first = await client.ask(request("GET", path))
        for name, headers in (("plain", {}), ("If-None-Match", {"If-None-Match": first.headers.get("etag", "")})):
            raw = request("GET", path, headers=headers)
            measured = await closed_loop(
                at, client, partial(_same, raw), clients=_PAGE_CLIENTS, seconds=given.step_seconds
            )
            print(f"{path + ' ' + name:>58} {measured.line()}", flush=True)


def _same(raw: bytes, _: int) -> bytes:
    return raw


async def closed(at: Served, client: Client, given: argparse.Namespace, jobs: Jobs) -> None:
    """Many clients that each wait, and the service's memory over time."""
    print(f"\n{given.clients} clients that each ask again 50 ms after their answer, for {given.seconds:g} s")
    memory: list[tuple[float, float]] = []
    measured = await closed_loop(
        at,
        client,
        jobs,
        clients=given.clients,
        seconds=given.seconds,
        pause=0.05,
        each_second=lambda passed: memory.append((passed, at.rss_mib())),
    )
    print(f"{HEADING}\n{measured.line()}")
    every = max(1, len(memory) // 10)
    print("memory in MiB: " + ", ".join(f"{passed:.0f} s {mib:.0f}" for passed, mib in memory[::every]), flush=True)


async def one_process(given: argparse.Namespace, modes: list[str]) -> None:
    """The modes of one process, one after the other, on one service."""
    with served(database_url=given.database_url) as at:
        client, jobs = Client(at.urls), Jobs()
        await open_loop(at, client, jobs, 10, 3)
        if "plans" in modes:
            await plans(at, client, given, jobs)
        if "catalogue" in modes:
            await catalogue(at, client, given)
        if "closed" in modes:
            await closed(at, client, given, jobs)
        client.close()


async def several_processes(given: argparse.Namespace) -> None:
    """Saturation with one process more at a time."""
    free, mine = cores()
    print(
        f"\nprocesses on one database: {len(free)} core(s) for them, {'one' if mine is not None else 'none'} for the generator"
    )
    if len(free) < 2:
        print("scaling over processes cannot be measured here: each needs a core of its own beside the generator's")
    for count in range(1, min(given.processes, max(1, len(free))) + 1):
        with served(count, database_url=given.database_url) as at:
            client, jobs = Client(at.urls), Jobs()
            await open_loop(at, client, jobs, 10, 3)
            most = await saturation(at, client, jobs, given.step_seconds)
            print(f"{count} process(es): {most:.0f} plans per second", flush=True)
            client.close()


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description="Load on the service.")
    parser.add_argument("--only", nargs="+", choices=MODES, default=["plans", "catalogue", "closed"])
    parser.add_argument("--step-seconds", type=float, default=5.0, help="of each step of a search, and each page")
    parser.add_argument("--half-seconds", type=float, default=20.0, help="at half of saturation")
    parser.add_argument("--seconds", type=float, default=30.0, help="of the closed loop")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--processes", type=int, default=2, help="most processes of the last mode")
    parser.add_argument("--database-url", help="a database instead of an empty SQLite file")
    given = parser.parse_args()
    modes = [item for item in given.only if item != "processes"]
    if modes:
        asyncio.run(one_process(given, modes))
    if "processes" in given.only:
        asyncio.run(several_processes(given))


if __name__ == "__main__":
    main()
