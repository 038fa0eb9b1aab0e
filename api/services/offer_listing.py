"""What the catalogue says about offers and accelerators, filtered: the rows behind `offers` and `/v1/offers`."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from gpuplan.api.schemas.catalogue import OfferRow
from gpuplan.catalog.model.accelerators import accelerator_family
from gpuplan.catalog.model.money import usd_text
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.regions import GEOGRAPHIES, regions
from gpuplan.catalog.model.unavailable_machines import sale_notice, why_no_price, why_unavailable
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns

#: The columns of `offers --format csv`, fixed for those who read them with a program.
CSV_COLUMNS = (
    "provider",
    "region",
    "zone",
    "instance_type",
    "accelerator",
    "accelerator_count",
    "price_kind",
    "usd_per_hour",
    "observed_at",
    "source",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferFilter:
    """What to show; None shows everything. `region` and `instance_type` are globs; nothing is told apart by its case."""

    provider: str | None = None
    region: str | None = None
    accelerator: str | None = None
    kind: str | None = None
    instance_type: str | None = None
    geography: str | None = None

    def given(self) -> dict[str, str]:
        """The filters that are set, by name."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None}


def matching(columns: Columns, wanted: OfferFilter) -> NDArray[np.intp]:
    """Indices of the offers that match, in the order of the snapshot.

    Each filter is tried on the snapshot's small tables and looked up per offer, so the cost does not
    grow with filters. Raises `UnusableInput` naming a filter that no row of the catalogue can satisfy.
    """
    types, places = columns.instance_types, columns.regions
    providers = sorted({instance_type.provider for instance_type in types} | {provider for provider, _ in places})
    keep_region = _keep("provider", wanted.provider, [provider for provider, _ in places], _same, near=providers)
    keep_region &= _keep("region", wanted.region, [region for _, region in places], _glob)
    keep_kind = _keep("kind", wanted.kind, columns.kinds, _same)
    keep_type = _keep("instance_type", wanted.instance_type, [instance_type.name for instance_type in types], _glob)
    if wanted.accelerator is not None:
        family = accelerator_family(wanted.accelerator)
        keep_type &= np.fromiter((instance_type.accelerator in family for instance_type in types), np.bool_, len(types))
    _refuse_unavailable(columns, wanted, keep_type)
    if wanted.geography is not None:
        keep_region &= _in_geography(columns, wanted.geography)
    keep = keep_region[columns.region_index] & keep_kind[columns.kind_index] & keep_type[columns.type_index]
    return np.flatnonzero(keep)


def _refuse_unavailable(columns: Columns, wanted: OfferFilter, keep_type: NDArray[np.bool_]) -> None:
    """Raise `UnusableInput` if what the filters name has no offer anywhere, for a reason that is known."""
    if keep_type[columns.type_index].any():
        return
    if wanted.instance_type is not None and (reason := why_unavailable(wanted.instance_type)):
        raise UnusableInput.at("instance_type", message=f"{wanted.instance_type[:80]!r} cannot be had: {reason}")
    if wanted.accelerator is not None and wanted.instance_type is None:
        reasons = [reason for name in accelerator_family(wanted.accelerator) if (reason := why_no_price(name))]
        if reasons:
            raise UnusableInput.at("accelerator", message=f"{wanted.accelerator[:80]!r}: {'; '.join(reasons)}")


def geography_named(text: str) -> str:
    """The geography of this name. Raises `UnusableInput` at `geography` for one that there is not."""
    for name in GEOGRAPHIES:
        if _same(text, name):
            return name
    message = f"{text[:80]!r} is no geography; accepted: {', '.join(sorted(GEOGRAPHIES))}"
    raise UnusableInput.at("geography", message=message)


def _in_geography(columns: Columns, name: str) -> NDArray[np.bool_]:
    """Which of the snapshot's regions lie there; own machines lie nowhere."""
    known, wanted = regions(), geography_named(name)
    is_there = (place in known and known[place].geography == wanted for place in columns.regions)
    return np.fromiter(is_there, np.bool_, len(columns.regions))


def _same(pattern: str, value: str) -> bool:
    return pattern.casefold() == value.casefold()


def _glob(pattern: str, value: str) -> bool:
    return fnmatchcase(value.casefold(), pattern.casefold())


def _keep(
    field: str,
    pattern: str | None,
    values: Sequence[str],
    matches: Callable[[str, str], bool],
    near: Iterable[str] | None = None,
) -> NDArray[np.bool_]:
    """Which of `values` match; a pattern that matches none is refused with the nearest spellings."""
    if pattern is None:
        return np.ones(len(values), np.bool_)
    keep = np.fromiter((matches(pattern, value) for value in values), np.bool_, len(values))
    if not keep.any():
        known = list(dict.fromkeys(near if near is not None else values))
        nearest = difflib.get_close_matches(pattern.strip("*"), known, n=5, cutoff=0.4) or known[:8]
        reason = why_unavailable(pattern) if field == "instance_type" else None
        accepted = f"matches nothing; accepted, e.g.: {', '.join(nearest)}"
        raise UnusableInput.at(
            field, message=f"{pattern[:80]!r} {accepted if reason is None else f'cannot be had: {reason}'}"
        )
    return keep


def offer_row(offer: Offer, machine: InstanceType) -> OfferRow:
    """One offer with its machine: the CSV columns first. Unknown figures are None."""
    return OfferRow(
        provider=offer.provider,
        region=offer.region,
        zone=offer.zone,
        instance_type=offer.instance_type,
        accelerator=machine.accelerator,
        accelerator_count=_count(machine),
        price_kind=offer.price_kind,
        usd_per_hour=usd_text(offer.usd_micros_per_hour),
        observed_at=offer.observed_at.isoformat(),
        source=offer.source,
        observed_approximately=offer.observed_approximately,
        stale_since=offer.stale_since.isoformat() if offer.stale_since else None,
        interruptions_per_hour=offer.interruptions_per_hour,
        modelled=offer.modelled,
        partial=offer.partial,
        available=offer.available,
        vcpus=machine.vcpus,
        ram_gib=machine.ram_gib,
        network_gbps=machine.network_gbps,
        fixed_nodes=machine.fixed_nodes,
        sold_on_demand=machine.sold_on_demand,
        retired=machine.retired,
        sale_notice=sale_notice(offer.provider, offer.instance_type),
    )


def _count(machine: InstanceType) -> int | float:
    """Accelerators per node as a JSON number; a slice of a card is a fraction below one."""
    count = machine.accelerator_count
    return int(count) if count.denominator == 1 else round(float(count), 6)


def offer_rows(columns: Columns, indices: Iterable[int]) -> Iterator[OfferRow]:
    """The rows of these offers, made one at a time."""
    for index in indices:
        yield offer_row(columns.offer(int(index)), columns.instance_types[int(columns.type_index[index])])
