"""Prices over time and what snapshots changed, filtered, as JSON: the rows behind `history`, `diff` and their HTTP twins."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from catalog.diff import OfferChange, SnapshotDiff, TypeChange
from catalog.errors import UnusableInput
from catalog.history import Observation, PricePoint
from catalog.money import usd_text
from catalog.offer import start_of_day
from catalog.quantities import moment
from catalog.regions import regions
from catalog.snapshot_list import NotStored, StoredSnapshot
from catalog.store import Store

Document = dict[str, Any]

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
    def rows(self) -> Iterator[Document]:
        """The points as JSON, made one at a time."""
        return map(point_row, self.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffPage:
    """What `after` changes against `before`: part of the `rows`, counts per provider, the instance types that differ."""

    before: StoredSnapshot
    after: StoredSnapshot
    providers: list[Document]
    rows: Iterator[Document]
    total: int
    next_index: int | None
    instance_types: list[Document]


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


def price_page(
    store: Store, wanted: HistoryFilter, *, snapshot_id: str, start: int = 0, limit: int | None = None
) -> PricePage:
    """The prices that match, up to a snapshot, by offer and time, from the `start`-th on.

    Raises `UnusableInput` for an instance type that never had a price, with the nearest names, and for a filter
    that none of its offers meets.
    """
    name, points = _of_type(store, wanted.instance_type, snapshot_id)
    for field, value, part, matches in (
        ("provider", wanted.provider, 0, _same),
        ("region", wanted.region, 1, _glob),
        ("zone", wanted.zone, 2, _same),
        ("kind", wanted.kind, 4, _same),
    ):
        if value is not None:
            points = _kept(points, field, value, part, matches)
    since = wanted.since
    shown = [each for each in points if since is None or each.until is None or each.until > since]
    end = len(shown) if limit is None else min(len(shown), start + limit)
    return PricePage(
        snapshot_id=snapshot_id,
        instance_type=name,
        points=shown[start:end],
        total=len(shown),
        next_index=end if end < len(shown) else None,
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


def _kept(
    points: Sequence[PricePoint], field: str, value: str, part: int, matches: Callable[[str, str], bool]
) -> list[PricePoint]:
    """The points whose part of the key matches; refused if there is none."""
    found = [each for each in points if matches(value, each.key[part])]
    if not found:
        known = sorted({each.key[part] for each in points})
        near = difflib.get_close_matches(value.strip("*"), known, n=5, cutoff=0.4) or known[:8]
        shown = ", ".join(each or "'' (the price of the whole region)" for each in near)
        message = f"{value[:80]!r} matches no price of {points[0].key[3]} that is left; accepted, e.g.: {shown}"
        raise UnusableInput.at(field, message=message)
    return found


def _same(pattern: str, value: str) -> bool:
    return pattern.casefold() == value.casefold()


def _glob(pattern: str, value: str) -> bool:
    return fnmatchcase(value.casefold(), pattern.casefold())


def point_row(point: PricePoint) -> Document:
    """One price as JSON: the CSV columns first. Unknown, and what has not ended, is null."""
    return {
        **dict(zip(KEY_COLUMNS, point.key, strict=True)),
        "usd_per_hour": usd_text(point.usd_micros_per_hour),
        "from": point.since.isoformat(),
        "until": _time(point.until),
        "vanished": point.vanished,
        "stale_since": _time(point.stale_since),
        "observed_at": point.observed_at.isoformat(),
        "source": point.source,
        "modelled": list(point.modelled),
        "partial": list(point.partial),
        "available": point.available,
        "seen": [
            {"from": each[0].isoformat(), "to": each[-1].isoformat(), "times": len(each)}
            for each in unbroken(point.observations)
        ],
    }


def unbroken(observations: Iterable[Observation]) -> list[list[datetime]]:
    """The times of observations, those that no gap parts together."""
    runs: list[list[datetime]] = []
    for each in observations:
        if each.joined and runs:
            runs[-1].append(each.at)
        else:
            runs.append([each.at])
    return runs


def compared(
    store: Store, before: str | None, after: str | None, *, field: str = "against"
) -> tuple[StoredSnapshot, StoredSnapshot]:
    """Two snapshots to compare: `after` (default: the current one) and `before` (default: the one it followed).

    Raises `NotStored` for an `after` that is not there, `UnusableInput` at `field` for such a `before` and where
    `after` followed none.
    """
    new = store.find_snapshot(after if after is not None else store.current_snapshot_id())
    if before is None and new.parent is None:
        message = f"snapshot {new.id} is the first that is stored and followed none; accepted: the id of another one"
        raise UnusableInput.at(field, message=message)
    try:
        return store.find_snapshot(before if before is not None else str(new.parent)), new
    except NotStored as error:
        raise UnusableInput.at(field, message=error.faults[0].message) from None


def diff_page(
    store: Store,
    before: StoredSnapshot,
    after: StoredSnapshot,
    *,
    provider: str | None = None,
    start: int = 0,
    limit: int | None = None,
) -> DiffPage:
    """What one snapshot changes against another, from the `start`-th offer on.

    Raises `UnusableInput` at `provider` for one that nobody knows.
    """
    diff = _of_provider(store.diff(before.id, after.id), provider)
    end = len(diff.offers) if limit is None else min(len(diff.offers), start + limit)
    return DiffPage(
        before=before,
        after=after,
        providers=[{"provider": name} | counts for name, counts in diff.counts().items()],
        rows=map(change_row, diff.offers[start:end]),
        total=len(diff.offers),
        next_index=end if end < len(diff.offers) else None,
        instance_types=[type_row(each) for each in diff.instance_types],
    )


def _of_provider(diff: SnapshotDiff, provider: str | None) -> SnapshotDiff:
    if provider is None:
        return diff
    known = {name for name, _ in regions()} | {each.key[0] for each in diff.offers}
    if not any(_same(provider, each) for each in known):
        message = f"unknown provider {provider[:80]!r}; accepted: {', '.join(sorted(known))}"
        raise UnusableInput.at("provider", message=message)
    return SnapshotDiff(
        offers=tuple(each for each in diff.offers if _same(provider, each.key[0])),
        instance_types=tuple(each for each in diff.instance_types if _same(provider, each.provider)),
    )


def diff_document(page: DiffPage) -> Document:
    """The page as every door gives it, without where the next one starts."""
    return {
        "before": _snapshot(page.before),
        "after": _snapshot(page.after),
        "providers": page.providers,
        "total": page.total,
        "changes": list(page.rows),
        "instance_types": page.instance_types,
    }


def change_row(change: OfferChange) -> Document:
    """One offer's change as JSON; what a snapshot does not have is null."""
    before, after = change.before, change.after
    return {
        **dict(zip(KEY_COLUMNS, change.key, strict=True)),
        "what": list(change.what),
        "usd_per_hour_before": usd_text(before.usd_micros_per_hour) if before else None,
        "usd_per_hour_after": usd_text(after.usd_micros_per_hour) if after else None,
        "change_percent": None if change.share is None else round(change.share * 100, 3),
        "stale_since": _time(after.stale_since) if after else None,
    }


def type_row(change: TypeChange) -> Document:
    """One instance type's change as JSON: `fields` holds [old, new] of each fact that differs."""
    words = {(True, False): "new", (False, True): "vanished"}
    return {
        "provider": change.provider,
        "instance_type": change.name,
        "what": words.get((change.before is None, change.after is None), "changed"),
        "fields": {name: [_fact(value) for value in pair] for name, pair in change.fields.items()},
    }


def csv_rows(rows: Iterable[Document]) -> Iterator[Document]:
    """The rows as CSV can hold them: several words in one field, with a space between."""
    for row in rows:
        yield row | {"what": " ".join(row["what"])}


def _snapshot(snapshot: StoredSnapshot) -> Document:
    kept = {name: value for name, value in asdict(snapshot).items() if name not in {"seq", "parent", "offer_count"}}
    return {name: _time(value) if isinstance(value, datetime) else value for name, value in kept.items()}


def _fact(value: object) -> object:
    """A fact of an instance type as JSON: a count of accelerators may be a part of one."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else round(float(value), 6)
    return value


def _time(when: datetime | None) -> str | None:
    return None if when is None else when.astimezone(UTC).isoformat()
