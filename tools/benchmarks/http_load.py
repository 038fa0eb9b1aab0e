"""How fast one service answers plans and pages of the catalogue, and its memory, with several clients that each wait.

Run from the repository root: python -m tools.benchmarks.http_load [--clients N] [--seconds S]. Starts its own service process
on a free loopback port; jobs vary in size, deadline and constraints, so that no answer is the one before. `cpu ms` is the
service's processor time per answer: others at work on the same cores distort it least. Prints a table, asserts nothing.
"""

import argparse
import asyncio
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import httpx

MODELS = ("llama-3-8b", "llama-3-70b", "mixtral-8x7b", "bert-large", "gpt3-175b")
PAGES = ("/v1/offers?accelerator=H100-80GB-SXM&limit=100", "/v1/offers?limit=1000", "/v1/accelerators")
_TICKS = os.sysconf("SC_CLK_TCK")

#: The method, path and other arguments of the next request.
Next = Callable[[], tuple[str, str, dict[str, Any]]]


@contextmanager
def service() -> Iterator[tuple[httpx.Client, int]]:
    """A service of its own on an empty store, once it answers, and its process."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"GPUPLAN_DATABASE_URL": f"sqlite:///{folder}/gpuplan.sqlite3"}
        command = [sys.executable, "-m", "gpuplan.api.cli.main", "serve", "--port", str(port)]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                _wait_for(client, process)
                yield client, process.pid
        finally:
            process.terminate()
            process.wait(10)


def _wait_for(client: httpx.Client, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            client.get("/readyz").raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"the service ended with {process.returncode}")


def processes(pid: int) -> list[int]:
    """A process and those below it."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(below for child in children for below in processes(int(child)))]


def cpu_seconds(pid: int) -> float:
    """Processor time that a service and its processes took so far."""
    fields = [Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split() for process in processes(pid)]
    return sum(int(field[11]) + int(field[12]) for field in fields) / _TICKS


def memory_mib(pid: int) -> float:
    """Memory that they hold; what several share counts once (PSS)."""
    lines = [
        line for process in processes(pid) for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    ]
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 2**10


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


def _get(path: str, headers: dict[str, str]) -> tuple[str, str, dict[str, Any]]:
    return "GET", path, {"headers": headers}


async def measured(name: str, url: str, pid: int, following: Next, *, clients: int, seconds: float) -> None:
    """Print a row for so many clients that each ask again after their answer."""
    took, outcomes = list[float](), Counter[str]()
    began, cpu = time.perf_counter(), cpu_seconds(pid)

    async def ask_again(client: httpx.AsyncClient) -> None:
        while time.perf_counter() - began < seconds:
            method, path, rest = following()
            asked = time.perf_counter()
            try:
                outcome = str((await client.request(method, path, **rest)).status_code)
            except httpx.HTTPError as error:
                outcome = type(error).__name__
            took.append((time.perf_counter() - asked) * 1e3)
            outcomes[outcome] += 1

    async with httpx.AsyncClient(base_url=url, timeout=60, limits=httpx.Limits(max_connections=None)) as client:
        await asyncio.gather(*(ask_again(client) for _ in range(clients)))
    passed, cpu = time.perf_counter() - began, cpu_seconds(pid) - cpu
    p50, p90, p99 = (statistics.quantiles(took, n=100)[at - 1] for at in (50, 90, 99))
    print(
        f"{name:>58} {len(took) / passed:>8.1f} {p50:>8.1f} {p90:>8.1f} {p99:>8.1f} {cpu / len(took) * 1e3:>8.2f}"
        f" {memory_mib(pid):>7.0f}  {dict(outcomes.most_common())}",
        flush=True,
    )


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description="Load on the service.")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each row")
    parser.add_argument("--clients", type=int, default=16)
    given = parser.parse_args()
    numbers = count(1)
    print(f"{'':>58} {'got/s':>8} {'p50 ms':>8} {'p90 ms':>8} {'p99 ms':>8} {'cpu ms':>8} {'MiB':>7}  outcomes")
    with service() as (client, pid):
        rows: list[tuple[str, Next]] = [("a plan", lambda: ("POST", "/v1/plans", {"json": varied_job(next(numbers))}))]
        for path in PAGES:
            known = {"If-None-Match": client.get(path).headers.get("etag", "")}
            rows += [(path, partial(_get, path, {})), (f"{path} If-None-Match", partial(_get, path, known))]
        for name, following in rows:
            asked = measured(name, str(client.base_url), pid, following, clients=given.clients, seconds=given.seconds)
            asyncio.run(asked)


if __name__ == "__main__":
    main()
