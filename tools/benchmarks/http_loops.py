"""Load on a service: open loop (requests start on time, whatever became of earlier ones) and closed (each client waits).

Every measurement says what share of its own core the generator took, and what share of the service's core others took,
so that a figure that they limit is not taken for the service's; and the service's processor time per answer (`cpu ms`),
which others at work on the same cores distort least.
"""

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tools.benchmarks.http_client import Client
from tools.benchmarks.http_service import Served

#: Makes the raw request of a number.
Make = Callable[[int], bytes]
#: Requests open at once in an open loop, beyond which it has clearly fallen behind.
MOST_OPEN = 2_000


@dataclass(slots=True)
class Measured:
    """Answers of one stretch of load: milliseconds each, counts by outcome, what it took of the cores."""

    took: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    service_share: float = 0.0
    others_share: float = 0.0
    generator_share: float = 0.0

    @property
    def rate(self) -> float:
        """Answers per second, the wait for the last ones included."""
        return len(self.took) / self.seconds

    @property
    def cpu_ms(self) -> float:
        """The service's processor time per answer."""
        return self.service_share * self.seconds / len(self.took) * 1e3

    def percentile(self, which: int) -> float:
        """Milliseconds that so many of a hundred answers take at most."""
        return statistics.quantiles(self.took, n=100)[which - 1] if len(self.took) > 1 else float("nan")

    def line(self) -> str:
        """As a row of a table."""
        figures = " ".join(f"{self.percentile(item):>8.1f}" for item in (50, 90, 99))
        shares = (
            f"{self.cpu_ms:>8.2f} {self.service_share:>8.0%} {self.others_share:>8.0%} {self.generator_share:>10.0%}"
        )
        return f"{self.rate:>8.1f} {figures} {shares}  {dict(self.outcomes.most_common())}"


HEADING = (
    f"{'got/s':>8} {'p50 ms':>8} {'p90 ms':>8} {'p99 ms':>8} {'cpu ms':>8} {'service':>8} {'others':>8} {'generator':>10}"
    "  outcomes"
)


class _Clock:
    """What a stretch took of the clock and of both cores."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._began = time.perf_counter(), served.cpu_seconds(), served.others_seconds(), time.process_time()

    def stop(self, measured: Measured) -> Measured:
        wall, theirs, others, mine = self._began
        measured.seconds = time.perf_counter() - wall
        measured.service_share = (self._served.cpu_seconds() - theirs) / measured.seconds
        cores = max(1, len(self._served.cores))
        measured.others_share = (self._served.others_seconds() - others) / measured.seconds / cores
        measured.generator_share = (time.process_time() - mine) / measured.seconds
        return measured


async def _one(client: Client, raw: bytes, measured: Measured, since: float | None = None) -> None:
    began = time.perf_counter() if since is None else since
    try:
        answer = await client.ask(raw)
    except (OSError, TimeoutError) as error:
        outcome = type(error).__name__
    else:
        outcome = str(answer.status)
    measured.took.append((time.perf_counter() - began) * 1e3)
    measured.outcomes[outcome] += 1


async def open_loop(served: Served, client: Client, make: Make, rate: float, seconds: float) -> Measured:
    """So many requests per second. Times count from the moment at which each was due."""
    measured, clock = Measured(), _Clock(served)
    start, pending = time.perf_counter(), set[asyncio.Task[None]]()
    for number in range(int(rate * seconds)):
        due = start + number / rate
        if (ahead := due - time.perf_counter()) > 0:
            await asyncio.sleep(ahead)
        if len(pending) >= MOST_OPEN:
            break
        task = asyncio.create_task(_one(client, make(number), measured, due))
        pending.add(task)
        task.add_done_callback(pending.discard)
    await asyncio.gather(*pending)
    return clock.stop(measured)


async def closed_loop(
    served: Served,
    client: Client,
    make: Make,
    *,
    clients: int,
    seconds: float,
    pause: float = 0.0,
    each_second: Callable[[float], None] | None = None,
) -> Measured:
    """So many clients, each of which asks again `pause` seconds after its last answer."""
    measured, clock, start, number = Measured(), _Clock(served), time.perf_counter(), 0

    async def ask_again() -> None:
        nonlocal number
        while time.perf_counter() - start < seconds:
            number += 1
            await _one(client, make(number), measured)
            if pause:
                await asyncio.sleep(pause)

    async def tick() -> None:
        while each_second is not None and (passed := time.perf_counter() - start) < seconds:
            each_second(passed)
            await asyncio.sleep(1.0)

    await asyncio.gather(tick(), *(ask_again() for _ in range(clients)))
    return clock.stop(measured)


async def saturation(served: Served, client: Client, make: Make, seconds: float) -> float:
    """Plans per second that the service keeps up with, by bisection: answers on time, none refused, none late by a second.

    Also prints at how many cores without anybody else would be full, by the processor time of the last step's answers:
    at least, since others on a core make that longer too.
    """
    last = Measured()

    async def keeps_up(rate: float) -> bool:
        nonlocal last
        measured = last = await open_loop(served, client, make, rate, seconds)
        good = measured.outcomes["200"] == len(measured.took)
        on_time = measured.rate >= 0.95 * rate and measured.percentile(90) < 1_000
        print(f"{rate:>8.0f} {measured.line()}{'' if good and on_time else '  falls behind'}", flush=True)
        await asyncio.sleep(0.5)
        return good and on_time

    print(f"{'asked/s':>8} {HEADING}")
    low, high = 0.0, 40.0
    while await keeps_up(high):
        low, high = high, high * 2
    while high - low > max(4.0, 0.05 * high):
        middle = (low + high) / 2
        low, high = (middle, high) if await keeps_up(middle) else (low, middle)
    alone = 1e3 * max(1, len(served.cores)) / last.cpu_ms
    print(
        f"without others, who took {last.others_share:.0%}, its cores would be full at {alone:.0f} or more per second"
    )
    return low
