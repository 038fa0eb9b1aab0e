"""Hyperstack's API over a socket: flavors by region, a price book per GPU, and stock per size, to one key."""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.clouds.server import CloudServer, Reply, Request

KEY = "a-key-of-hyperstack"


def flavor(name: str, gpus: Any = 8, gpu: str = "H100-80G-PCIe", *, stock: Any = True, **fields: Any) -> dict[str, Any]:
    """One flavor as the API describes it; `fields` replace others."""
    return {
        "id": 1,
        "name": name,
        "cpu": 252,
        "ram": 1440,
        "disk": 100,
        "ephemeral": 6500,
        "gpu": gpu,
        "gpu_count": gpus,
        "stock_available": stock,
    } | fields


def price(name: str, value: Any = "2.40") -> dict[str, Any]:
    """One row of the price book."""
    return {"id": 1, "name": name, "value": value, "original_value": value, "discount_applied": False}


@dataclass(slots=True, kw_only=True)
class Hyperstack:
    """What the account sees; change it before a refresh."""

    flavors: Any = field(
        default_factory=lambda: {
            "CANADA-1": [flavor("n3-H100x8"), flavor("n1-cpu-small", 0, "")],
            "NORWAY-1": [flavor("n3-H100x8", stock=False), flavor("n3-L40x4", 4, "L40")],
        }
    )
    prices: Any = field(default_factory=lambda: [price("H100-80G-PCIe"), price("L40", "1.00"), price("vCPU", "0.01")])
    stocks: Any = field(
        default_factory=lambda: {
            ("CANADA-1", "H100-80G-PCIe"): {"1x": 40, "8x": 5},
            ("NORWAY-1", "L40"): {"1x": 3, "4x": 0},
        }
    )

    def answer(self, request: Request) -> Reply:
        """The reply to one call."""
        if request.headers.get("api_key") != KEY:
            return Reply(status=401, body=b'{"status":false,"message":"Unauthorized","error_reason":"unauthorized"}')
        if request.path == "/core/flavors":
            data = [{"gpu": "", "region_name": region, "flavors": rows} for region, rows in self.flavors.items()]
            return Reply(body=json.dumps({"status": True, "data": data}).encode())
        if request.path == "/pricebook":
            return Reply(body=json.dumps(self.prices).encode())
        if request.path == "/core/stocks":
            rows = [
                {"region": region, "stock-type": "GPU", "models": [{"model": model, "configurations": sizes}]}
                for (region, model), sizes in self.stocks.items()
            ]
            return Reply(body=json.dumps({"status": True, "stocks": rows}).encode())
        return Reply(status=404, body=b"{}")

    def server(self) -> CloudServer:
        """A server with these answers."""
        return CloudServer(self.answer)
