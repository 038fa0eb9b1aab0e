"""Oracle's public price list and list of shapes over a socket."""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.clouds.server import CloudServer, Reply, Request


def part(number: str, usd: Any, name: str = "H100", **fields: Any) -> dict[str, Any]:
    """One part of the price list; `fields` replace others."""
    return {
        "partNumber": number,
        "displayName": f"Compute - GPU - {name}",
        "metricName": "GPU Per Hour",
        "serviceCategory": "Compute - GPU",
        "currencyCodeLocalizations": [
            {"currencyCode": "USD", "prices": [{"model": "PAY_AS_YOU_GO", "value": usd}]},
            {"currencyCode": "EUR", "prices": [{"model": "PAY_AS_YOU_GO", "value": 1.0}]},
        ],
    } | fields


def shape(name: str, number: str, gpus: Any = 8, gb: Any = 80, **fields: Any) -> dict[str, Any]:
    """One shape of the cost estimator; `fields` replace others. The quantity of its part is in OCPUs and says nothing."""
    return {
        "name": name,
        "hidden": False,
        "status": "ACTIVE",
        "allowPreemptible": False,
        "bundleMemoryQty": 2048,
        "gpuQty": gpus,
        "gpuMemoryQty": gb * gpus if isinstance(gpus, int) else gb,
        "shapeType": "bm",
        "subType": "gpu",
        "products": [{"partNumber": number, "qty": 81.6, "type": {"value": "ocpu"}}],
    } | fields


@dataclass(slots=True, kw_only=True)
class Oracle:
    """Both lists; change them before a refresh."""

    parts: Any = field(
        default_factory=lambda: [
            part("B98415", 10.0),
            part("B89734", 2.95, "V100"),
            part("B90000", 3.0, "H100", serviceCategory="VMware"),
            part("B91111", 0.03, "E4", serviceCategory="Compute - Virtual Machine", metricName="OCPU Per Hour"),
        ]
    )
    shapes: Any = field(
        default_factory=lambda: [
            shape("BM.GPU.H100.8", "B98415"),
            shape("VM.GPU3.1", "B89734", 1, 16, allowPreemptible=True, shapeType="vm", subType={"value": "gpu"}),
            shape("BM.GPU.H100T.8", "B98415", hidden=True),
            shape("VM.Standard.E4", "B91111", None, 1, subType="flexible"),
        ]
    )

    def answer(self, request: Request) -> Reply:
        """The reply to one call."""
        if request.path == "/products/" and request.parameter("currencyCode") == "USD":
            return Reply(body=json.dumps({"lastUpdated": "2026-10-01T00:00:00Z", "items": self.parts}).encode())
        if request.path == "/shapes.json":
            return Reply(body=json.dumps({"items": self.shapes}).encode())
        return Reply(status=404, body=b"{}")

    def server(self) -> CloudServer:
        """A server with both lists."""
        return CloudServer(self.answer)
