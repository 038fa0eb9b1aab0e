"""Prices and machines of neoclouds and marketplaces: one listed row is a machine, a price and what is known of its place.

Their price lists name a machine and its price, mostly without a region, a network or an API name. Mapping tables under
`facts/` state the rest: names (`neocloud_names`), networks (`neocloud_networks`), and how well a sale is documented
(`neocloud_evidence`).
"""

from collections.abc import Iterable
from dataclasses import fields, replace
from decimal import Decimal
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache

from gpuplan.catalog.model.accelerators import find_accelerator
from gpuplan.catalog.model.exchange_rates import USD, stated_rates
from gpuplan.catalog.model.money import usd_micros
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.model.regions import UNKNOWN_REGION
from gpuplan.catalog.runtime.errors import UnusableInput
from tools.catalogue_build.fact_tables import Harvest, Row, mapping_table, observed

#: Our words for a link inside a machine. A bridge joins pairs of cards only, which the accelerator's row states.
LINKS = {
    "NVLink": "nvlink",
    "NVLink bridge": "nvlink-bridge",
    "PCIe": "pcie",
    "Infinity Fabric": "infinity-fabric",
    "": "",
}
#: Degrees to which a sale is documented (`facts/neocloud_evidence.csv`, column evidence).
SOLD, STOCK_UNKNOWN, NO_EVIDENCE = "sold", "stock_unknown", "none"
#: The figure that is modelled where no source states the stock of the day.
OBTAINABILITY = "obtainability"
#: The missing part of a price whose contract length is not stated.
TERM = "term"


def neocloud_prices(rows: Iterable[Row]) -> Harvest:
    """Offers and machines of the rows; a row with an unknown word or an impossible figure becomes a problem by name."""
    harvest = Harvest()
    machines: dict[tuple[str, str], InstanceType] = {}
    for number, row in enumerate(rows, start=2):
        harvest.counts["neocloud rows read"] += 1
        try:
            machine = _machine(row)
            harvest.offers.append(_offer(row, machine))
        except (KeyError, ValueError, ArithmeticError, UnusableInput) as problem:
            harvest.problems.append(f"neocloud_prices line {number}: {problem}")
            continue
        key = (machine.provider, machine.name)
        machines[key] = _joined(machines[key], machine) if key in machines else machine
    harvest.instance_types += machines.values()
    return harvest


def machine_name(row: Row) -> str:
    """The name of the row's machine: the provider's own, made unique where the source gives several the same."""
    for rule in mapping_table("neocloud_names"):
        if (rule["provider"], rule["listed_price_kind"]) == (row["provider"], row["listed_price_kind"]):
            return rule["name"].format(
                name=row["listed_instance_type"], devices=_devices(row), accelerator=row["accelerator"]
            )
    return row["listed_instance_type"]


def _machine(row: Row) -> InstanceType:
    device = find_accelerator(row["accelerator"])
    name = machine_name(row)
    network = next(
        rule
        for rule in mapping_table("neocloud_networks")
        if fnmatchcase(row["provider"], rule["provider"]) and fnmatchcase(name, rule["instance_type"])
    )
    devices = _devices(row)
    link = LINKS[row["intranode_link"]]
    stated_gbps = _size(row["network_gbps"])
    clusters = network["clusters"] == "yes"
    return InstanceType(
        provider=row["provider"],
        name=name,
        accelerator=device.name,
        accelerator_count=devices,
        vcpus=_size(row["vcpus"]),
        ram_gib=_size(row["ram_gib"]),
        local_disk_gb=_size(row["local_disk_gb"]),
        intranode_link=link,
        intranode_gbs=device.pcie_gbs if link == "pcie" and 1 < devices <= device.link_domain else None,
        scaleup_domain=int(network["scaleup_domain"] or devices),
        network_gbps=(stated_gbps or _size(network["network_gbps"])) if clusters else None,
        fabric=network["fabric"],
        clusters=clusters,
        source=f"{row['source']}; network: {row['source'] if stated_gbps else network['source']}",
        as_of=row["as_of"],
    )


def _offer(row: Row, machine: InstanceType) -> Offer:
    observed_at, approximately = observed(row["as_of"])
    usd, conversion = _usd(row)
    kind = price_kinds()[_kinds()[row["listed_price_kind"]]]
    evidence = _evidence(row)
    return Offer(
        provider=row["provider"],
        region=row["region"] or UNKNOWN_REGION,
        zone=row["zone"],
        instance_type=machine.name,
        price_kind=kind.name,
        usd_micros_per_hour=usd_micros(usd),
        observed_at=observed_at,
        observed_approximately=approximately,
        modelled=(OBTAINABILITY,) if evidence == STOCK_UNKNOWN else (),
        partial=(TERM,) if not kind.has_stated_term else (),
        available=evidence != NO_EVIDENCE,
        source=row["source"] + conversion,
    )


def _usd(row: Row) -> tuple[Decimal, str]:
    """US dollars per hour, and how another currency was converted: by the one stated rate of that currency."""
    if row["currency"] == USD:
        return Decimal(row["usd_per_hour"]), ""
    rate = stated_rates().get(row["currency"])
    if rate is None:
        raise ValueError(f"currency {row['currency']!r} is not in exchange_rates.csv")
    text = f"; {row['amount']} {rate.currency} at {rate.usd} USD ({rate.as_of}, {rate.source})"
    return Decimal(row["amount"]) * rate.usd, text


def _evidence(row: Row) -> str:
    """How well it is documented that this machine is sold in this place: the first rule that matches."""
    stated = "yes" if row["region"] else "no"
    return next(
        rule["evidence"]
        for rule in mapping_table("neocloud_evidence")
        if fnmatchcase(row["provider"], rule["provider"])
        and fnmatchcase(row["note"], rule["note"])
        and rule["region_is_stated"] in {"", stated}
    )


def _devices(row: Row) -> Fraction:
    """Devices as a training framework sees them: the source counts boards, of which an A16 has four GPUs."""
    count = Fraction(row["accelerator_count"]) * _gpus_per_board().get(row["accelerator"], 1)
    if count.denominator != 1:
        raise ValueError(f"{row['accelerator_count']} of {row['accelerator']} is no whole number of devices")
    return count


def _joined(earlier: InstanceType, later: InstanceType) -> InstanceType:
    """The machine with every size that either row states; of two statements the first."""
    stated = {field.name: getattr(earlier, field.name) for field in fields(InstanceType)}
    missing = {name: getattr(later, name) for name, value in stated.items() if value is None or value == ""}
    if (earlier.accelerator, earlier.accelerator_count) != (later.accelerator, later.accelerator_count):
        raise ValueError(f"instance type {earlier.name} has several accelerators; add a rule to neocloud_names.csv")
    return replace(earlier, **missing)


def _size(text: str) -> float | None:
    return float(text) if text else None


@cache
def _kinds() -> dict[str, str]:
    return {row["source_kind"]: row["price_kind"] for row in mapping_table("price_kinds")}


@cache
def _gpus_per_board() -> dict[str, int]:
    return {row["accelerator"]: int(row["gpus"]) for row in mapping_table("boards")}
