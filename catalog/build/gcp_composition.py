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
        harvest.add(_composed(_n1_type(shape), parts, _n1_bill(shape), ("on_demand", "spot"), (), taken))
    harvest.counts["N1 offers composed from parts"] = len(harvest.offers)
    for machine in mapping_table("gcp_machines_from_parts"):
        kinds, missing = machine["price_kinds"].split(), tuple(machine["missing"].split())
        made = _composed(_listed_type(machine), parts, _machine_bill(machine), kinds, missing, taken)
        label = "partial" if missing else "composed from parts"
        made.counts[f"{machine['instance_type']} offers {label}"] = len(made.offers)
        harvest.add(made)
    return harvest


def _part(usd: Decimal | str, as_of: str, source: str) -> Part:
    observed_at, approximately = observed(as_of)
    return Part(usd=Decimal(usd), observed_at=observed_at, approximately=approximately, source=source)


def _keep_newest(parts: dict[tuple[str, str, str], Part], key: tuple[str, str, str], part: Part) -> None:
    if key not in parts or parts[key].observed_at < part.observed_at:
        parts[key] = part


def _composed(
    kind_of_machine: InstanceType,
    parts: Parts,
    bill: Mapping[str, Decimal],
    kinds: Iterable[str],
    missing: tuple[str, ...],
    taken: set[tuple[str, str, str, str, str]],
) -> Harvest:
    """Offers of one machine: the sum of quantity x unit price in each region and kind that prices every part."""
    harvest = Harvest()
    regions = sorted({region for region, _, _ in parts})
    for region in regions:
        for price_kind in kinds:
            found = [(parts.get((region, name, price_kind)), quantity) for name, quantity in bill.items()]
            priced = [(part, quantity) for part, quantity in found if part is not None]
            offer = _sum_offer(kind_of_machine, region, price_kind, priced, missing) if len(priced) == len(bill) else None
            if offer is not None and offer.key not in taken:
                harvest.offers.append(offer)
    harvest.instance_types = [kind_of_machine] if harvest.offers else []
    return harvest


def _sum_offer(
    machine: InstanceType, region: str, price_kind: str, priced: list[tuple[Part, Decimal]], missing: tuple[str, ...]
) -> Offer:
    return Offer(
        provider=PROVIDER,
        region=region,
        instance_type=machine.name,
        price_kind=price_kind,
        usd_micros_per_hour=usd_micros(sum((part.usd * quantity for part, quantity in priced), Decimal(0))),
        observed_at=min(part.observed_at for part, _ in priced),
        observed_approximately=any(part.approximately for part, _ in priced),
        partial=missing,
        source="sum of parts of the Cloud Billing Catalog: " + " + ".join(part.source for part, _ in priced),
    )


def _n1_bill(shape: Row) -> dict[str, Decimal]:
    vcpus = Decimal(shape["vcpus"])
    return {
        f"component:gpu/{shape['gpu']}": Decimal(shape["gpus"]),
        "component:n1/vcpu": vcpus,
        "component:n1/gib_ram": vcpus * N1_GIB_PER_VCPU,
    }


def _n1_type(shape: Row) -> InstanceType:
    """Raises `ValueError` for a shape with more vCPUs than that number of GPUs may have."""
    vcpus = int(shape["vcpus"])
    if vcpus > int(shape["max_vcpus"]):
        raise ValueError(f"{shape['gpus']} x {shape['gpu']} may have {shape['max_vcpus']} vCPUs at most, not {vcpus}")
    return InstanceType(
        provider=PROVIDER,
        name=f"n1-standard-{vcpus}+{shape['gpus']}x{shape['gpu']}",
        accelerator=shape["accelerator"],
        accelerator_count=Fraction(shape["gpus"]),
        vcpus=float(vcpus),
        ram_gib=float(vcpus * N1_GIB_PER_VCPU),
        scaleup_domain=int(shape["gpus"]),
        network_gbps=next(gbps for least, gbps in N1_NETWORK_GBPS if vcpus >= least),
        fabric="tcp",
        clusters=True,
        source=N1_SOURCE,
        as_of=N1_AS_OF,
    )


def _machine_bill(machine: Row) -> dict[str, Decimal]:
    bill = {
        machine["gpu_component"]: Decimal(machine["gpus"]),
        machine["host_component"]: Decimal(1),
        "local_ssd/gib_hour": Decimal(machine["local_ssd_gib"]),
    }
    return {name: quantity for name, quantity in bill.items() if name and quantity}


def _listed_type(machine: Row) -> InstanceType:
    gpus = int(machine["gpus"])
    return InstanceType(
        provider=PROVIDER,
        name=machine["instance_type"],
        accelerator=machine["accelerator"],
        accelerator_count=Fraction(gpus),
        vcpus=float(machine["vcpus"]),
        ram_gib=float(machine["ram_gib"]),
        scaleup_domain=gpus,
        network_gbps=float(machine["network_gbps"]),
        clusters=True,
        sold_on_demand=machine["sold_on_demand"] == "yes",
        source=machine["source"],
        as_of=N1_AS_OF,
    )
