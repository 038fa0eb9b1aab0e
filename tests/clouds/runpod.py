"""RunPod's REST v2 over a socket: GPUs with stock per size and cloud, and data centres, to one bearer key."""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.clouds.server import CloudServer, Reply, Request

KEY = "a-key-of-runpod"


def gpu(
    name: str = "NVIDIA GeForce RTX 4090",
    secure: Any = 0.69,
    community: Any = 0.34,
    stock: Any = "HIGH",
    centers: dict[str, str] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """One GPU as the API describes it; without data centres the field is omitted."""
    row: dict[str, Any] = {
        "id": name,
        "name": name,
        "pool": None,
        "manufacturer": "NVIDIA",
        "memory": 24,
        "secure": True,
        "community": True,
        "price": {"secure": secure, "community": community},
        "maxCount": {"secure": 8, "community": 8},
        "availability": stock,
        "cudaVersions": ["12.8"],
    }
    if centers is None:
        centers = {"EU-RO-1": stock}
    if centers:
        row["dataCenters"] = [{"id": key, "name": key, "availability": level} for key, level in centers.items()]
    return row | changes


@dataclass(slots=True, kw_only=True)
class RunPod:
    """What the account sees; stock of `stock_of_size` replaces that of every GPU for this number of GPUs."""

    gpus: Any = field(default_factory=lambda: [gpu()])
    stock_of_size: dict[str, str] = field(default_factory=dict)
    centers: tuple[str, ...] = ("EU-RO-1", "US-KS-2")

    def answer(self, request: Request) -> Reply:
        """The reply to one call."""
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return _problem(401, "Unauthorized")
        if request.path == "/v2/catalog/datacenters":
            rows = [{"id": name, "name": name, "region": "EUROPE"} for name in self.centers]
            return Reply(body=json.dumps({"dataCenters": rows}).encode())
        if request.path != "/v2/catalog/gpus":
            return _problem(404, "Not Found")
        if request.parameter("include") and not request.parameter("product"):
            return _problem(400, "include=AVAILABILITY needs product")
        gpus = self.gpus
        level = self.stock_of_size.get(request.parameter("count", "1"))
        if level is not None:
            gpus = [row | {"availability": level, "dataCenters": []} for row in gpus]
        return Reply(body=json.dumps({"gpus": gpus}).encode())

    def server(self) -> CloudServer:
        """A server with these answers."""
        return CloudServer(self.answer)


def _problem(status: int, title: str) -> Reply:
    body = json.dumps({"title": title, "status": status, "detail": title}).encode()
    return Reply(status=status, body=body, content_type="application/problem+json")
