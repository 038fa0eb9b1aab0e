"""Which offers to show and in which order, for those who look through the catalogue: more than a listing's filters say.

Every filter is worked out on the snapshot's small tables (machine shapes, regions) and looked up per offer, so a
hundred thousand offers cost milliseconds; rows are made only for the page that is shown.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from gpuplan.api.services.offer_listing import OfferFilter, geography_named, matching
from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.offer import MAX_ACCELERATORS_PER_NODE, MAX_USD_MICROS_PER_HOUR, InstanceType
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns, Floats

#: What a listing may be ordered by; `-` before it turns the order round.
ORDERS = (
    "usd_per_hour",
    "usd_per_accelerator",
    "usd_per_pflop",
    "usd_per_gb",
    "accelerator",
    "accelerators",
    "memory",
    "instance_type",
    "provider",
    "region",
    "kind",
)
_TEXTS = ("provider", "region", "accelerator", "kind", "instance_type", "geography")
_NUMBERS = {
    "usd_from": (0.0, MAX_USD_MICROS_PER_HOUR / 1e6, "US dollars per machine and hour, such as 2.50"),
    "usd_to": (0.0, MAX_USD_MICROS_PER_HOUR / 1e6, "US dollars per machine and hour, such as 40"),
    "accelerators_from": (0.0, MAX_ACCELERATORS_PER_NODE, "accelerators per machine, such as 8"),
    "accelerators_to": (0.0, MAX_ACCELERATORS_PER_NODE, "accelerators per machine, such as 8"),
    "memory_from": (0.0, 10_000.0, "GB per accelerator, such as 80"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Offers to show; None shows everything. Prices are dollars per node-hour, `memory_from` is GB per accelerator.

    `trains` leaves out what cannot train; `order` is one of `ORDERS`, with `-` before it the other way round.
    """

    listing: OfferFilter
    trains: bool = False
    usd_from: float | None = None
    usd_to: float | None = None
    accelerators_from: float | None = None
    accelerators_to: float | None = None
    memory_from: float | None = None
    order: str = ORDERS[0]

    def given(self) -> dict[str, str]:
        """What is set, by name, as text that `read_selection` reads again; the usual order is left out."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "listing"}
        stated = {
            name: value for name, value in given.items() if not (value is None or value is False or value == ORDERS[0])
        }
        texts = {name: "1" if value is True else _text(value) for name, value in stated.items()}
        return self.listing.given() | texts


def read_selection(asked: Mapping[str, str]) -> Selection:
    """The selection in a form's fields; an empty field is not set.

    Raises `UnusableInput` naming every field that is unknown or cannot be read. Whether anything in a snapshot
    matches is not looked at.
    """
    given = {name: value.strip() for name, value in asked.items() if value.strip()}
    faults = [
        Fault((name[:80],), f"unknown filter; accepted: {', '.join(FILTERS)}") for name in given if name not in FILTERS
    ]
    numbers = {name: _number(name, given[name], faults) for name in _NUMBERS if name in given}
    order = given.get("order", ORDERS[0])
    if order.removeprefix("-") not in ORDERS:
        faults.append(Fault(("order",), f"{order[:80]!r} is no order; accepted: {', '.join(ORDERS)}, or - before one"))
    if "geography" in given:
        try:
            given["geography"] = geography_named(given["geography"])
        except UnusableInput as error:
            faults += error.faults
    if given.get("trains", "1") != "1":
        faults.append(Fault(("trains",), f"{given['trains'][:80]!r} is not accepted; write 1, or leave it out"))
    for low, high in (("usd_from", "usd_to"), ("accelerators_from", "accelerators_to")):
        if not faults and low in numbers and high in numbers and numbers[low] > numbers[high]:
            faults.append(Fault((high,), f"{given[high]} is below {given[low]}, where the range begins"))
    if faults:
        raise UnusableInput(*faults)
    listing = OfferFilter(**{name: given[name] for name in _TEXTS if name in given})
    return Selection(listing=listing, trains="trains" in given, order=order, **numbers)


FILTERS = (*_TEXTS, "trains", *_NUMBERS, "order")


def _number(name: str, text: str, faults: list[Fault]) -> float:
    low, high, what = _NUMBERS[name]
    try:
        value = float(text.removeprefix("$").replace(",", ""))
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        faults.append(Fault((name,), f"{text[:80]!r} is not accepted; write {what}, from {low:g} to {high:g}"))
    return value


def _text(value: object) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def selected(columns: Columns, wanted: Selection) -> NDArray[np.intp]:
    """Indices of the offers that match, in the order that is wanted; equals in that of price, then of the snapshot.

    Raises `UnusableInput` naming a filter of the listing that no row of the catalogue can satisfy.
    """
    indices = matching(columns, wanted.listing)
    shapes = Shapes.of(columns)
    keep = np.ones(len(indices), np.bool_)
    types, prices = columns.type_index[indices], columns.usd_per_hour[indices]
    if wanted.trains:
        keep &= shapes.trains[types]
    for values, low, high in (
        (prices, wanted.usd_from, wanted.usd_to),
        (shapes.accelerators[types], wanted.accelerators_from, wanted.accelerators_to),
        (shapes.memory_gb[types], wanted.memory_from, None),
    ):
        if low is not None:
            keep &= values >= low
        if high is not None:
            keep &= values <= high
    indices = indices[keep]
    ranks = _ranks(columns, shapes, indices, wanted.order.removeprefix("-"))
    ranks = -ranks if wanted.order.startswith("-") else ranks
    in_order: NDArray[np.intp] = indices[np.lexsort((columns.usd_per_hour[indices], ranks))]
    return in_order


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shapes:
    """Facts of a snapshot's instance types, an element each: accelerators per node, GB of each, PFLOP/s of the node (the
    dense bf16 peak), whether it trains.
    """

    accelerators: Floats
    memory_gb: Floats
    pflops: Floats
    trains: NDArray[np.bool_]

    @classmethod
    def of(cls, columns: Columns) -> "Shapes":
        """Those of these columns; what nobody knows is nan."""
        types, known = columns.instance_types, accelerators()
        rows = [known.get(instance_type.accelerator) for instance_type in types]
        return cls(
            accelerators=np.fromiter(
                (float(instance_type.accelerator_count) for instance_type in types), np.float64, len(types)
            ),
            memory_gb=np.fromiter(
                (memory_gb(instance_type) or math.nan for instance_type in types), np.float64, len(types)
            ),
            pflops=np.fromiter((pflops(instance_type) or math.nan for instance_type in types), np.float64, len(types)),
            trains=np.fromiter((row is not None and row.trains != "no" for row in rows), np.bool_, len(types)),
        )


def memory_gb(machine: InstanceType) -> float | None:
    """GB of one accelerator as it is sold; for a part of a card what that part has. None if unknown."""
    row = accelerators().get(machine.accelerator)
    if machine.is_slice and machine.accelerator_memory_mib is not None:
        return machine.accelerator_memory_mib * 2**20 / 1e9
    if row is not None:
        return row.memory_gb * min(1.0, float(machine.accelerator_count))
    return None if machine.accelerator_memory_mib is None else machine.accelerator_memory_mib * 2**20 / 1e9


def node_memory_gb(machine: InstanceType) -> float | None:
    """GB of all accelerators of a node; for a part of a card what that part has. None if unknown."""
    of_one = memory_gb(machine)
    return None if of_one is None else of_one * max(1.0, float(machine.accelerator_count))


def pflops(machine: InstanceType) -> float | None:
    """PFLOP/s of a node at its dense bf16 peak. None if unknown."""
    row = accelerators().get(machine.accelerator)
    if row is None or row.bf16_tflops is None:
        return None
    return row.bf16_tflops * float(machine.accelerator_count) / 1000


def _ranks(columns: Columns, shapes: Shapes, indices: NDArray[np.intp], order: str) -> Floats:
    """Per offer where it stands in this order; what is unknown is nan, and so comes last either way."""
    types, places = columns.type_index[indices], columns.region_index[indices]
    if order == "usd_per_hour":
        return columns.usd_per_hour[indices]
    if order == "usd_per_accelerator":
        return np.asarray(columns.usd_per_hour[indices] / shapes.accelerators[types], np.float64)
    if order == "usd_per_pflop":
        return np.asarray(columns.usd_per_hour[indices] / shapes.pflops[types], np.float64)
    if order == "usd_per_gb":
        of_node = shapes.memory_gb * np.maximum(1.0, shapes.accelerators)
        return np.asarray(columns.usd_per_hour[indices] / of_node[types], np.float64)
    if order in {"accelerators", "memory"}:
        return (shapes.accelerators if order == "accelerators" else shapes.memory_gb)[types]
    if order in {"instance_type", "accelerator"}:
        names = [
            instance_type.name if order == "instance_type" else instance_type.accelerator
            for instance_type in columns.instance_types
        ]
        return _alphabetical(names)[types]
    if order == "kind":
        return columns.kind_index[indices].astype(np.float64)
    return _alphabetical([place[0 if order == "provider" else 1] for place in columns.regions])[places]


def _alphabetical(names: list[str]) -> Floats:
    """Per name its place in the alphabet, the same for the same name."""
    return np.unique(np.array([name.casefold() for name in names] or [""]), return_inverse=True)[1].astype(np.float64)
