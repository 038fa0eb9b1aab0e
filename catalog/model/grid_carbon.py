"""Carbon intensity of the grid and power usage effectiveness (PUE) by region."""

from dataclasses import dataclass
from functools import cache

from gpuplan.catalog.model.data_tables import data_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Carbon:
    """Grid intensity in gCO2e per kWh and PUE of a region; None is unknown.

    Precedence among sources: the operator's own figure for the region, then Cloud Carbon Footprint, then compilations;
    within one source the newest year. A regional PUE precedes the operator's fleet average.
    """

    grid_g_per_kwh: float | None
    grid_source: str
    grid_as_of: str
    pue: float | None
    pue_source: str
    pue_as_of: str


UNKNOWN = Carbon(grid_g_per_kwh=None, grid_source="", grid_as_of="", pue=None, pue_source="", pue_as_of="")


def carbon(provider: str, region: str) -> Carbon:
    """Grid intensity and PUE of a region; `UNKNOWN` where no source states them, and for owned machines."""
    return _table().get((provider, region), UNKNOWN)


@cache
def _table() -> dict[tuple[str, str], Carbon]:
    return {(row["provider"], row["region"]): _carbon(row) for row in data_table("carbon.csv")}


def _carbon(row: dict[str, str]) -> Carbon:
    return Carbon(
        grid_g_per_kwh=float(row["grid_g_per_kwh"]) if row["grid_g_per_kwh"] else None,
        grid_source=row["grid_source"],
        grid_as_of=row["grid_as_of"],
        pue=float(row["pue"]) if row["pue"] else None,
        pue_source=row["pue_source"],
        pue_as_of=row["pue_as_of"],
    )
