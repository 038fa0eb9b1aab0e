"""Machines that people name and cannot get, with the reason: retired, or without a known price.

`data/unavailable_machines.csv` has a row per glob over a provider's names. A row is a reason for an answer and never
keeps a machine out: one that has a price in the snapshot is planned with.

Accelerated machines that are not training hardware: `data/left_out.csv`, each with the reason.

Machines that have prices but are sold only to some accounts: `data/restricted_sales.csv`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from gpuplan.catalog.model.data_tables import data_table


def sale_notice(provider: str, instance_type: str) -> str | None:
    """Who can still start such a machine, as a sentence; None if every account of the provider can."""
    return next(
        (notice for name, pattern, notice in _rows() if name == provider and fnmatchcase(instance_type, pattern)), None
    )


@cache
def _rows() -> tuple[tuple[str, str, str], ...]:
    return tuple((row["provider"], row["instance_type"], row["notice"]) for row in data_table("restricted_sales.csv"))


@cache
def left_out() -> dict[str, str]:
    """The reason by instance type; no two clouds share a name."""
    return {row["name"]: row["reason"] for row in data_table("left_out.csv")}


_AZURE_PREFIX = "standard_"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnavailableMachines:
    """Machines of `provider` whose name matches `name`, a glob; `also` are other words for them, in lower case.

    `status` is `retired` (`since` is the date, empty if none is published) or `no_price`.
    """

    provider: str
    name: str
    also: tuple[str, ...]
    accelerator: str
    status: str
    since: str
    reason: str
    source: str
    as_of: str

    def __post_init__(self) -> None:
        """Reject a row of another status, or without a reason."""
        if self.status not in {"retired", "no_price"} or not self.reason:
            raise ValueError(f"unavailable machines {self.name}: status {self.status!r}, reason {self.reason!r}")

    @property
    def sentence(self) -> str:
        """Why none can be had: `retired on 2024-01-08: ...`, `no price is known: ...`."""
        if self.status == "no_price":
            return f"no price is known: {self.reason}"
        return f"retired{f' on {self.since}' if self.since else ''}: {self.reason}"


@cache
def unavailable_machines() -> tuple[UnavailableMachines, ...]:
    """Every row, in the order of the table."""
    return tuple(
        UnavailableMachines(**{**row, "also": tuple(filter(None, row["also"].split("|")))})  # type: ignore[arg-type]
        for row in data_table("unavailable_machines.csv")
    )


def why_unavailable(text: str) -> str | None:
    """Why the machines that `text` names cannot be had: a name, a glob such as `p2*`, or a family such as NVv3.

    Azure's names may lack `Standard_`. None if no row describes them.
    """
    wanted = text.strip().lower()
    return _sentences(row for row in unavailable_machines() if _names(row, wanted))


def why_retired(instance_type: str) -> str | None:
    """Why a machine of this name was retired; None if no row says so."""
    wanted = instance_type.lower()
    return _sentences(row for row in unavailable_machines() if row.status == "retired" and _names(row, wanted))


def why_no_price(accelerator: str) -> str | None:
    """Why no machine with this accelerator of the table has a price; None if no row says so."""
    rows = unavailable_machines()
    return _sentences(row for row in rows if row.status == "no_price" and row.accelerator == accelerator)


def retired_on(provider: str, instance_type: str) -> str:
    """The date on which a machine was retired; empty if it was not, or if none is published."""
    wanted = instance_type.lower()
    dates = (row.since for row in unavailable_machines() if row.provider == provider and _names(row, wanted))
    return next(dates, "")


def _names(row: UnavailableMachines, wanted: str) -> bool:
    name = row.name.lower()
    names = (name, name.removeprefix(_AZURE_PREFIX))
    return wanted in row.also or any(fnmatchcase(wanted, known) or fnmatchcase(known, wanted) for known in names)


def _sentences(rows: Iterable[UnavailableMachines]) -> str | None:
    """The distinct reasons, None without any."""
    return "; ".join(dict.fromkeys(row.sentence for row in rows)) or None
