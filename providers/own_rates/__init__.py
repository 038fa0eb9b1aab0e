"""Rates of the user's own: a broker's list, a university cluster, a colocation contract, from one CSV or JSON document.

The document replaces what it said before. While any row of it is set aside, rows that it does not repeat stay, marked
stale, because the bad row may be one of them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from threading import Lock

from gpuplan.catalog.model.exchange_rates import USD
from gpuplan.catalog.model.offer import Implausible, InstanceType, Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.contract import Provider, Quarantined, Rows
from gpuplan.providers.own_rates.document_rows import Row, document_rows
from gpuplan.providers.own_rates.rate_rows import RatesOrigin, joined, machine_of, offer_of, stated_day
from gpuplan.providers.price_lists.currencies import Rates, current_rates

#: A price that was stated earlier is worth a look, although the list still has it.
OLD_AFTER = timedelta(days=30)
#: Rows that a note names.
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RatesSource:
    """A list of rates: the name of its provider, where it is, and how its text is read, which raises `ProviderFailure`."""

    name: str
    where: str
    read: Callable[[], str]


@dataclass(slots=True, kw_only=True)
class OwnRates:
    """See `gpuplan.providers.contract.Provider`; the document is read by the first call. Any number of threads may call it."""

    name: str
    origin: RatesOrigin
    read: Callable[[], str]
    read_rates: Callable[[], Rates]
    parallel: int = 1
    _lock: Lock = field(default_factory=Lock)
    _rows: dict[str, Rows] | None = None

    def regions(self) -> Sequence[str]:
        """The places of the document, and the place that it does not state."""
        return tuple(self._whole())

    def fetch(self, region: str) -> Rows:
        """The rows of one place."""
        if region not in self._whole():
            raise UnusableInput.at("region", message=f"{self.name} has no region {region!r}")
        return self._whole()[region]

    def _whole(self) -> dict[str, Rows]:
        with self._lock:
            if self._rows is None:
                rows = document_rows(self.read(), self.origin.where)
                usual = {row.get("currency", "") for _, row in rows} <= {"", USD}
                self._rows = rows_by_region(rows, self.origin, Rates(by_currency={}) if usual else self.read_rates())
            return self._rows


def provider(source: RatesSource, sources: Sources, read_at: datetime) -> Provider:
    """The rates of one list, every offer observed at `read_at`."""
    return OwnRates(
        name=source.name,
        origin=RatesOrigin(provider=source.name, where=source.where, read_at=read_at),
        read=source.read,
        read_rates=lambda: current_rates(sources.ecb_rates_url, read_at),
    )


def rows_by_region(rows: Sequence[tuple[str, Row]], origin: RatesOrigin, rates: Rates) -> dict[str, Rows]:
    """The contract's rows by region: pure. Raises `ProviderFailure` if no row of the document can be used."""
    machines: dict[str, InstanceType] = {}
    offers: defaultdict[str, list[Offer]] = defaultdict(list)
    quarantined: list[Quarantined] = []
    for place, row in rows:
        what = f"{place} ({row.get('instance_type', '') or 'no instance_type'})"
        try:
            machine = machine_of(row, origin)
            offer = offer_of(row, machine, origin, rates)
            machines[machine.name] = joined(machines.get(machine.name), machine)
            offers[offer.region].append(offer)
        except UnusableInput as error:
            quarantined.append(Quarantined(what=what, reason=error.faults[0].message))
        except (Implausible, ValueError, ArithmeticError) as problem:
            quarantined.append(Quarantined(what=what, reason=str(problem)))
    if not offers:
        why = f": {quarantined[0].what}: {quarantined[0].reason}" if quarantined else ""
        raise ProviderFailure(f"{origin.where}: no row can be used{why}; earlier prices stay")
    first, notes = min(offers), (*rates.notes, *_notes(rows, origin))
    return {
        region: Rows(
            instance_types=tuple(machines[name] for name in dict.fromkeys(offer.instance_type for offer in listed)),
            offers=tuple(listed),
            quarantined=tuple(quarantined) if region == first else (),
            whole_kinds=frozenset() if quarantined else frozenset(price_kinds()),
            provider_notes=notes,
        )
        for region, listed in sorted(offers.items())
    }


def _notes(rows: Sequence[tuple[str, Row]], origin: RatesOrigin) -> list[str]:
    """What the document states and plans do not count, and prices that were stated long ago."""
    stated = Counter(
        name for _, row in rows for name in ("max_nodes", "billing_step_seconds") if row.get(name, "") not in {"", "1"}
    )
    notes = [
        f"{name} of {count} rows is not planned on: plans keep to {instead}"
        for name, count, instead in (
            ("max_nodes", stated["max_nodes"], "constraints.max_nodes and quotas"),
            ("billing_step_seconds", stated["billing_step_seconds"], "the step of the price kind"),
        )
        if count
    ]
    days = [(place, day) for place, row in rows if (day := _day(row, origin)) is not None]
    old = [place for place, day in days if origin.read_at.date() - day > OLD_AFTER]
    if old:
        shown = ", ".join(old[:_SHOWN]) + (" and others" if len(old) > _SHOWN else "")
        notes.append(f"prices of {len(old)} rows were stated more than {OLD_AFTER.days} days ago ({shown})")
    return notes


def _day(row: Row, origin: RatesOrigin) -> date | None:
    try:
        return stated_day(row, origin)
    except ValueError:
        return None
