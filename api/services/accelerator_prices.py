"""What each accelerator costs at least, per hour and per unit of what it computes: the table of accelerators."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpuplan.api.services.offer_selection import Shapes
from gpuplan.catalog.model.accelerators import Accelerator, accelerators
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.model.price_kinds import PriceKind, price_kinds
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns

#: Which prices are compared: what is paid as it runs, without and with the risk of being interrupted.
Paid = Literal["steady", "interruptible"]
ORDERS = ("name", "year", "memory", "bandwidth", "bf16", "steady", "interruptible", "pflop_hour")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cheapest:
    """The least price of an accelerator: dollars per accelerator-hour, and the offer that has it."""

    usd_per_hour: float
    offer: Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedAccelerator:
    """An accelerator of the table, how many offers have it, and its least prices; None where there is no such offer."""

    accelerator: Accelerator
    offers: int
    steady: Cheapest | None
    interruptible: Cheapest | None

    @property
    def usd_per_pflop_hour(self) -> float | None:
        """Dollars per hour and dense bf16 PFLOP/s at the lower of the two prices; None without price or rate."""
        prices = [offer.usd_per_hour for offer in (self.steady, self.interruptible) if offer is not None]
        tflops = self.accelerator.bf16_tflops
        return min(prices) / (tflops / 1000) if prices and tflops else None


def priced_accelerators(columns: Columns, *, order: str = "name") -> list[PricedAccelerator]:
    """Every accelerator of the table with its least prices, in this order (one of `ORDERS`, `-`: the other way round).

    Compared are whole prices of whole machines that can be had, per accelerator; a part of a card counts as that part.
    What is unknown comes last. Raises `UnusableInput` at `order` for another one.
    """
    if order.removeprefix("-") not in ORDERS:
        raise UnusableInput.at(
            "order", message=f"{order[:80]!r} is no order; accepted: {', '.join(ORDERS)}, or - before one"
        )
    names = [instance_type.accelerator for instance_type in columns.instance_types]
    per_accelerator = columns.usd_per_hour / Shapes.of(columns).accelerators[columns.type_index]
    cheapest = {kind: _least(columns, names, per_accelerator, kind) for kind in ("steady", "interruptible")}
    of_type = np.bincount(columns.type_index, minlength=len(names))
    count = dict.fromkeys(names, 0)
    for name, offers in zip(names, of_type.tolist(), strict=True):
        count[name] += offers
    rows = [
        PricedAccelerator(
            accelerator=accelerator,
            offers=count.get(name, 0),
            steady=cheapest["steady"].get(name),
            interruptible=cheapest["interruptible"].get(name),
        )
        for name, accelerator in accelerators().items()
    ]
    return _sorted(rows, order)


def _least(columns: Columns, names: list[str], prices: NDArray[np.float64], paid: str) -> dict[str, Cheapest]:
    """By accelerator the cheapest offer of this kind; the first in the snapshot where several are."""
    kinds = np.fromiter((_is(paid, price_kinds()[name]) for name in columns.kinds), np.bool_, len(columns.kinds))
    usable = np.flatnonzero(kinds[columns.kind_index] & columns.plannable & columns.verified)
    usable = usable[np.argsort(prices[usable], kind="stable")]
    least: dict[str, int] = {}
    types, first = np.unique(columns.type_index[usable], return_index=True)
    for at, index in sorted(zip(first.tolist(), types.tolist(), strict=True)):
        least.setdefault(names[index], int(usable[at]))
    return {
        name: Cheapest(usd_per_hour=float(prices[index]), offer=columns.offer(index)) for name, index in least.items()
    }


def _is(paid: str, kind: PriceKind) -> bool:
    return kind.is_plain if paid == "steady" else kind.interruptible


def _sorted(rows: list[PricedAccelerator], order: str) -> list[PricedAccelerator]:
    key = order.removeprefix("-")
    if key == "name":
        return sorted(rows, key=lambda row: row.accelerator.name.casefold(), reverse=order.startswith("-"))
    sign = -1 if order.startswith("-") else 1
    values = [(_value(row, key), row) for row in rows]
    known = sorted(((sign * value, row) for value, row in values if value is not None), key=lambda pair: pair[0])
    return [row for _, row in known] + [row for value, row in values if value is None]


def _value(row: PricedAccelerator, key: str) -> float | None:
    cheapest = {"steady": row.steady, "interruptible": row.interruptible}
    if key in cheapest:
        least = cheapest[key]
        return None if least is None else least.usd_per_hour
    if key == "pflop_hour":
        return row.usd_per_pflop_hour
    facts = {"year": "year", "memory": "memory_gb", "bandwidth": "memory_gbs", "bf16": "bf16_tflops"}
    value: float | None = getattr(row.accelerator, facts[key])
    return value
