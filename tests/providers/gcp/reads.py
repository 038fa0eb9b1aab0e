"""A small GCP of one region for tests, and the provider that reads it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from gpuplan.catalog.model.offer import Offer
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.contract import Provider, Rows
from gpuplan.providers.gcp import provider
from gpuplan.providers.gcp.api_calls import Patience
from tests.clouds.gcp import COMPUTE_ENGINE, GcpCatalogue, GcpServer, machine_item
from tests.clouds.gcp_skus import component_sku, sku
from tests.clouds.server import Request

REGION = "us-central1"
ZONE = "us-central1-a"
READ_AT = datetime(2026, 11, 21, 3, tzinfo=UTC)
HURRIED = Patience(seconds=60.0, attempt_seconds=20.0, first_wait_seconds=0.02, longest_wait_seconds=0.1)
#: For what never comes: nobody need wait for it longer than for a few attempts.
IN_VAIN = replace(HURRIED, seconds=0.3, longest_wait_seconds=0.02)
MICROS_PER_NANO = 1000


def small_catalogue() -> GcpCatalogue:
    """One region with G2 machines (an L4 at 0.50, a core at 0.03, a GiB at 0.002 USD an hour) and one TPU zone."""
    made = GcpCatalogue()
    made.add_machine(ZONE, machine_item("g2-standard-4", 4, 16, "nvidia-l4", 1))
    made.add_machine(ZONE, machine_item("g2-standard-24", 24, 96, "nvidia-l4", 2))
    made.skus[COMPUTE_ENGINE] += [
        component_sku("Nvidia L4 GPU", "on_demand", 500_000_000, REGION),
        component_sku("G2 Core", "on_demand", 30_000_000, REGION),
        component_sku("G2 Ram", "on_demand", 2_000_000, REGION),
        sku("TpuV5e running in Iowa", 1_200_000_000, [REGION], group="TPU"),
    ]
    made.skus["E000-3F24-B8AA"].append(sku("Tpu-v3 running in Iowa", 8_800_000_000, [REGION], group="TPU"))
    made.tpu_types[ZONE].append("v5litepod-4")
    return made


def add_parts(made: GcpCatalogue, kind: str, *names_and_nanos: tuple[str, int], region: str = REGION) -> None:
    """SKUs of components in one kind: `("A2 Core", 31_611_000)`."""
    made.skus[COMPUTE_ENGINE] += [component_sku(name, kind, nanos, region) for name, nanos in names_and_nanos]


def sources(server: GcpServer, **changed: Any) -> Sources:
    """How the server is reached, without credentials and without pace."""
    values: dict[str, Any] = {
        "gcp_compute_endpoint": server.url,
        "gcp_billing_endpoint": server.url,
        "gcp_tpu_endpoint": server.url,
        "gcp_project": "project",
        "anonymous": True,
        "paced": False,
    }
    return Sources(**{**values, **changed})


def provider_of(server: GcpServer, *, patience: Patience = HURRIED, **changed: Any) -> Provider:
    """The provider that reads a server."""
    return provider(sources(server, **changed), read_at=READ_AT, patience=patience)


@contextmanager
def serving(made: GcpCatalogue, **options: Any) -> Iterator[GcpServer]:
    """The server of a catalogue, running."""
    server = GcpServer(made, **options)
    with server.running():
        yield server


def rows_of(made: GcpCatalogue, region: str = REGION) -> Rows:
    """One region of a catalogue, read over the wire."""
    with serving(made) as server:
        return provider_of(server).fetch(region)


def price(rows: Rows, name: str, kind: str = "on_demand") -> int | None:
    """Micro-dollars per node-hour of a machine, None if it has no such price."""
    return next((o.usd_micros_per_hour for o in rows.offers if (o.instance_type, o.price_kind) == (name, kind)), None)


def is_unread(rows: Rows, name: str) -> bool:
    """Whether the list in which an instance type would stand did not answer."""
    return any(re.fullmatch(unread_type, name) for unread_type in rows.unread_types)


def kinds(rows: Rows, name: str) -> set[str]:
    """The kinds in which a machine is priced."""
    return {offer.price_kind for offer in rows.offers if offer.instance_type == name}


def zones(rows: Rows, name: str) -> set[str]:
    """The zones in which a machine is priced."""
    return {offer.zone for offer in rows.offers if offer.instance_type == name}


def what_counts(offer: Offer) -> tuple[object, ...]:
    """All of an offer but when and from where it was read."""
    return (
        *offer.key,
        offer.usd_micros_per_hour,
        offer.interruptions_per_hour,
        offer.modelled,
        offer.partial,
        offer.available,
    )


def asks_skus(request: Request) -> bool:
    """The price list of Compute Engine."""
    return request.path == f"/v1/services/{COMPUTE_ENGINE}/skus"


def asks_machines(request: Request) -> bool:
    """The list of machine types."""
    return request.path.endswith("/aggregated/machineTypes")


def asks_tpus(request: Request) -> bool:
    """The TPU API."""
    return request.path.startswith("/v2/")
