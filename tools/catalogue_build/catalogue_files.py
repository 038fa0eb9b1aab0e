"""Write the embedded files; the same rows give the same bytes."""

import csv
import io
import lzma
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.snapshots.snapshot import Snapshot
from tools.catalogue_build.fact_tables import SetAside

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
#: Explicit, so that the bytes do not depend on the library's defaults.
XZ_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]


def write_catalogue(
    out: Path, snapshot: Snapshot, side_tables: Mapping[str, Sequence[Mapping[str, str]]], set_aside: Iterable[SetAside]
) -> list[Path]:
    """Write every embedded file into `out` and return their names. Raises `OSError` on failure."""
    contents = {
        "offers.csv.xz": lzma.compress(
            csv_bytes(OFFER_COLUMNS, [_offer_row(offer) for offer in snapshot.offers]), filters=XZ_FILTERS
        ),
        "instance_types.csv": _dataclass_csv(InstanceType, snapshot.instance_types),
        "quarantine.csv": _dataclass_csv(SetAside, sorted(set_aside, key=astuple)),
        "embedded.csv": csv_bytes(
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
        contents[f"{name}.csv"] = csv_bytes(tuple(rows[0]), [tuple(row.values()) for row in rows])
    out.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (out / name).write_bytes(content)
    return [out / name for name in sorted(contents)]


def _offer_row(offer: Offer) -> tuple[str, ...]:
    return tuple(_text(getattr(offer, name)) for name in OFFER_COLUMNS)


def _dataclass_csv(kind: type[InstanceType] | type[SetAside], rows: Iterable[InstanceType | SetAside]) -> bytes:
    names = tuple(field.name for field in fields(kind))
    return csv_bytes(names, [tuple(_text(getattr(row, name)) for name in names) for row in rows])


def _text(value: object) -> str:
    """A value as file text: blank for unknown, yes or no, words separated by a space, whole numbers without a point."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " ".join(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def csv_bytes(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """The rows under a heading, as CSV with bare line feeds."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return buffer.getvalue().encode()
