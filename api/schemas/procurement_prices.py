"""Machines that may be bought: the table of purchase prices and the user's quotations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from gpuplan.api.schemas.estimate_request import MAX_INTERNODE_GBPS
from gpuplan.catalog.model.accelerators import Accelerator, accelerator_family, accelerators, find_accelerator
from gpuplan.catalog.model.offer import MAX_ACCELERATORS_PER_NODE
from gpuplan.catalog.model.owned_machine import MAX_POWER_WATTS, OwnedMachine
from gpuplan.catalog.model.purchase_prices import FORMS, PurchasePrice, host_usd, purchase_prices
from gpuplan.catalog.parsing.accelerator_names import accelerator_family_text, accelerator_text
from gpuplan.catalog.parsing.document_fields import Document, Label, Reads, choice, nearest, quantity, whole_number
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import count, shown, usd
from gpuplan.catalog.runtime.errors import Fault
from gpuplan.planner.procurement.forecast import Machine
from gpuplan.providers.owned.inventory_file import MAX_MACHINE_USD
from gpuplan.providers.owned.owned_machines import HOST_SHARE_OF_TDP, read_inventory

#: Assumed cards per host.
CARDS_PER_HOST = (1, 2, 4, 8)
#: Most networked nodes for one job.
NODES_FOR_ONE_JOB = 8
SOURCE = "the forecast document"
#: Longest name; the number of cards is appended.
_LONGEST_NAME = 100

#: Shortest accepted life in years; less is a typing error.
MIN_LIFE_YEARS, MAX_LIFE_YEARS = 0.1, 30.0


def machine_life(value: object) -> float:
    """Years that a machine lasts."""
    years = count(value, top=MAX_LIFE_YEARS)
    if years < MIN_LIFE_YEARS:
        raise ValueError(
            f"{shown(value)} is too short; write {MIN_LIFE_YEARS:g} to {MAX_LIFE_YEARS:g} years, such as 4"
        )
    return years


_Usd = quantity(lambda value: usd(value, top=MAX_MACHINE_USD), "US dollars", 1800)
_UsdOrNone = quantity(lambda value: usd(value, top=MAX_MACHINE_USD, zero=True), "US dollars", 0)


class PriceDocument(Document):
    """A quotation for a card or a node of several; it replaces the table's price for the same item."""

    accelerator: Annotated[str, Reads(accelerator_text, {"type": "string", "examples": ["RTX 4090"]})]
    usd: Annotated[float, _Usd]
    name: Annotated[str, Label] | None = None
    accelerators: Annotated[int, whole_number(1, MAX_ACCELERATORS_PER_NODE)] = 1
    form: Annotated[str, choice(FORMS)] | None = None
    power_watts: Annotated[float, quantity(lambda v: count(v, top=MAX_POWER_WATTS), "watts under load", 850)] | None = (
        None
    )
    network_gbps: Annotated[float, quantity(lambda v: count(v, top=MAX_INTERNODE_GBPS), "Gbit/s", 400)] | None = None
    life_years: Annotated[float, quantity(machine_life, "years", 4)] | None = None
    residual_usd: Annotated[float, _UsdOrNone] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PurchaseRules:
    """Rules for every machine, which its quotation can override; None means no limit."""

    electricity_usd_per_kwh: float
    pue: float
    life_years: float
    residual_share: float
    has_host: bool
    host_usd: float | None
    slots: int | None
    power_watts: float | None
    cooling_watts: float | None
    upfront_usd: float | None
    ecc: bool
    vendors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quoted:
    """A price with the optional parts of a quotation."""

    price: PurchasePrice
    life_years: float | None = None
    residual_usd: float | None = None


def machines_of(
    rules: PurchaseRules,
    quoted: Sequence[PriceDocument],
    wanted: tuple[str, ...] | None,
    faults: list[Fault],
    notes: list[str],
) -> tuple[tuple[Machine, ...], tuple[tuple[str, str], ...]]:
    """Machines that may be bought, and rejected ones with the reason. Appends to `faults` and `notes`."""
    offered = _priced(quoted, faults)
    chosen = _wanted(offered, wanted, faults)
    if faults:
        return (), ()
    machines: list[Machine] = []
    turned_down: list[tuple[str, str]] = []
    for item in chosen:
        reason = _unfit(accelerators()[item.price.accelerator], rules)
        if reason:
            turned_down.append((item.price.name, reason))
            continue
        for cards in _sizes(item.price):
            machine = _machine(item, cards, rules)
            no_room = _no_room(machine, rules)
            if no_room:
                turned_down.append((machine.name, no_room))
            else:
                machines.append(machine)
    if len({machine.name for machine in machines}) < len(machines):
        faults.append(Fault(("prices",), "two machines with the same number of cards share a name; give other names"))
    if any(item.price.form == "card" for item in chosen) and not rules.has_host and rules.host_usd is None:
        notes.append(
            "the price of a host for cards is modelled (1,200 USD for one card to 15,000 for eight); set host_usd"
        )
    if any(machine.modelled for machine in machines):
        share = f"{1 + HOST_SHARE_OF_TDP:g} times the accelerators' TDP"
        notes.append(f"power_watts without a quotation: {share}")
    return tuple(machines), tuple(turned_down)


def _priced(quoted: Sequence[PriceDocument], faults: list[Fault]) -> list[_Quoted]:
    """The table, with quotations replacing the rows for the same item; names are unique."""
    quotations = [_of_document(price_document) for price_document in quoted]
    names: set[str] = set()
    for i, quotation in enumerate(quotations):
        if quotation.price.name in names:
            faults.append(
                Fault(
                    ("prices", i, "name"),
                    f"{shown(quotation.price.name)} has two prices; give one price, or different names",
                )
            )
        names.add(quotation.price.name)
        faults.extend(Fault(("prices", i, *fault.path), fault.message) for fault in _faults(quotation.price))
        residual = quotation.residual_usd
        if residual is not None and residual > quotation.price.usd:
            message = f"{residual:g} is more than usd ({quotation.price.usd:g}); a machine cannot be worth more at the end of its life"
            faults.append(Fault(("prices", i, "residual_usd"), message))
    things = {_thing(quotation.price) for quotation in quotations}
    table = [
        _Quoted(price=row) for row in purchase_prices().values() if _thing(row) not in things and row.name not in names
    ]
    return quotations + table


def _faults(price: PurchasePrice) -> list[Fault]:
    """Faults of a quotation across its fields."""
    device, faults = accelerators()[price.accelerator], []
    if price.power_watts is None and device.tdp_watts is None:
        message = f"is missing, and required: the power of {device.name} is not published; give watts under load"
        faults.append(Fault(("power_watts",), message))
    if price.form == "card" and price.accelerators not in CARDS_PER_HOST:
        message = (
            f"{price.accelerators} is not accepted for a card; write 1, 2, 4 or 8, or form: node for a whole machine"
        )
        faults.append(Fault(("accelerators",), message))
    if len(price.name) > _LONGEST_NAME:
        faults.append(Fault(("name",), f"has {len(price.name)} characters; write at most {_LONGEST_NAME}"))
    return faults


def _thing(price: PurchasePrice) -> tuple[str, int, str]:
    return price.accelerator, price.accelerators, price.form


def _of_document(given: PriceDocument) -> _Quoted:
    device = find_accelerator(given.accelerator)
    form = given.form or ("card" if given.accelerators == 1 and device.form_factor == "PCIe" else "node")
    default = device.name if given.accelerators == 1 else f"{given.accelerators}x-{device.name}"
    price = PurchasePrice(
        name=given.name or default,
        accelerator=device.name,
        accelerators=given.accelerators,
        form=form,
        usd=given.usd,
        power_watts=given.power_watts,
        network_gbps=given.network_gbps,
        modelled=(),
        source=SOURCE,
        as_of="given",
    )
    return _Quoted(price=price, life_years=given.life_years, residual_usd=given.residual_usd)


def _wanted(offered: list[_Quoted], wanted: tuple[str, ...] | None, faults: list[Fault]) -> list[_Quoted]:
    """Machines named by their name or accelerator; all if none is named."""
    if wanted is None:
        return offered
    selected: list[_Quoted] = []
    names = {item.price.name.lower() for item in offered}
    for i, text in enumerate(wanted):
        devices = () if text.lower() in names else _family(text)
        mine = [
            item for item in offered if item.price.name.lower() == text.lower() or item.price.accelerator in devices
        ]
        if not mine:
            known = [item.price.name for item in offered]
            near = ", ".join(nearest(text, known) or known[:4])
            faults.append(
                Fault(("machines", i), f"{shown(text)} has no purchase price; nearest: {near}; or give it in prices")
            )
        selected += [item for item in mine if item not in selected]
    return selected


def _family(text: str) -> tuple[str, ...]:
    try:
        accelerator_family_text(text)
    except ValueError:
        return ()
    return accelerator_family(text)


def _unfit(device: Accelerator, rules: PurchaseRules) -> str:
    """Why an accelerator may not be bought at any price; empty if it may."""
    if device.trains == "no":
        return "does not train"
    if rules.vendors and device.vendor not in rules.vendors:
        return f"is made by {device.vendor}; limits.vendors accepts {', '.join(rules.vendors)}"
    if rules.ecc and not device.ecc:
        return "has no ECC memory" if device.ecc is False else "is not known to have ECC memory"
    return ""


def _sizes(price: PurchasePrice) -> tuple[int, ...]:
    """Accelerators per machine: a node's own number; 1, 2, 4 and 8 for cards."""
    if price.form == "node":
        return (price.accelerators,)
    return tuple(cards for cards in CARDS_PER_HOST if cards % price.accelerators == 0)


def _machine(item: _Quoted, cards: int, rules: PurchaseRules) -> Machine:
    price, device = item.price, accelerators()[item.price.accelerator]
    a_card, packs = price.form == "card", cards // price.accelerators
    host = (rules.host_usd if rules.host_usd is not None else host_usd(cards)) if a_card and not rules.has_host else 0.0
    modelled = [*price.modelled] + (["host price"] if host and rules.host_usd is None else [])
    watts = price.power_watts * packs if price.power_watts is not None else _modelled_watts(device, cards)
    if price.power_watts is None:
        modelled.append("power_watts")
    total = price.usd * packs + host
    residual = rules.residual_share * total if item.residual_usd is None else item.residual_usd * packs
    name = price.name if packs == 1 else f"{price.name} ({packs} cards)"
    return Machine(
        name=name,
        parts=_parts(name, price, cards, watts, rules),
        usd=total,
        life_years=item.life_years or rules.life_years,
        residual_usd=residual,
        watts=watts,
        slots=packs if a_card and rules.has_host else 0,
        source=price.source,
        as_of="" if price.as_of == "given" else price.as_of,
        modelled=tuple(dict.fromkeys(modelled)),
    )


def _modelled_watts(device: Accelerator, cards: int) -> float:
    # The table has no device without a published TDP, and the inventory's schema refuses a quotation for one.
    return (device.tdp_watts or 0.0) * cards * (1 + HOST_SHARE_OF_TDP)


def _parts(
    name: str, price: PurchasePrice, cards: int, watts: float, rules: PurchaseRules
) -> tuple[tuple[int, OwnedMachine], ...]:
    """The machine for jobs on 1, 2, 4, ... of its accelerators, read by the inventory's schema."""
    counts = [divisor for divisor in (1, 2, 4, 8, 16, 32) if divisor < cards and cards % divisor == 0] + [cards]
    rows: list[JsonObject] = [
        {
            "name": f"{name} ({count})",
            "accelerator": price.accelerator,
            "count": count,
            "usd_per_hour": 0,
            "power_watts": watts * count / cards,
        }
        for count in counts
    ]
    if price.network_gbps:
        rows[-1] |= {"machines": NODES_FOR_ONE_JOB, "network_gbps": price.network_gbps}
    machines = read_inventory(
        {"electricity_usd_per_kwh": rules.electricity_usd_per_kwh or 1.0, "pue": rules.pue, "machines": rows}
    )
    return tuple(zip(counts, machines, strict=True))


def _no_room(machine: Machine, rules: PurchaseRules) -> str:
    """The limit that rules out even one such machine; empty if none does."""
    for what, needs, most, unit in (
        ("takes", machine.slots, rules.slots, "slots"),
        ("draws", machine.watts, rules.power_watts, "W of power"),
        ("gives off", machine.watts, rules.cooling_watts, "W to cool"),
        ("costs", machine.usd, rules.upfront_usd, "USD upfront"),
    ):
        if most is not None and needs > most:
            guessed = (
                "; its power is modelled from the TDP, give power_watts"
                if "W" in unit.split() and _guessed(machine)
                else ""
            )
            return f"{what} {needs:,.0f} {unit}, and only {most:,.0f} are available{guessed}"
    return ""


def _guessed(machine: Machine) -> bool:
    """Whether the machine's power is modelled."""
    return "power_watts" in machine.modelled
