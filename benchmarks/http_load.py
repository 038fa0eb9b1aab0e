"""How fast the service plans under an open-loop load: requests start on time, whether earlier ones are done or not.

Run from the repository root: python -m benchmarks.http_load [SECONDS]. Starts its own service process on a free
loopback port; jobs vary in size, deadline and constraints, so that no answer is the one before. First 30
requests per second, then rising rates until the answers no longer keep up. Prints a table, asserts nothing.
"""

import asyncio
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import httpx

RATE = 30
RISING_RATES = (60, 90, 120, 160, 200)
#: Answers that keep up do so within this share of the rate asked for.
KEEPS_UP = 0.95
MOST_OPEN = 2_000
MODELS = ("llama-3-8b", "llama-3-70b", "mixtral-8x7b", "bert-large", "gpt3-175b")


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


async def load(client: httpx.AsyncClient, rate: float, seconds: float) -> tuple[list[float], dict[str, int], float]:
    """Milliseconds per answer, counts by outcome, and answers per second from the first request to the last answer."""
    took: list[float] = []
    outcomes: dict[str, int] = {}

    async def one(number: int) -> None:
        began = time.perf_counter()
        try:
            response = await client.post("/v1/plans", json=varied_job(number))
            outcome = response.json().get("outcome") or f"HTTP {response.status_code}"
        except httpx.HTTPError as error:
            outcome = type(error).__name__
        took.append((time.perf_counter() - began) * 1e3)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1

    start = time.perf_counter()
    pending: set[asyncio.Task[None]] = set()
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, start + number / rate - time.perf_counter()))
        if len(pending) >= MOST_OPEN:
            break
        task = asyncio.create_task(one(number + int(rate) * 1_000_000))
        pending.add(task)
        task.add_done_callback(pending.discard)
    await asyncio.gather(*pending)
    return took, outcomes, len(took) / (time.perf_counter() - start)


async def measure(url: str, seconds: float) -> None:
    """All rates, one after the other."""
    limits = httpx.Limits(max_connections=256, max_keepalive_connections=256)
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as client:
        await load(client, 10, 3)
        print(f"{'asked/s':>8} {'got/s':>8} {'p50 ms':>8} {'p90 ms':>8} {'p99 ms':>8}  outcomes")
        for rate in (RATE, *RISING_RATES):
            took, outcomes, got = await load(client, rate, seconds)
            cuts = statistics.quantiles(took, n=100)
            print(f"{rate:8} {got:8.1f} {cuts[49]:8.1f} {cuts[89]:8.1f} {cuts[98]:8.1f}  {outcomes}")
            if got < KEEPS_UP * rate:
                print(f"saturated at about {got:.0f} plans per second")
                return


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"GPUPLAN_DATABASE_URL": f"sqlite:///{folder}/gpuplan.sqlite3"}
        command = [sys.executable, "-m", "api.cli.main", "serve", "--port", str(port)]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as service:
            try:
                wait_until_ready(f"http://127.0.0.1:{port}")
                asyncio.run(measure(f"http://127.0.0.1:{port}", seconds))
            finally:
                service.terminate()


def wait_until_ready(url: str) -> None:
    """Until the service answers, at most half a minute."""
    for _ in range(300):
        try:
            httpx.get(f"{url}/readyz", timeout=10).raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("the service did not become ready")


if __name__ == "__main__":
    main()
