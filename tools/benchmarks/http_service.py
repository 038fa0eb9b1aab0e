"""Service processes of a benchmark's own, each on a core of its own, and what they take of it."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Running services that share one database, and the cores that they are pinned to, if they are."""

    urls: list[str]
    pids: list[int]
    database_url: str
    cores: frozenset[int] = frozenset()

    def processes(self) -> list[int]:
        """The services and the processes below them."""
        return [item for pid in self.pids for item in (pid, *_below(pid))]

    def cpu_seconds(self) -> float:
        """Processor time that all of them took so far."""
        fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.processes()]
        return sum(int(field[11]) + int(field[12]) for field in fields) / _TICKS

    def others_seconds(self) -> float:
        """Time so far in which the services' cores were taken by others, or by the machine under this one (`steal`)."""
        if not self.cores:
            return 0.0
        names = {f"cpu{core}" for core in self.cores}
        rows = [line.split() for line in Path("/proc/stat").read_text().splitlines() if line.startswith("cpu")]
        # user, nice, system, irq, softirq, steal (proc(5)); without idle and waiting for a disk
        taken = sum(int(row[at]) for row in rows if row[0] in names for at in (1, 2, 3, 6, 7, 8))
        return taken / _TICKS - self.cpu_seconds()

    def rss_mib(self) -> float:
        """Memory that all of them hold; what several share counts once (PSS)."""
        texts = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in self.processes()]
        return (
            sum(int(line.split()[1]) for text in texts for line in text.splitlines() if line.startswith("Pss:")) / 2**10
        )


def _below(pid: int) -> list[int]:
    children = [int(item) for item in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [result for child in children for result in (child, *_below(child))]


def cores() -> tuple[list[int], int | None]:
    """Cores for services, and one for the generator: the last; None where there is only one, which both then share."""
    available = sorted(os.sched_getaffinity(0))
    return (available[:-1], available[-1]) if len(available) > 1 else (available, None)


@contextmanager
def served(processes: int = 1, *, database_url: str | None = None) -> Iterator[Served]:
    """Services that are ready, pinned to one core each where there are enough, on an empty SQLite file unless told."""
    free, mine = cores()
    if mine is not None:
        os.sched_setaffinity(0, {mine})
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        url = database_url or f"sqlite:///{folder}/gpuplan.sqlite3"
        environment = os.environ | {"GPUPLAN_DATABASE_URL": url}
        urls, pids, taken = list[str](), list[int](), list[int]()
        for number in range(processes):
            with socket.create_server(("127.0.0.1", 0)) as listener:
                port = listener.getsockname()[1]
            command = [sys.executable, "-m", "gpuplan.api.cli.main", "serve", "--port", str(port)]
            service = stack.enter_context(
                subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
            stack.callback(service.terminate)
            taken.append(free[number % len(free)])
            os.sched_setaffinity(service.pid, {taken[-1]})
            urls.append(f"http://127.0.0.1:{port}")
            pids.append(service.pid)
            wait_until_ready(urls[-1])
        yield Served(urls=urls, pids=pids, database_url=url, cores=frozenset(taken))


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
