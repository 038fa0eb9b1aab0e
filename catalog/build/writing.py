"""The embedded files, byte for byte the same for the same rows."""

import csv
import io
import lzma
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path

from catalog.build.account import SetAside
from catalog.offer import InstanceType, Offer
from catalog.snapshot import Snapshot

OFFER_COLUMNS = (
    "provider",
    "region",
    "zone",
    "instance_type",
    "price_kind",
    "usd_micros_per_hour",
    "observed_at",
    "observed_approximately",
    "interruptions_per_hour",
    "modelled",
    "partial",
    "available",
    "source",
)
#: Stated, so that the bytes do not depend on the library's defaults.
XZ_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]


def write_catalogue(
    out: Path, snapshot: Snapshot, side_tables: Mapping[str, Sequence[Mapping[str, str]]], set_aside: Iterable[SetAside]
) -> list[Path]:
    """Write every embedded file into `out` and say which. Raises `OSError` if it cannot."""
    contents = {
        "offers.csv.xz": lzma.compress(
            _csv(OFFER_COLUMNS, [_offer_row(offer) for offer in snapshot.offers]), filters=XZ_FILTERS
        ),
        "instance_types.csv": _dataclass_csv(InstanceType, snapshot.instance_types),
        "quarantine.csv": _dataclass_csv(SetAside, sorted(set_aside, key=astuple)),
        "embedded.csv": _csv(
            ("snapshot_id", "observed_at", "instance_types", "offers"),
            [
                (
                    snapshot.id,
                    snapshot.observed_at.isoformat(),
                    str(len(snapshot.instance_types)),
                    str(len(snapshot.offers)),
                )
            ],
        ),
    }
    for name, rows in side_tables.items():
        contents[f"{name}.csv"] = _csv(tuple(rows[0]), [tuple(row.values()) for row in rows])
    out.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (out / name).write_bytes(content)
    return [out / name for name in sorted(contents)]


def _offer_row(offer: Offer) -> tuple[str, ...]:
    return tuple(_text(getattr(offer, name)) for name in OFFER_COLUMNS)


def _dataclass_csv(kind: type[InstanceType] | type[SetAside], rows: Iterable[InstanceType | SetAside]) -> bytes:
    names = tuple(field.name for field in fields(kind))
    return _csv(names, [tuple(_text(getattr(row, name)) for name in names) for row in rows])


def _text(value: object) -> str:
    """A value as it stands in a file: blank for unknown, yes or no, words apart by a space, whole numbers bare."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " ".join(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _csv(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return buffer.getvalue().encode()
