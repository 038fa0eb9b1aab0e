"""Machines that still have prices and are sold to some accounts alone: `data/restricted_sales.csv`."""

from fnmatch import fnmatchcase
from functools import cache

from catalog.data_tables import data_table


@cache
def sale_notice(provider: str, instance_type: str) -> str | None:
    """Who can still start such a machine, in words; None for one that every account of the provider can."""
    return next(
        (notice for name, pattern, notice in _rows() if name == provider and fnmatchcase(instance_type, pattern)), None
    )


@cache
def _rows() -> tuple[tuple[str, str, str], ...]:
    return tuple((row["provider"], row["instance_type"], row["notice"]) for row in data_table("restricted_sales.csv"))
