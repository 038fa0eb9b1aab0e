"""GCP machines that are priced in parts: N1 with attached GPUs, and families listed as components only.

An N1 machine is vCPUs + GiB of memory + GPUs, each with its own price. Memory of n1-standard is
3.75 GiB per vCPU; the vCPUs a machine may have per number of GPUs, and its network, are from
https://cloud.google.com/compute/docs/gpus and .../docs/general-purpose-machines#n1_machines. The
date of a sum is that of its oldest part.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from catalog.accelerators import accelerators
from catalog.build.account import Harvest
from catalog.build.fact_tables import Row, mapping_table
from catalog.build.observation import observed
from catalog.money import usd_micros
from catalog.offer import InstanceType, Offer

PROVIDER = "gcp"
N1_GIB_PER_VCPU = Decimal("3.75")
N1_SOURCE = "https://cloud.google.com/compute/docs/gpus https://cloud.google.com/compute/docs/general-purpose-machines"
N1_AS_OF = "2026-11"
#: Egress limit of N1 in Gbit/s from so many vCPUs on, default networking tier.
N1_NETWORK_GBPS = ((16, 32.0), (8, 16.0), (2, 10.0))
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
    """How much of which component a machine is, in which price kinds, and what of its price is missing."""

    name: str
    quantities: Mapping[str, Decimal]
    price_kinds: tuple[str, ...]
    missing: tuple[str, ...] = ()


Parts = Mapping[tuple[str, str, str], Part]


def components(component_rows: Iterable[Row], storage_rows: Iterable[Row]) -> dict[tuple[str, str, str], Part]:
    """Unit prices by (region, component, kind); of several the newest. Local SSD is `local_ssd/gib_hour`."""
    parts: dict[tuple[str, str, str], Part] = {}
    for row in component_rows:
        part = _part(row["usd"], row["as_of"], f"{row['component']} ({row['as_of']})")
        _keep_newest(parts, (row["region"], row["component"], row["price_kind"]), part)
    for row in storage_rows:
        if row["provider"] == PROVIDER and (row["kind"], row["sku"]) == LOCAL_SSD:
            usd_per_hour = Decimal(row["usd"]) / HOURS_PER_MONTH
            part = _part(usd_per_hour, row["as_of"], f"local SSD ({row['as_of']})")
            _keep_newest(parts, (row["region"], "local_ssd/gib_hour", row["price_kind"]), part)
    return parts


def composed_machines(parts: Parts, listed: Iterable[Offer]) -> Harvest:
    """N1 + GPU machines and component-only families, wherever every part is priced; a listed total wins."""
    taken = {offer.key for offer in listed}
    harvest = Harvest()
    for shape in mapping_table("n1_shapes"):
        recipe = _n1_recipe(shape)
        harvest.instance_types.append(_n1_type(shape, recipe.name))
        harvest.offers += _composed(recipe, parts, taken)
    harvest.counts["N1 offers composed from parts"] = len(harvest.offers)
    for machine in mapping_table("gcp_machines_from_parts"):
        recipe = _machine_recipe(machine)
        offers = _composed(recipe, parts, taken)
        label = "partial" if recipe.missing else "composed from parts"
        harvest.counts[f"{recipe.name} offers {label}"] = len(offers)
        harvest.offers += offers
    return harvest


def _part(usd: Decimal | str, as_of: str, source: str) -> Part:
    observed_at, approximately = observed(as_of)
    return Part(usd=Decimal(usd), observed_at=observed_at, approximately=approximately, source=source)


def _keep_newest(parts: dict[tuple[str, str, str], Part], key: tuple[str, str, str], part: Part) -> None:
    if key not in parts or parts[key].observed_at < part.observed_at:
        parts[key] = part


def _composed(recipe: Recipe, parts: Parts, taken: set[tuple[str, str, str, str, str]]) -> list[Offer]:
    """The sum of quantity x unit price in each region and kind that prices every part."""
    offers = []
    for region in sorted({region for region, _, _ in parts}):
        for price_kind in recipe.price_kinds:
            found = [(parts.get((region, name, price_kind)), quantity) for name, quantity in recipe.quantities.items()]
            priced = [(part, quantity) for part, quantity in found if part is not None]
            if len(priced) == len(found):
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


def _n1_recipe(shape: Row) -> Recipe:
    """Raises `ValueError` for a shape with more vCPUs than that number of GPUs may have."""
    vcpus = Decimal(shape["vcpus"])
    if vcpus > int(shape["max_vcpus"]):
        raise ValueError(f"{shape['gpus']} x {shape['gpu']} may have {shape['max_vcpus']} vCPUs at most, not {vcpus}")
    return Recipe(
        name=f"n1-standard-{vcpus}+{shape['gpus']}x{shape['gpu']}",
        quantities={
            f"component:gpu/{shape['gpu']}": Decimal(shape["gpus"]),
            "component:n1/vcpu": vcpus,
            "component:n1/gib_ram": vcpus * N1_GIB_PER_VCPU,
        },
        price_kinds=("on_demand", "spot"),
    )


def _n1_type(shape: Row, name: str) -> InstanceType:
    """The GPUs talk over their own link, one direction: what the shape states, else the vendor's total, else PCIe."""
    vcpus, gpus = int(shape["vcpus"]), int(shape["gpus"])
    gpu = accelerators()[shape["accelerator"]]
    whole_gbs = gpu.link_gbs / 2 if gpu.link_gbs else gpu.pcie_gbs
    link_gbs = float(shape["link_gbs"]) if shape["link_gbs"] else whole_gbs
    return InstanceType(
        provider=PROVIDER,
        name=name,
        accelerator=shape["accelerator"],
        accelerator_count=Fraction(gpus),
        vcpus=float(vcpus),
        ram_gib=float(vcpus * N1_GIB_PER_VCPU),
        intranode_link=gpu.link if gpus > 1 else "",
        intranode_gbs=link_gbs if gpus > 1 else None,
        scaleup_domain=gpus,
        network_gbps=next(gbps for least, gbps in N1_NETWORK_GBPS if vcpus >= least),
        fabric="tcp",
        clusters=True,
        source=f"{N1_SOURCE} ({shape['link_note']})" if shape["link_note"] else N1_SOURCE,
        as_of=N1_AS_OF,
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
