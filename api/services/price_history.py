"""Prices over time and what snapshots changed, filtered, as JSON: the rows behind `history`, `diff` and their HTTP twins."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from fractions import Fraction

from gpuplan.api.observability.version import gpuplan_version
from gpuplan.api.schemas.prices import (
    ComparedSnapshot,
    ObservedSpan,
    OfferChangeRow,
    PriceRow,
    ProviderChanges,
    SnapshotComparison,
    TypeChangeRow,
)
from gpuplan.api.services.service_context import ContextService
from gpuplan.catalog.model.money import usd_text
from gpuplan.catalog.model.offer import start_of_day
from gpuplan.catalog.model.regions import regions
from gpuplan.catalog.parsing.quantities import moment
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.price_history import Observation, PricePoint
from gpuplan.catalog.store.snapshot_diff import OfferChange, SnapshotDiff, TypeChange
from gpuplan.catalog.store.snapshot_list import NotStored, StoredSnapshot
from gpuplan.catalog.store.store import Store
from gpuplan.planner.model.wire import wire

KEY_COLUMNS = ("provider", "region", "zone", "instance_type", "price_kind")
#: The columns of `history --format csv` and of `/v1/prices` as CSV, fixed for those who read them with a program.
HISTORY_COLUMNS = (*KEY_COLUMNS, "usd_per_hour", "from", "until", "vanished", "stale_since", "observed_at", "source")
#: Those of `diff --format csv`.
DIFF_COLUMNS = (*KEY_COLUMNS, "what", "usd_per_hour_before", "usd_per_hour_after", "change_percent", "stale_since")


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFilter:
    """Which prices to show; None shows everything. `region` is a glob; `since` leaves out what ended before."""

    instance_type: str
    provider: str | None = None
    region: str | None = None
    zone: str | None = None
    kind: str | None = None
    since: datetime | None = None

    def given(self) -> dict[str, str]:
        """The filters that are set, by name."""
        return {field.name: str(value) for field in fields(self) if (value := getattr(self, field.name)) is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePage:
    """Part of a history: `points`, how many there are in `total`, and where the next page starts, if any."""

    snapshot_id: str
    instance_type: str
    points: Sequence[PricePoint]
    total: int
    next_index: int | None

    @property
    def rows(self) -> Iterator[PriceRow]:
        """The points as rows, made one at a time."""
        return map(point_row, self.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffPage:
    """What `after` changes against `before`: part of the `rows`, counts per provider, the instance types that differ."""

    before: StoredSnapshot
    after: StoredSnapshot
    providers: tuple[ProviderChanges, ...]
    rows: Iterator[OfferChangeRow]
    total: int
    next_index: int | None
    instance_types: tuple[TypeChangeRow, ...]


def read_since(text: str | None) -> datetime | None:
    """A date (its beginning in UTC) or an ISO time with its zone. Raises `UnusableInput` at `since`."""
    if text is None:
        return None
    try:
        if len(text.strip()) == len("2026-11-01"):
            return start_of_day(date.fromisoformat(text.strip()))
        return moment(text)
    except ValueError:
        message = f"{text[:80]!r} is no date; accepted: 2026-11-01, or a time with its zone such as 2026-11-01T09:00Z"
        raise UnusableInput.at("since", message=message) from None


class PriceHistoryService(ContextService):
    """Reads stored prices and compares snapshots."""

    def prices(
        self, wanted: HistoryFilter, *, snapshot: str | None = None, start: int = 0, limit: int | None = None
    ) -> PricePage:
        """The prices that match, up to a snapshot (by default the current one), by offer and time, from the `start`-th on.

        Raises `UnusableInput` for an instance type that never had a price, with the nearest names, and for a filter
        that none of its offers meets.
        """
        last = self.last_snapshot(snapshot)
        name, points = _of_type(self._context.store, wanted.instance_type, last)
        for field, value, part, matches in (
            ("provider", wanted.provider, 0, _same),
            ("region", wanted.region, 1, _glob),
            ("zone", wanted.zone, 2, _same),
            ("kind", wanted.kind, 4, _same),
        ):
            if value is not None:
                points = _matching(points, field, value, part, matches)
        since = wanted.since
        shown = [point for point in points if since is None or point.until is None or point.until > since]
        end = len(shown) if limit is None else min(len(shown), start + limit)
        return PricePage(
            snapshot_id=last,
            instance_type=name,
            points=shown[start:end],
            total=len(shown),
            next_index=end if end < len(shown) else None,
        )

    def last_snapshot(self, snapshot: str | None) -> str:
        """The id of the snapshot with which a history ends: the current one by default. Raises `NotStored`."""
        store = self._context.store
        return store.find_snapshot(store.current_snapshot_id() if snapshot is None else snapshot).id

    def version(self, last: str) -> str:
        """Identifies what a history up to snapshot `last` depends on: all stored snapshots and this release."""
        return f"{last} {' '.join(snapshot.id for snapshot in self._context.store.snapshots())} {gpuplan_version()}"

    def compared(
        self, before: str | None, after: str | None, *, field: str = "against"
    ) -> tuple[StoredSnapshot, StoredSnapshot]:
        """Two snapshots to compare: `after` (default: the current one) and `before` (default: the one it followed).

        Raises `NotStored` for an `after` that is not there, `UnusableInput` at `field` for such a `before` and where
        `after` followed none.
        """
        store = self._context.store
        new = store.find_snapshot(after if after is not None else store.current_snapshot_id())
        if before is None and new.parent is None:
            message = (
                f"snapshot {new.id} is the first that is stored and followed none; accepted: the id of another one"
            )
            raise UnusableInput.at(field, message=message)
        try:
            return store.find_snapshot(before if before is not None else str(new.parent)), new
        except NotStored as error:
            raise UnusableInput.at(field, message=error.faults[0].message) from None

    def diff(
        self,
        before: StoredSnapshot,
        after: StoredSnapshot,
        *,
        provider: str | None = None,
        start: int = 0,
        limit: int | None = None,
    ) -> DiffPage:
        """What one snapshot changes against another, the largest price changes first, from the `start`-th offer on.

        Raises `UnusableInput` at `provider` for one that nobody knows.
        """
        diff = _of_provider(self._context.store.diff(before.id, after.id), provider)
        end = len(diff.offers) if limit is None else min(len(diff.offers), start + limit)
        return DiffPage(
            before=before,
            after=after,
            providers=tuple(ProviderChanges(provider=name, **counts) for name, counts in diff.counts().items()),
            rows=map(change_row, diff.offers[start:end]),
            total=len(diff.offers),
            next_index=end if end < len(diff.offers) else None,
            instance_types=tuple(type_row(instance_type) for instance_type in diff.instance_types),
        )


def _of_type(store: Store, name: str, snapshot_id: str) -> tuple[str, Sequence[PricePoint]]:
    """The instance type by its own name, and all its prices; a name in other letters is understood."""
    points = store.price_points(name, snapshot_id) if name.isprintable() else []
    if points:
        return name, points
    known = sorted(store.priced_types())
    for other in known:
        if _same(other, name) and (points := store.price_points(other, snapshot_id)):
            return other, points
    near = difflib.get_close_matches(name.strip("*"), known, n=5, cutoff=0.4)
    nearest = f"nearest: {', '.join(near)}" if near else "`gpuplan offers` lists those there are"
    raise UnusableInput.at("instance_type", message=f"no price of {name[:80]!r} was ever stored; {nearest}")


def _matching(
    points: Sequence[PricePoint], field: str, value: str, part: int, matches: Callable[[str, str], bool]
) -> list[PricePoint]:
    """The points whose part of the key matches; refused if there is none."""
    matching = [point for point in points if matches(value, point.key[part])]
    if not matching:
        known = sorted({point.key[part] for point in points})
        near = difflib.get_close_matches(value.strip("*"), known, n=5, cutoff=0.4) or known[:8]
        shown = ", ".join(name or "'' (the price of the whole region)" for name in near)
        message = f"{value[:80]!r} matches no price of {points[0].key[3]} that is left; accepted, e.g.: {shown}"
        raise UnusableInput.at(field, message=message)
    return matching


def _same(pattern: str, value: str) -> bool:
    return pattern.casefold() == value.casefold()


def _glob(pattern: str, value: str) -> bool:
    return fnmatchcase(value.casefold(), pattern.casefold())


def point_row(point: PricePoint) -> PriceRow:
    """One price with its period. What has not ended is None."""
    provider, region, zone, instance_type, price_kind = point.key
    return PriceRow(
        provider=provider,
        region=region,
        zone=zone,
        instance_type=instance_type,
        price_kind=price_kind,
        usd_per_hour=usd_text(point.usd_micros_per_hour),
        from_=point.since.isoformat(),
        until=_time(point.until),
        vanished=point.vanished,
        stale_since=_time(point.stale_since),
        observed_at=point.observed_at.isoformat(),
        source=point.source,
        modelled=point.modelled,
        partial=point.partial,
        available=point.available,
        seen=tuple(
            ObservedSpan(from_=span[0].isoformat(), to=span[-1].isoformat(), times=len(span))
            for span in unbroken(point.observations)
        ),
    )


def unbroken(observations: Iterable[Observation]) -> list[list[datetime]]:
    """The times of observations, those that no gap parts together."""
    runs: list[list[datetime]] = []
    for observation in observations:
        if observation.joined and runs:
            runs[-1].append(observation.at)
        else:
            runs.append([observation.at])
    return runs


def _of_provider(diff: SnapshotDiff, provider: str | None) -> SnapshotDiff:
    if provider is None:
        return diff
    known = {name for name, _ in regions()} | {offer.key[0] for offer in diff.offers}
    if not any(_same(provider, name) for name in known):
        message = f"unknown provider {provider[:80]!r}; accepted: {', '.join(sorted(known))}"
        raise UnusableInput.at("provider", message=message)
    return SnapshotDiff(
        offers=tuple(offer for offer in diff.offers if _same(provider, offer.key[0])),
        instance_types=tuple(
            instance_type for instance_type in diff.instance_types if _same(provider, instance_type.provider)
        ),
    )


def comparison(page: DiffPage) -> SnapshotComparison:
    """The page as an answer."""
    return SnapshotComparison(
        before=_compared_snapshot(page.before),
        after=_compared_snapshot(page.after),
        providers=page.providers,
        total=page.total,
        changes=tuple(page.rows),
        instance_types=page.instance_types,
    )


def change_row(change: OfferChange) -> OfferChangeRow:
    """The change of one offer; what a snapshot does not have is None."""
    before, after = change.before, change.after
    provider, region, zone, instance_type, price_kind = change.key
    return OfferChangeRow(
        provider=provider,
        region=region,
        zone=zone,
        instance_type=instance_type,
        price_kind=price_kind,
        what=change.what,
        usd_per_hour_before=usd_text(before.usd_micros_per_hour) if before else None,
        usd_per_hour_after=usd_text(after.usd_micros_per_hour) if after else None,
        change_percent=None if change.share is None else round(change.share * 100, 3),
        stale_since=_time(after.stale_since) if after else None,
    )


def type_row(change: TypeChange) -> TypeChangeRow:
    """The change of one instance type: `fields` holds (old, new) of each fact that differs."""
    return TypeChangeRow(
        provider=change.provider,
        instance_type=change.name,
        what="new" if change.before is None else "vanished" if change.after is None else "changed",
        fields={name: (_fact(old), _fact(new)) for name, (old, new) in change.fields.items()},
    )


def csv_rows(rows: Iterable[OfferChangeRow]) -> Iterator[dict[str, object]]:
    """The rows as CSV has them: several words in one cell, with a space between."""
    for row in rows:
        yield wire(row) | {"what": " ".join(row.what)}


def _compared_snapshot(snapshot: StoredSnapshot) -> ComparedSnapshot:
    return ComparedSnapshot(
        id=snapshot.id,
        created_at=snapshot.created_at.astimezone(UTC).isoformat(),
        observed_at=snapshot.observed_at.astimezone(UTC).isoformat(),
        source=snapshot.source,
    )


def _fact(value: object) -> object:
    """A fact of an instance type as JSON: a count of accelerators may be a part of one."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else round(float(value), 6)
    return value


def _time(when: datetime | None) -> str | None:
    return None if when is None else when.astimezone(UTC).isoformat()
