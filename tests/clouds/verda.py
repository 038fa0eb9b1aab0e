"""Verda's API over a socket: a token for client credentials, instance types, stock by kind, and locations."""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.clouds.server import CloudServer, Reply, Request

CLIENT_ID, SECRET, TOKEN = "a-client-of-verda", "a-secret-of-verda", "a-token-of-verda"


def entry(
    name: str, usd: Any = "3.74", spot: Any = "1.87", gpus: Any = 1, model: str = "H100 80GB", **fields: Any
) -> dict[str, Any]:
    """One instance type as the API describes it; `fields` replace others."""
    return {
        "instance_type": name,
        "name": model,
        "model": model,
        "manufacturer": "NVIDIA",
        "cpu": {"description": "30 CPU", "number_of_cores": 30},
        "gpu": {"description": f"{gpus}x {model}", "number_of_gpus": gpus},
        "gpu_memory": {"size_in_gigabytes": 80},
        "memory": {"size_in_gigabytes": 120},
        "price_per_hour": usd,
        "spot_price": spot,
        "currency": "usd",
        "p2p": None,
    } | fields


def usual() -> list[Any]:
    """A type in stock on demand and on spot, one that is sold out, and one without accelerators."""
    return [
        entry("1H100.80S.30V"),
        entry("8H100.80S.176V", "29.92", "14.96", 8),
        entry("CPU.4V.16G", "0.03", "0.01", 0, "CPU"),
    ]


@dataclass(slots=True, kw_only=True)
class Verda:
    """What the account sees; change it before a refresh."""

    types: Any = field(default_factory=usual)
    on_demand: Any = field(default_factory=lambda: {"FIN-01": ["1H100.80S.30V"], "ICE-01": []})
    spot: Any = field(default_factory=lambda: {"ICE-01": ["1H100.80S.30V"]})
    locations: Any = field(default_factory=lambda: [{"code": "FIN-01"}, {"code": "FIN-02"}, {"code": "ICE-01"}])

    def answer(self, request: Request) -> Reply:
        """The reply to one call."""
        if request.path == "/oauth2/token":
            asked = json.loads(request.body)
            expected = {"grant_type": "client_credentials", "client_id": CLIENT_ID, "client_secret": SECRET}
            if request.method != "POST" or asked != expected:
                return Reply(status=401, body=b'{"code":"unauthorized_request","message":"Invalid client"}')
            return Reply(body=json.dumps({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600}).encode())
        if request.path == "/instance-types" and request.parameter("currency") == "usd":
            return Reply(body=json.dumps(self.types).encode())
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return Reply(status=401, body=b'{"code":"unauthorized_request","message":"Access token is missing"}')
        if request.path == "/locations":
            return Reply(body=json.dumps(self.locations).encode())
        if request.path == "/instance-availability":
            stock = {"true": self.spot, "false": self.on_demand}[request.parameter("is_spot")]
            rows = [{"location_code": place, "availabilities": names} for place, names in stock.items()]
            return Reply(body=json.dumps(rows).encode())
        return Reply(status=404, body=b"{}")

    def server(self) -> CloudServer:
        """A server with these answers."""
        return CloudServer(self.answer)
