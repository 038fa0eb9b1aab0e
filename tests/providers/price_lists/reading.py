"""Read the list of a provider from its local server, for the tests of all providers with one list."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from gpuplan.providers.cloud_endpoints import RestAccount, Sources
from gpuplan.providers.cloud_registry import made
from gpuplan.providers.contract import Rows
from tests.clouds import hyperstack, lambda_cloud, runpod, scaleway, vast, verda
from tests.clouds.oci import Oracle
from tests.clouds.server import CloudServer

READ_AT = datetime(2026, 11, 27, 3, tzinfo=UTC)


class Cloud(Protocol):
    """What an account sees."""

    def server(self) -> CloudServer: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A provider with one list: how its cloud is made, the key of the account there, and the variable that holds it."""

    cloud: Callable[[], Cloud]
    variable: str = ""
    key: str = ""
    needs_key: bool = True


LISTED = {
    "hyperstack": Listed(cloud=hyperstack.Hyperstack, variable="HYPERSTACK_API_KEY", key=hyperstack.KEY),
    "lambda": Listed(cloud=lambda_cloud.Lambda, variable="LAMBDA_API_KEY", key=lambda_cloud.KEY),
    "oci": Listed(cloud=Oracle, needs_key=False),
    "runpod": Listed(cloud=runpod.RunPod, variable="RUNPOD_API_KEY", key=runpod.KEY),
    "scaleway": Listed(cloud=scaleway.Scaleway, variable="SCW_SECRET_KEY", key=scaleway.KEY, needs_key=False),
    "vast": Listed(cloud=vast.Vast, variable="VAST_API_KEY", key=vast.KEY, needs_key=False),
    "verda": Listed(cloud=verda.Verda, variable="VERDA_CLIENT_SECRET", key=verda.SECRET, needs_key=False),
}


def sources(name: str, url: str, key: str | None = "") -> Sources:
    """The provider at a local server, with the usual key, another, or none; other servers of the provider are there too."""
    listed = LISTED[name]
    given = (listed.key or None) if key == "" else key
    account = RestAccount(provider=name, endpoint=url, key_variable=listed.variable, key=given)
    return Sources(rest=(account,), paced=False, ecb_rates_url=f"{url}/ecb.xml", oci_shapes_url=f"{url}/shapes.json")


def read(name: str, server: CloudServer, key: str | None = "") -> dict[str, Rows]:
    """The rows of every region of the provider."""
    provider = made(name, sources(name, server.url, key), READ_AT)
    return {region: provider.fetch(region) for region in provider.regions()}


def prices(rows: Rows) -> dict[tuple[str, str], tuple[int, bool]]:
    """Micro-dollars per hour and whether it can be rented, by instance type and price kind."""
    return {
        (offer.instance_type, offer.price_kind): (offer.usd_micros_per_hour, offer.available) for offer in rows.offers
    }


def reasons(rows: dict[str, Rows]) -> list[str]:
    """Why entries of a list were quarantined."""
    return [f"{aside.what}: {aside.reason}" for region_rows in rows.values() for aside in region_rows.quarantined]
