"""Machines that have prices but are sold only to some accounts: `data/restricted_sales.csv`."""

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
