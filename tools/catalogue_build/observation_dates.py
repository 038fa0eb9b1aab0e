"""When a price was read: an exact day, or the earliest day that a vague date allows."""

from datetime import date, datetime
from functools import cache

from gpuplan.catalog.model.offer import start_of_day
from tools.catalogue_build.fact_tables import mapping_table

UNDATED = "undated"


def observed(as_of: str, *, read_from: str = "", price_kind: str = "") -> tuple[datetime, bool]:
    """The time at which a price was read, and whether that is only approximate.

    A range gives its first day, a bare year or month its first day, `undated` the day since which
    the table it was read from can have held it (`facts/undated.csv`). Raises `ValueError` for
    anything else.
    """
    if as_of == UNDATED:
        return start_of_day(_earliest(read_from, price_kind)), True
    first = as_of.split("..", maxsplit=1)[0]
    parts = [int(part) for part in first.split("-")]
    day = date(*[*parts, 1, 1][:3])
    return start_of_day(day), first != as_of or len(parts) < 3


def _earliest(read_from: str, price_kind: str) -> date:
    for row in _undated():
        if read_from.startswith(row["read_from_prefix"]) and price_kind == row["price_kind"]:
            return date.fromisoformat(row["earliest"])
    raise ValueError(f"no earliest date is known for {price_kind} prices read from {read_from!r}")


@cache
def _undated() -> list[dict[str, str]]:
    return mapping_table("undated")
