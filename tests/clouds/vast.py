"""Vast.ai's search over a socket: free offers of hosts, filtered, sorted and cut off, with or without a key."""

import json
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.clouds.server import CloudServer, Reply, Request

KEY = "a-key-of-vast"
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "gte": operator.ge,
    "lte": operator.le,
    "in": lambda value, those: value in those,
}


def offer(
    number: int, gpu: str = "H100 SXM", gpus: Any = 8, usd: Any = 20.0, place: Any = "Iceland, IS", **fields: Any
) -> dict[str, Any]:
    """One offer as the API describes it; `fields` replace others."""
    return {
        "id": 1_000_000 + number,
        "machine_id": number,
        "host_id": number,
        "gpu_name": gpu,
        "num_gpus": gpus,
        "gpu_frac": 1.0,
        "gpu_ram": 81559,
        "cpu_cores": None,
        "cpu_cores_effective": 192.0,
        "cpu_ram": 2063842,
        "disk_space": 8000.0,
        "storage_cost": 0.15,
        "dph_base": usd,
        "dph_total": usd + 0.02 if isinstance(usd, int | float) else usd,
        "min_bid": usd * 0.6 if isinstance(usd, int | float) else usd,
        "inet_up_cost": 0.004,
        "inet_down_cost": 0.004,
        "reliability": 0.998,
        "verification": "verified",
        "datacenter": True,
        "geolocation": place,
        "rentable": True,
        "rented": False,
        "cluster_id": None,
    } | fields


def usual() -> list[Any]:
    """Two hosts of a country, of which the first is cheaper, one without a place, and one that is not verified."""
    return [
        offer(1, usd=18.0),
        offer(2, usd=20.0),
        offer(3, "RTX 4090", 1, 0.35, None, gpu_ram=24564),
        offer(4, "RTX 4090", 1, 0.10, "Sweden, SE", gpu_ram=24564, verification="unverified"),
    ]


@dataclass(slots=True, kw_only=True)
class Vast:
    """The market; change it before a refresh. No answer has more than `cut` offers."""

    offers: Any = field(default_factory=usual)
    cut: int = 3000

    def answer(self, request: Request) -> Reply:
        """The reply to one call."""
        if request.headers.get("authorization") not in {None, f"Bearer {KEY}"}:
            return Reply(status=404, body=b'{"success":false,"error":"not_found","msg":"Invalid user key"}')
        if request.path != "/api/v0/bundles/" or request.method != "POST":
            return Reply(status=404, body=b"{}")
        if not isinstance(self.offers, list):
            return Reply(body=json.dumps({"offers": self.offers}).encode())
        asked = json.loads(request.body)
        assert asked["type"] in {"on-demand", "ondemand"}
        matching = [row for row in self.offers if _matches(row, asked)]
        if asked.get("order") == [["dph_total", "asc"]]:
            matching.sort(key=lambda row: row["dph_total"] if isinstance(row["dph_total"], int | float) else 0.0)
        return Reply(body=json.dumps({"offers": matching[: min(self.cut, asked["limit"])]}).encode())

    def server(self) -> CloudServer:
        """A server with these answers."""
        return CloudServer(self.answer)


def _matches(row: dict[str, Any], asked: dict[str, Any]) -> bool:
    """Whether an offer passes every filter on a field that it has as a number or text; the server filters verified hosts."""
    conditions = {name: given for name, given in asked.items() if isinstance(given, dict) and name in row}
    return all(
        OPERATORS[sign](row[name], value)
        for name, condition in conditions.items()
        for sign, value in condition.items()
        if isinstance(row[name], int | float)
    )
