"""Nebius: platforms and presets of each region, priced one by one by the calculator, on demand and preemptible.

Its interface is gRPC (https://github.com/nebius/api, of which `messages.csv` has what is used). An account has one
project or more per region; a region without one is not read. The calculator needs a project and creates nothing.
Preemptible prices float, as often as every 15 minutes. Stock is what the capacity advisor says of each region, fabric,
platform and preset, clipped by the account's quotas: a reached quota says nothing about stock.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from threading import Lock
from typing import Any

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.cloud_endpoints import Sources, rest_account
from gpuplan.providers.contract import Provider, Quarantined
from gpuplan.providers.feed_client import Refused
from gpuplan.providers.price_lists.field_reading import WrongField, accelerator_names, amount, text
from gpuplan.providers.price_lists.grpc_client import GrpcClient
from gpuplan.providers.price_lists.list_provider import RegionalListProvider
from gpuplan.providers.price_lists.listed_machines import ListedMachine, Listing, StockLevel, stock_note

NAME = "nebius"
IAM, COMPUTE = "cpl.iam", "compute"
CALCULATOR, ADVISOR = "api.calculator.billing-data-plane", "capacity-advisor.billing-cpl"
TENANTS, PROJECTS = "nebius.iam.v1.TenantService/List", "nebius.iam.v1.ProjectService/List"
PLATFORMS = "nebius.compute.v1.PlatformService/List"
ESTIMATE = "nebius.billing.v1alpha1.CalculatorService/Estimate"
ADVICE = "nebius.capacity.v1.ResourceAdviceService/List"
#: No rate is documented; a region takes some thirty calls.
CALLS_PER_SECOND = 10
ON_DEMAND, SPOT = "on_demand", "spot"
#: What a preemptible machine has to say: stop it, and a priority of 1 to 5, on which no price depends as far as documented.
PREEMPTIBLE = {"on_preemption": 1, "priority": 3}
#: Gbit/s between machines without InfiniBand, and with it (8 ports of 400 on every host of the catalogue).
NETWORK_GBPS, FABRIC, FABRIC_GBPS = 10.0, "InfiniBand", 3200.0
FRESH = 1
#: AvailabilityLevel and the field of ResourceAdviceStatus by price kind.
LEVELS = {1: "high", 2: "medium", 3: "low", 4: "limit reached"}
ADVICE_FIELD = {ON_DEMAND: "on_demand", SPOT: "preemptible"}

type Place = tuple[str, str, str, str]
type Price = Callable[[str, str, str], str]


@dataclass(slots=True)
class Account:
    """The projects of an account by region, and what its advisor says of (region, platform, preset, kind); read once."""

    client: GrpcClient
    projects: dict[str, str]
    stock: dict[Place, list[Mapping[str, Any]]]
    notes: tuple[str, ...] = ()


def provider(sources: Sources, *, read_at: datetime) -> Provider:
    """Nebius through `sources`, every offer observed at `read_at`."""
    account = rest_account(sources, NAME)
    client = GrpcClient(account, __name__, calls_per_second=CALLS_PER_SECOND, paced=sources.paced)
    read: list[Account] = []
    lock = Lock()

    def account_rows() -> Account:
        with lock:
            if not read:
                read.append(_account(client))
            return read[0]

    return RegionalListProvider(
        name=NAME,
        read_regions=lambda: tuple(account_rows().projects),
        read=lambda region: _read(account_rows(), region),
        read_at=read_at,
        source=f"{account.endpoint.rstrip('/')} {ESTIMATE}",
        network_gbps=NETWORK_GBPS,
        fabric=FABRIC,
        fabric_gbps=FABRIC_GBPS,
    )


def listing(region: str, platforms: list[dict[str, Any]], price: Price, account: Account) -> Listing:
    """The presets with GPUs of a region. `price` asks for a platform, preset and price kind."""
    machines: list[ListedMachine] = []
    quarantined: list[Quarantined] = []
    for platform in platforms:
        for name, preset, kind in _presets(platform):
            machine = f"{name} {preset.get('name', '')}"
            try:
                usd = amount({"cost": price(name, text(preset, "name"), kind)}, "cost")
                machines.append(_machine(region, platform, preset, (kind, usd), account))
            except (WrongField, Refused) as error:
                quarantined.append(Quarantined(what=machine, reason=str(error)))
    on_demand = {row.name: row.usd_per_hour for row in machines if row.price_kind == ON_DEMAND}
    machines = [row for row in machines if row.price_kind == ON_DEMAND or _is_spot(row, on_demand)]
    reached = sum(row.levels != () and all(level.word == LEVELS[4] for level in row.levels) for row in machines)
    quota = (f"a quota is reached for {reached} of {len(machines)} machines in {region}",) if reached else ()
    return Listing(
        regions=(region,),
        machines=tuple(machines),
        quarantined=tuple(quarantined),
        kinds_by_place=frozenset({ON_DEMAND, SPOT}),
        notes=(*stock_note(machines, f"in {region}"), *quota, *account.notes),
    )


def _read(account: Account, region: str) -> Listing:
    asked = ("ListPlatforms", {"parent_id": account.projects[region]})
    platforms = list(account.client.pages(COMPUTE, PLATFORMS, asked, "Platforms"))
    return listing(region, platforms, partial(_estimate, account.client, account.projects[region]), account)


def _account(client: GrpcClient) -> Account:
    """The account's projects and stock. Raises `ProviderFailure` without a project."""
    projects: dict[str, str] = {}
    stock: dict[Place, list[Mapping[str, Any]]] = {}
    notes: list[str] = []
    for tenant in client.pages(IAM, TENANTS, ("ListTenants", {}), "Containers"):
        parent = ("ListByParent", {"parent_id": tenant["metadata"]["id"]})
        for project in client.pages(IAM, PROJECTS, parent, "Containers"):
            region = project.get("status", {}).get("region")
            if region:
                projects.setdefault(region, project["metadata"]["id"])
        try:
            for row in client.pages(ADVISOR, ADVICE, parent, "AdviceList"):
                for place, availability in _availabilities(row):
                    stock.setdefault(place, []).append(availability)
        except ProviderFailure as failure:
            notes.append(f"stock is not known: {failure}")
    if not projects:
        raise ProviderFailure(f"{NAME}: the account has no project with a region, which the calculator needs")
    return Account(client, projects, stock, tuple(notes))


def _availabilities(row: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    spec, status = row.get("spec", {}), row.get("status", {})
    machine = spec.get("compute_instance", {})
    for kind, field in ADVICE_FIELD.items():
        preset = machine.get("preset", {}).get("name", "")
        yield (spec.get("region", ""), machine.get("platform", ""), preset, kind), status.get(field, {})


def _estimate(client: GrpcClient, project: str, platform: str, preset: str, kind: str) -> str:
    """US dollars per hour of a machine as the calculator writes them. Raises `Refused` for what it does not price."""
    spec: dict[str, Any] = {"resources": {"platform": platform, "preset": preset}}
    if kind == SPOT:
        spec["preemptible"] = PREEMPTIBLE
    instance = {"metadata": {"parent_id": project}, "spec": spec}
    asked = ("EstimateRequest", {"resource_spec": {"compute_instance_spec": instance}})
    answer = client.call(CALCULATOR, ESTIMATE, asked, "Estimate")
    cost = answer.get("hourly_cost", {}).get("general", {}).get("total", {}).get("cost")
    if cost is None:
        raise Refused(f"{ESTIMATE}: hourly_cost.general.total.cost is missing")
    return str(cost)


def _presets(platform: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The presets with GPUs of a platform, on demand and, where the platform allows it, preemptible."""
    preemptible = platform.get("status", {}).get("allowed_for_preemptibles")
    for preset in platform.get("spec", {}).get("presets", ()):
        if preset.get("resources", {}).get("gpu_count"):
            for kind in (ON_DEMAND, SPOT) if preemptible else (ON_DEMAND,):
                yield platform.get("metadata", {}).get("name", ""), preset, kind


def _machine(
    region: str, platform: Mapping[str, Any], preset: Mapping[str, Any], offer: tuple[str, Decimal], account: Account
) -> ListedMachine:
    """One preset at a price kind and price. Raises `WrongField`."""
    name, size, (kind, usd) = text(platform["metadata"], "name"), preset["resources"], offer
    advice = account.stock.get((region, name, preset["name"], kind), ())
    fresh = [row for row in advice if row.get("data_state") == FRESH]
    levels = tuple(
        StockLevel(region=region, word=LEVELS[row["availability_level"]], machines=row.get("available", 0))
        for row in fresh
        if row.get("availability_level") in LEVELS
    )
    known = any(level.word != LEVELS[4] for level in levels)
    return ListedMachine(
        name=f"{name} {preset['name']}",
        accelerator=accelerator_names(__name__).get(name, name),
        devices=size["gpu_count"],
        usd_per_hour=usd,
        price_kind=kind,
        region=region,
        in_stock=not known or any(level.machines for level in levels),
        stock_known=known,
        levels=levels,
        vcpus=size.get("vcpu_count"),
        ram_gib=size.get("memory_gibibytes"),
        gib_per_device=platform["spec"].get("gpu_memory_gigabytes"),
        joins=bool(preset.get("allow_gpu_clustering")),
    )


def _is_spot(machine: ListedMachine, on_demand: Mapping[str, Decimal]) -> bool:
    """Whether a preemptible price is an offer: neither zero nor a copy of that on demand."""
    return machine.usd_per_hour not in {Decimal(0), on_demand.get(machine.name)}
