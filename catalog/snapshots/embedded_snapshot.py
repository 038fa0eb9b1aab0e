"""The snapshot shipped with gpuplan: every machine and price in `data/`, read without a network.

`python -m tools.catalogue_build` writes the files. `data/embedded.csv` carries the snapshot's id, so that loading need not
hash 10,000 rows (a test compares it with `snapshot_id_of`).
"""

import csv
import io
import lzma
from datetime import datetime
from fractions import Fraction
from functools import cache
from importlib.resources import files

from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.snapshots.snapshot import Snapshot

_WHOLE_TYPE_FIELDS = ("accelerator_memory_mib", "fixed_nodes")
_REAL_TYPE_FIELDS = ("vcpus", "ram_gib", "local_disk_gb", "intranode_gbs", "network_gbps")
_YES_NO_TYPE_FIELDS = ("clusters", "sold_on_demand", "retired")


@cache
def embedded_snapshot() -> Snapshot:
    """Every embedded machine and price, sorted by key. Read once per process.

    Raises `StoreFailure` if the files are missing or damaged.
    """
    try:
        return _read()
    except (OSError, ValueError, KeyError, IndexError, lzma.LZMAError) as problem:
        raise StoreFailure(f"the embedded catalogue cannot be read ({problem}); reinstall gpuplan") from problem


@cache
def embedded_instance_types() -> tuple[InstanceType, ...]:
    """Every machine of the embedded snapshot, sorted by provider and name, without reading its prices."""
    return tuple(_instance_type(row) for row in data_table("instance_types.csv"))


def _read() -> Snapshot:
    about = data_table("embedded.csv")[0]
    offers = offers_of(lzma.decompress((files("gpuplan.catalog") / "data" / "offers.csv.xz").read_bytes()).decode())
    types = embedded_instance_types()
    if (len(offers), len(types)) != (int(about["offers"]), int(about["instance_types"])):
        raise ValueError("offers or instance types are missing")
    observed_at = datetime.fromisoformat(about["observed_at"])
    return Snapshot(id=about["snapshot_id"], observed_at=observed_at, instance_types=types, offers=offers)


def offers_of(text: str) -> tuple[Offer, ...]:
    """The rows of offers.csv. Times and lists repeat, so each distinct text is parsed once."""
    rows = csv.reader(io.StringIO(text))
    next(rows, None)
    times: dict[str, datetime] = {}
    words: dict[str, tuple[str, ...]] = {}
    sources: dict[str, str] = {}
    made = []
    for provider, region, zone, name, kind, micros, at, about, rate, modelled, partial, available, source in rows:
        made.append(
            Offer(
                provider=provider,
                region=region,
                zone=zone,
                instance_type=name,
                price_kind=kind,
                usd_micros_per_hour=int(micros),
                observed_at=times.get(at) or times.setdefault(at, datetime.fromisoformat(at)),
                observed_approximately=about == "yes",
                interruptions_per_hour=float(rate) if rate else None,
                modelled=words.get(modelled) or words.setdefault(modelled, tuple(modelled.split())),
                partial=words.get(partial) or words.setdefault(partial, tuple(partial.split())),
                available=available == "yes",
                source=sources.setdefault(source, source),
            )
        )
    return tuple(made)


def _instance_type(row: dict[str, str]) -> InstanceType:
    values: dict[str, object] = dict(row)
    values["accelerator_count"] = Fraction(row["accelerator_count"])
    values["scaleup_domain"] = int(row["scaleup_domain"])
    for name in _WHOLE_TYPE_FIELDS:
        values[name] = int(row[name]) if row[name] else None
    for name in _REAL_TYPE_FIELDS:
        values[name] = float(row[name]) if row[name] else None
    for name in _YES_NO_TYPE_FIELDS:
        values[name] = row[name] == "yes"
    return InstanceType(**values)  # type: ignore[arg-type]
