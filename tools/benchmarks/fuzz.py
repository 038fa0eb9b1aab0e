"""Documents that are meant to break the service, sent to every route that takes one, and what it makes of them.

Run from the repository root: python -m tools.benchmarks.fuzz [N [SEED]]. Starts a service of its own whose clouds
are nowhere, sends it N bodies (`fuzz_bodies`) four at a time, and prints the answers by route and status, and whatever
should not be: a 5xx other than a wish to come back later, a traceback in the log, an answer after more than 5 s, an
error that is no problem+json with pointers, memory that grows. Asserts nothing.
"""

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes

import httpx
import yaml

from tools.benchmarks.fuzz_bodies import Body, body
from tools.benchmarks.http_client import Answer, Client
from tools.benchmarks.http_service import Served, wait_until_ready

_AT_ONCE = 4
_SLOW_SECONDS = 5.0
_NOBODY = "http://127.0.0.1:1"
#: Portfolio searches use all of their time limit.
_QUERIES = {"/v1/portfolios": "?time_limit=0.05"}
_FORMS = ("/plans", "/buy", "/portfolio")
_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A path that takes documents, with valid examples."""

    path: str
    real: list[Any]
    form: bool = False

    def request(self, sent: Body) -> bytes:
        """As it goes over the wire; a page gets the document as text in the form's field."""
        content, kind = sent.content, sent.content_type
        if self.form:
            content, kind = b"document=" + quote_from_bytes(content).encode(), "application/x-www-form-urlencoded"
        lines = f"POST {self.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n"
        return f"{lines}Prefer: wait=5\r\n\r\n".encode() + content


@dataclass(slots=True)
class RouteFault:
    """A faulty answer."""

    counts: Counter[tuple[str, int]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest: float = 0.0


def routes(client: httpx.Client) -> list[Route]:
    """Every POST with a body in the service's OpenAPI document, and the page's forms; paths with existing ids."""
    document = client.get("/openapi.json").json()
    jobs = [yaml.safe_load(path.read_text()) for path in sorted(Path("examples").glob("*.yaml"))]
    jobs = [job for job in jobs if "workload" in job]
    presets = client.get("/v1/presets").json()["presets"]
    jobs += [_preset_job(preset) for preset in presets]
    saved = client.post("/v1/plans", json=_examples(document["paths"]["/v1/plans"]["post"])[0]).json()
    named = {"plan_id": saved["plan"]["id"]}
    documented_routes = []
    for path, methods in document["paths"].items():
        if "requestBody" not in methods.get("post", {}):
            continue
        real = _examples(methods["post"])
        if path == "/v1/plans":
            real += jobs
        if path == "/v1/verify":
            real.append(saved)
        documented_routes.append(Route(path=path.format_map(named) + _QUERIES.get(path, ""), real=real))
    by_path = {item.path.partition("?")[0]: item.real for item in documented_routes}
    real_of_forms = {form: by_path[f"/v1{form.replace('portfolio', 'portfolios')}"] for form in _FORMS}
    documented_routes += [Route(path=form, real=real, form=True) for form, real in real_of_forms.items()]
    return documented_routes


def _preset_job(preset: Mapping[str, Any]) -> dict[str, Any]:
    amount = {preset["unit"]: "2B" if preset["unit"] == "tokens" else "20M"}
    return {"workload": {"kind": "preset", "model": preset["name"]} | amount, "deadline": "7d"}


def _examples(operation: Mapping[str, Any]) -> list[Any]:
    return [item["value"] for item in operation["requestBody"]["content"]["application/json"]["examples"].values()]


def faults_of(route: Route, answer: Answer) -> str | None:
    """What is wrong with an answer, whatever the request; None if nothing is."""
    text = answer.body.decode("utf-8", "replace")
    if answer.status >= 500 and not (answer.status == 503 and "retry-after" in answer.headers):
        return f"{answer.status}: {text[:300]}"
    if "Traceback" in text or "site-packages" in text:
        return f"tells of its inside: {text[:300]}"
    if route.form or answer.status < 400:
        return None
    if answer.headers.get("content-type") != "application/problem+json":
        return f"{answer.status} is {answer.headers.get('content-type')}"
    problem = json.loads(text)
    if problem["status"] != answer.status or not problem["detail"].strip():
        return f"says little: {text[:300]}"
    pointers = [item["pointer"] for item in problem.get("errors", [])]
    if answer.status == 422 and not pointers:
        return f"has no pointer: {text[:300]}"
    if any(pointer and not pointer.startswith("/") for pointer in pointers):
        return f"has pointers that are none: {pointers[:3]}"
    return None


async def fuzz(url: str, all_routes: list[Route], count: int, seed: int) -> RouteFault:
    """Send `count` bodies, to one route after the other; plans get every second."""
    client, faults, numbers = Client([url]), RouteFault(), iter(range(count))
    plans = next(all_route for all_route in all_routes if all_route.path == "/v1/plans")

    async def some() -> None:
        for number in numbers:
            route = plans if number % 2 else all_routes[number // 2 % len(all_routes)]
            raw, began = route.request(body(seed, number, route.real)), time.perf_counter()
            path = route.path.partition("?")[0]
            try:
                answer = await client.ask(raw)
            except (OSError, TimeoutError) as error:
                faults.counts[path, 0] += 1
                faults.wrong.append(f"{number} {path}: no answer ({error!r})")
                continue
            took = time.perf_counter() - began
            faults.slowest = max(faults.slowest, took)
            faults.counts[path, answer.status] += 1
            fault = faults_of(route, answer)
            if fault is not None:
                faults.wrong.append(f"{number} {path}: {fault}")
            if took > _SLOW_SECONDS:
                faults.wrong.append(f"{number} {path}: took {took:.1f} s for {answer.status}")

    await asyncio.gather(*(some() for _ in range(_AT_ONCE)))
    client.close()
    return faults


@contextmanager
def logged_service(log: Path) -> Iterator[Served]:
    """A service that is ready, on an empty SQLite file, whose clouds are nowhere; what it says goes to `log`."""
    with tempfile.TemporaryDirectory() as folder, log.open("wb") as output:
        url = f"sqlite:///{folder}/gpuplan.sqlite3"
        nowhere = ("AWS_PRICE_FILES_URL", "GCP_BILLING_ENDPOINT", "AZURE_RETAIL_ENDPOINT")
        environment = os.environ | {f"GPUPLAN_{name}": _NOBODY for name in nowhere}
        environment |= {"GPUPLAN_DATABASE_URL": url, "GPUPLAN_ANONYMOUS": "1"}
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        command = [sys.executable, "-m", "gpuplan.api.cli.main", "serve", "--port", str(port)]
        service = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            address = f"http://127.0.0.1:{port}"
            wait_until_ready(address)
            yield Served(urls=[address], pids=[service.pid], database_url=url)
        finally:
            service.terminate()
            service.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="Documents that are meant to break the service.")
    parser.add_argument("count", type=int, nargs="?", default=10_000, help="bodies to send")
    parser.add_argument("seed", type=int, nargs="?", default=1)
    given = parser.parse_args()
    count, seed = given.count, given.seed
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with logged_service(log) as at, httpx.Client(base_url=at.urls[0], timeout=60) as client:
            all_routes = routes(client)
            before, began = at.rss_mib(), time.perf_counter()
            faults = asyncio.run(fuzz(at.urls[0], all_routes, count, seed))
            seconds, after = time.perf_counter() - began, at.rss_mib()
            alive = client.get("/readyz").status_code
        log_text = log.read_text(errors="replace")
    print(f"{count} bodies of seed {seed} in {seconds:.0f} s, the slowest answer after {faults.slowest:.2f} s")
    print(f"memory {before:.0f} -> {after:.0f} MiB; /readyz afterwards {alive}")
    print(f"tracebacks in the log: {log_text.count('Traceback')}")
    statuses = sorted({status for _, status in faults.counts})
    print(f"{'':>45}" + "".join(f"{status:>7}" for status in statuses))
    for path in sorted({path for path, _ in faults.counts}):
        print(f"{path:>45}" + "".join(f"{faults.counts[path, status]:>7}" for status in statuses))
    print(f"answers that should not be: {len(faults.wrong)}")
    for line in faults.wrong[:_SHOWN]:
        print(f"  {line}")


if __name__ == "__main__":
    main()
