"""Cost of access control: audit record and count of a plan, key look-up, requests with and without a key.

Run from the repository root: python -m tools.benchmarks.access_cost [ROUNDS]. Everything runs in this process on a
temporary SQLite file. Prints a table, asserts nothing.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from statistics import median

from fastapi.testclient import TestClient

from gpuplan.api.http.authentication import access_by
from gpuplan.api.http.http_service import create_service
from gpuplan.api.observability.log_redaction import scrub
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.security.access_settings import AccessSettings, Variables
from gpuplan.api.services.composition import open_services
from gpuplan.catalog.store.access_store import Charge
from gpuplan.catalog.store.audit_log import AuditRecord

NEVER = 2**31 - 1


def microseconds(call: Callable[[int], object], rounds: int) -> float:
    """The median of single calls, each with a number of its own."""
    took = []
    for number in range(rounds):
        began = time.perf_counter()
        call(number)
        took.append(time.perf_counter() - began)
    return median(took) * 1e6


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory() as folder:
        gpuplan = open_services(Environment(database_url=f"sqlite:///{folder}/gpuplan.sqlite3"))
        store, now = gpuplan.store, datetime.now(UTC)
        key = gpuplan.api_keys.make({"name": "bench", "scope": "plan"}).key
        limits = Variables(requests_per_minute=NEVER)
        access = access_by(store.access, AccessSettings(variables=limits, oidc=None, admin_key=None))
        record = AuditRecord(
            at=now, identity="key:1", name="x", via="key", action="plan", subject="p", outcome="planned",
            request_id="r", address="127.0.0.1",
        )  # fmt: skip
        document = {"outcome": "planned", "filler": "x" * 8_000}

        def save(prefix: str, charge: Charge | None) -> Callable[[int], object]:
            return lambda number: store.save_plan(f"{prefix}{number}", "s", {}, document, now, charge=charge)

        authenticator = access.authenticator
        if authenticator is None:
            raise TypeError("access by keys has a gate")
        authenticator.identify(key)
        event = {"event": "request", "path": "/v1/plans/plan-6afeea89f2e44d38325e", "identity": "key:0123456789ab"}
        rows = [
            ("a plan written", microseconds(save("a", None), rounds)),
            ("a plan written, recorded, counted", microseconds(save("b", Charge(record=record)), rounds)),
            ("a key recognised from memory", microseconds(lambda _: authenticator.known(key), rounds)),
            ("a key looked up in the store", microseconds(lambda _: authenticator.identify(key), rounds)),
            ("a log line looked through for secrets", microseconds(lambda _: scrub(None, "", dict(event)), rounds)),
        ]
        asked = {"Authorization": f"Bearer {key}"}
        for name, app, headers in (
            ("open", create_service(gpuplan), {}),
            ("with a key", create_service(gpuplan, access=access), asked),
        ):
            with TestClient(app) as client:
                client.get("/v1/presets", headers=headers)

                def get(_: int, client: TestClient = client, headers: dict[str, str] = headers) -> object:
                    return client.get("/v1/presets", headers=headers)

                rows.append((f"GET /v1/presets, {name} (test client and all)", microseconds(get, rounds)))
        for name, took in rows:
            print(f"{name:<55} {took:9.1f} µs")


if __name__ == "__main__":
    main()
