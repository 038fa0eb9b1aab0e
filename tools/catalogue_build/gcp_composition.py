"""GCP machines priced by their parts: N1 with attached GPUs, and families listed as components only.

An N1 machine is vCPUs + GiB of memory + GPUs, each with its own price. Memory of n1-standard is 3.75 GiB per vCPU, so its
host has a price per vCPU: from the unit prices, or from a listed total of such a machine minus its GPUs, whichever is newer
(spot hosts have differed by up to 2.8 times between the two). The date of a sum is that of its oldest part.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from gpuplan.catalog.model.money import MICROS_PER_USD, usd_micros
from gpuplan.catalog.model.n1_machines import N1_GIB_PER_VCPU, PROVIDER, N1Machine, n1_machines
from gpuplan.catalog.model.offer import Offer
from tools.catalogue_build.fact_tables import Harvest, Row, mapping_table, observed

N1_KINDS = ("on_demand", "spot")
#: One vCPU of n1-standard with its memory; derived from the components of the given table.
N1_HOST_VCPU = "n1-standard host per vCPU"
#: Local SSD is listed per GiB-month; a month is 730 h in GCP's price calculator.
HOURS_PER_MONTH = 730
LOCAL_SSD = ("block", "local")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The price of one unit of a component, and when it was read."""

    usd: Decimal
    observed_at: datetime
    approximately: bool
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The quantities of a machine's components, its price kinds, and the missing parts of its price."""

    name: str
    quantities: Mapping[str, Decimal]
    price_kinds: tuple[str, ...]
    missing: tuple[str, ...] = ()


Parts = Mapping[tuple[str, str, str], Part]


def components(component_rows: Iterable[Row], storage_rows: Iterable[Row]) -> dict[tuple[str, str, str], Part]:
    """The newest unit prices by (region, component, kind). Local SSD is `local_ssd/gib_hour`."""
    parts: dict[tuple[str, str, str], Part] = {}
    for row in component_rows:
        part = _part(row["usd_per_unit"], row["as_of"], f"{row['component']} ({row['as_of']})")
        _newest_only(parts, (row["region"], row["component"], row["price_kind"]), part)
    for row in storage_rows:
        if row["provider"] == PROVIDER and (row["storage_kind"], row["sku"]) == LOCAL_SSD:
            usd_per_hour = Decimal(row["usd_per_unit"]) / HOURS_PER_MONTH
            part = _part(usd_per_hour, row["as_of"], f"local SSD ({row['as_of']})")
            _newest_only(parts, (row["region"], "local_ssd/gib_hour", row["price_kind"]), part)
    return parts


def composed_machines(parts: Parts, listed: Iterable[Offer]) -> Harvest:
    """N1 + GPU machines and component-only families where every part is priced; a listed total takes precedence."""
    listed = list(listed)
    taken = {offer.key for offer in listed}
    parts = {**parts, **_n1_hosts(parts, listed)}
    harvest = Harvest()
    for machine in n1_machines():
        harvest.instance_types.append(machine.instance_type)
        harvest.offers += _composed(_n1_recipe(machine), parts, taken)
    harvest.counts["N1 offers composed from parts"] = len(harvest.offers)
    for row in mapping_table("gcp_machines_from_parts"):
        recipe = _machine_recipe(row)
        offers = _composed(recipe, parts, taken)
        label = "partial" if recipe.missing else "composed from parts"
        harvest.counts[f"{recipe.name} offers {label}"] = len(offers)
        harvest.offers += offers
    return harvest


def _part(usd: Decimal | str, as_of: str, source: str) -> Part:
    observed_at, approximately = observed(as_of)
    return Part(usd=Decimal(usd), observed_at=observed_at, approximately=approximately, source=source)


def _newest_only(parts: dict[tuple[str, str, str], Part], key: tuple[str, str, str], part: Part) -> None:
    if key not in parts or parts[key].observed_at < part.observed_at:
        parts[key] = part


def _n1_hosts(parts: Parts, listed: Iterable[Offer]) -> dict[tuple[str, str, str], Part]:
    """The newest price of an N1 host's vCPU with its memory, by (region, N1_HOST_VCPU, kind)."""
    hosts: dict[tuple[str, str, str], Part] = {}
    for region, name, price_kind in parts:
        if name == "component:n1/vcpu" and (region, "component:n1/gib_ram", price_kind) in parts:
            vcpu, gib = parts[region, name, price_kind], parts[region, "component:n1/gib_ram", price_kind]
            _newest_only(hosts, (region, N1_HOST_VCPU, price_kind), _n1_host_of_units(vcpu, gib))
    machines = {machine.name: machine for machine in n1_machines()}
    for offer in listed:
        machine = machines.get(offer.instance_type)
        gpu = parts.get((offer.region, f"component:gpu/{machine.gpu}", offer.price_kind)) if machine else None
        if machine and gpu:
            _newest_only(
                hosts, (offer.region, N1_HOST_VCPU, offer.price_kind), _n1_host_of_a_total(offer, machine, gpu)
            )
    return hosts


def _n1_host_of_units(vcpu: Part, gib: Part) -> Part:
    return Part(
        usd=vcpu.usd + N1_GIB_PER_VCPU * gib.usd,
        observed_at=min(vcpu.observed_at, gib.observed_at),
        approximately=vcpu.approximately or gib.approximately,
        source=f"{vcpu.source} + {gib.source}",
    )


def _n1_host_of_a_total(offer: Offer, machine: N1Machine, gpu: Part) -> Part:
    total = Decimal(offer.usd_micros_per_hour) / MICROS_PER_USD
    return Part(
        usd=(total - machine.gpus * gpu.usd) / machine.vcpus,
        observed_at=offer.observed_at,
        approximately=offer.observed_approximately,
        source=f"host of {offer.instance_type} ({offer.observed_at:%Y-%m}, its total less its GPUs)",
    )


def _composed(recipe: Recipe, parts: Parts, taken: set[tuple[str, str, str, str, str]]) -> list[Offer]:
    """The sum of quantity x unit price in each region and kind that prices every part."""
    offers = []
    for region in sorted({region for region, _, _ in parts}):
        for price_kind in recipe.price_kinds:
            part_quantities = [
                (parts.get((region, name, price_kind)), quantity) for name, quantity in recipe.quantities.items()
            ]
            priced = [(part, quantity) for part, quantity in part_quantities if part is not None]
            if len(priced) == len(part_quantities):
                offer = _sum_offer(recipe, region, price_kind, priced)
                offers += [offer] if offer.key not in taken else []
    return offers


def _sum_offer(recipe: Recipe, region: str, price_kind: str, priced: list[tuple[Part, Decimal]]) -> Offer:
    return Offer(
        provider=PROVIDER,
        region=region,
        instance_type=recipe.name,
        price_kind=price_kind,
        usd_micros_per_hour=usd_micros(sum((part.usd * quantity for part, quantity in priced), Decimal(0))),
        observed_at=min(part.observed_at for part, _ in priced),
        observed_approximately=any(part.approximately for part, _ in priced),
        partial=recipe.missing,
        source="sum of parts of the Cloud Billing Catalog: " + " + ".join(part.source for part, _ in priced),
    )


def _n1_recipe(machine: N1Machine) -> Recipe:
    return Recipe(
        name=machine.name,
        quantities={f"component:gpu/{machine.gpu}": Decimal(machine.gpus), N1_HOST_VCPU: Decimal(machine.vcpus)},
        price_kinds=N1_KINDS,
    )


def _machine_recipe(machine: Row) -> Recipe:
    quantities = {
        machine["gpu_component"]: Decimal(machine["gpus"]),
        machine["host_component"]: Decimal(1),
        "local_ssd/gib_hour": Decimal(machine["local_ssd_gib"]),
    }
    return Recipe(
        name=machine["instance_type"],
        quantities={name: quantity for name, quantity in quantities.items() if name and quantity},
        price_kinds=tuple(machine["price_kinds"].split()),
        missing=tuple(machine["missing"].split()),
    )
