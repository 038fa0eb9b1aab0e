"""Scaleway's API over a socket: types and stock by zone in pages, and the public catalogue, with or without a key."""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.clouds.server import CloudServer, Reply, Request

KEY = "a-key-of-scaleway"
ECB = b"""<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01"><gesmes:subject>Reference rates</gesmes:subject>
<Cube><Cube time='2026-11-26'><Cube currency='USD' rate='1.1600'/><Cube currency='CHF' rate='0.9280'/></Cube></Cube>
</gesmes:Envelope>"""


def entry(eur: Any = 0.7875, gpus: Any = 1, gpu: str = "L4", gib: Any = 24, **fields: Any) -> dict[str, Any]:
    """One type as the API describes it; `fields` replace others."""
    info = {"gpu_manufacturer": "NVIDIA", "gpu_name": gpu, "gpu_memory": gib * 2**30} if gpus else None
    return {
        "monthly_price": eur * 730 if isinstance(eur, int | float) else None,
        "hourly_price": eur,
        "alt_names": [],
        "ncpus": 8,
        "ram": 48 * 2**30,
        "gpu": gpus or None,
        "gpu_info": info,
        "mig_profile": None,
        "arch": "x86_64",
        "scratch_storage_max_size": 0,
        "network": {"sum_internal_bandwidth": 20 * 10**9, "sum_internet_bandwidth": 20 * 10**9},
        "block_bandwidth": 2147483648,
        "capabilities": {"placement_groups": True},
        "end_of_service": False,
    } | fields


def catalogue_row(name: str, eur_per_minute: float, **price: Any) -> dict[str, Any]:
    """One row of the public catalogue; `price` replaces parts of the retail price."""
    retail = {"currency_code": "EUR", "units": 0, "nanos": round(eur_per_minute * 1e9)} | price
    return {
        "sku": "/compute/x",
        "product": "Instance",
        "variant": name,
        "locality": {"zone": "fr-par-2"},
        "price": {"retail_price": retail},
        "unit_of_measure": {"unit": "minute", "size": 1},
        "properties": {"instance": {"offer_id": name}},
    }


def usual() -> dict[str, dict[str, Any]]:
    """By zone: a full first page of types without GPUs in fr-par-2, whose GPU types are on the second."""
    plain = {f"DEV1-{number:02}": entry(0.0088, 0) for number in range(50)}
    big = entry(25.3308, 8, "H100-SXM", 80, ncpus=128, scratch_storage_max_size=12_800 * 10**9)
    return {
        "fr-par-1": {"L4-1-24G": entry()},
        "fr-par-2": {**plain, "L4-1-24G": entry(), "H100-SXM-8-80G": big},
        "pl-waw-2": {"L4-1-24G": entry()},
    }


@dataclass(slots=True, kw_only=True)
class Scaleway:
    """What the API answers; change it before a refresh. `words` are stock words by type, available unless named."""

    types: Any = field(default_factory=usual)
    words: dict[str, Any] = field(default_factory=lambda: {"H100-SXM-8-80G": "shortage"})
    catalogue: Any = field(default_factory=lambda: [catalogue_row("L4-1-24G", 0.013125)])
    counts_pages: bool = True

    def answer(self, request: Request) -> Reply:
        """The reply to one call."""
        if request.path == "/ecb.xml":
            return Reply(body=ECB, content_type="text/xml")
        if request.headers.get("x-auth-token") not in {None, KEY}:
            return Reply(status=401, body=b'{"message":"authentication is denied","type":"denied_authentication"}')
        if request.path.endswith("/public-catalog/products"):
            prices = [row for row in self.catalogue if row["locality"]["zone"] == request.parameter("zone")]
            return Reply(body=json.dumps({"products": prices, "total_count": len(prices)}).encode())
        parts = request.path.split("/")
        if parts[:4] != ["", "instance", "v1", "zones"] or parts[4] not in self.types:
            return Reply(status=404, body=b'{"message":"zone not found"}')
        rows = self.types[parts[4]]
        if parts[-1] == "availability":
            rows = {name: {"availability": self.words.get(name, "available")} for name in rows}
        page, size = int(request.parameter("page", "1")), int(request.parameter("per_page", "50"))
        names = list(rows)[(page - 1) * size : page * size]
        headers = {"X-Total-Count": str(len(rows))} if self.counts_pages else {}
        if page * size < len(rows):
            headers["Link"] = f'<{request.path}?page={page + 1}>; rel="next"'
        return Reply(body=json.dumps({"servers": {name: rows[name] for name in names}}).encode(), headers=headers)

    def server(self) -> CloudServer:
        """A server with these answers, and with the ECB's rates at `/ecb.xml`."""
        return CloudServer(self.answer)
