"""Accelerated machines that are not training hardware: `data/left_out.csv`, each with the reason."""

from functools import cache

from gpuplan.catalog.model.data_tables import data_table


@cache
def left_out() -> dict[str, str]:
    """The reason by instance type; no two clouds share a name."""
    return {row["name"]: row["reason"] for row in data_table("left_out.csv")}
