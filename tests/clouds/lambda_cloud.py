"""Lambda's API over a socket: instance types with their stock, and regions, to one bearer key."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.clouds.server import CloudServer, Reply, Request

KEY = "a-key-of-lambda"
REGIONS = {"us-west-1": "California, USA", "us-east-1": "Virginia, USA", "europe-central-1": "Germany"}


def entry(
    name: str,
    cents: Any = 129,
    gpus: Any = 1,
    gpu: Any = "A10 (24 GB PCIe)",
    regions: tuple[str, ...] = ("us-west-1",),
    **specs: Any,
) -> dict[str, Any]:
    """One instance type as the API describes it; `specs` replace sizes."""
    sizes = {"vcpus": 30, "memory_gib": 200, "storage_gib": 1400, "gpus": gpus} | specs
    return {
        "instance_type": {
            "name": name,
            "description": f"{gpus}x {gpu}",
            "gpu_description": gpu,
            "price_cents_per_hour": cents,
            "specs": sizes,
        },
        "regions_with_capacity_available": [{"name": region, "description": REGIONS.get(region)} for region in regions],
    }


def usual() -> dict[str, Any]:
    """A machine in stock, a sold-out one, and one without accelerators."""
    return {
        "gpu_1x_a10": entry("gpu_1x_a10"),
        "gpu_8x_h100_sxm5": entry(
            "gpu_8x_h100_sxm5", 3192, 8, "H100 (80 GB SXM5)", (), vcpus=208, memory_gib=1800, storage_gib=22528
        ),
        "cpu_4x_general": entry("cpu_4x_general", 20, 0, "N/A", ("us-east-1",)),
    }


@dataclass(slots=True, kw_only=True)
class Lambda:
    """What the account sees; change it before a refresh."""

    types: Any = field(default_factory=usual)
    regions: Mapping[str, str] = field(default_factory=lambda: dict(REGIONS))

    def answer(self, request: Request) -> Reply:
        """The reply to one call."""
        if request.headers.get("authorization") != f"Bearer {KEY}":
            fault = {"code": "global/invalid-api-key", "message": "API key was invalid.", "suggestion": ""}
            return Reply(status=401, body=json.dumps({"error": fault}).encode())
        if request.path.endswith("/instance-types"):
            return Reply(body=json.dumps({"data": self.types}).encode())
        if request.path.endswith("/regions"):
            rows = [{"name": name, "description": text} for name, text in self.regions.items()]
            return Reply(body=json.dumps({"data": rows}).encode())
        return Reply(status=404, body=b"{}")

    def server(self) -> CloudServer:
        """A server with these answers."""
        return CloudServer(self.answer)
