"""Grid carbon of every configuration: electric power times hours times the carbon intensity of the grid.

    kg = nodes x run hours x kW of one node x PUE x grid (g CO2e per kWh) / 1000

Accelerators count at their full design power while they run (a utilisation of 1), hosts at a share of it. Owned machines
use the power, PUE and grid of the inventory. Emissions of manufacturing are not counted. An unpublished figure is nan
and stays nan: unknown carbon is never treated as zero.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.grid_carbon import carbon
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.candidates.job_requirements import BIT
from gpuplan.planner.candidates.markets import Market
from gpuplan.planner.model.job import TrainingJob

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Power of the host per watt of its accelerators where it is not stated: a DGX H100 draws 10.2 kW
#: for eight 700 W devices (NVIDIA DGX H100 data sheet), 0.82 W per accelerator watt.
HOST_WATTS_PER_ACCELERATOR_WATT = 0.82

#: The assumption shown in plans for which carbon is a criterion.
ASSUMED = (
    "carbon counts accelerators at full design power while they run, "
    f"{HOST_WATTS_PER_ACCELERATOR_WATT:g} W of host per accelerator watt, the region's PUE and the yearly mean of its grid; "
    "making the machines is not counted"
)


def weighs_carbon(job: TrainingJob) -> bool:
    """Whether carbon is the objective or limited by a budget; then offers also differ by the grid of their region."""
    return job.objective == "carbon" or job.constraints.carbon_budget_kg is not None


@lru_cache(maxsize=8)
def kg_per_kwh(columns: Columns) -> Floats:
    """kg CO2e per kWh at the machine, PUE included, per region of the snapshot; nan where unknown."""
    grids = [carbon(*place) for place in columns.regions]
    pairs = [
        np.nan if grid.grid_g_per_kwh is None or grid.pue is None else grid.grid_g_per_kwh * grid.pue / 1000
        for grid in grids
    ]
    return np.array(pairs, np.float64)


@lru_cache(maxsize=16)
def node_kw(columns: Columns) -> Floats:
    """kW of one running node, without PUE, per instance type of the snapshot; nan where unknown."""
    tdp = [accelerators()[instance_type.accelerator].tdp_watts for instance_type in columns.instance_types]
    count = [float(instance_type.accelerator_count) for instance_type in columns.instance_types]
    watts = np.array([np.nan if device_watts is None else device_watts for device_watts in tdp], np.float64) * np.array(
        count, np.float64
    )
    return watts * (1 + HOST_WATTS_PER_ACCELERATOR_WATT) / 1000


def kg_per_node_hour(market: Market, place: Ints) -> Floats:
    """kg CO2e per hour of one node at these places of a market's offers; nan where unknown."""
    kind, region = market.snapshot.type_index[place], market.snapshot.region_index[place]
    if market.owned:
        return np.array([_owned_kg_per_hour(market, i) for i in range(len(market.owned))], np.float64)[kind]
    return np.asarray(node_kw(market.columns)[kind] * kg_per_kwh(market.columns)[region], np.float64)


def _owned_kg_per_hour(market: Market, type_index: int) -> float:
    machine = market.owned[type_index]
    grams = np.nan if machine.grams_co2_per_kwh is None else machine.grams_co2_per_kwh
    return float(machine.power_watts / 1000 * machine.pue * grams / 1000)


def carbon_bits(job: TrainingJob, kg: Floats) -> NDArray[np.uint32]:
    """The requirement bits that these amounts break: an exceeded carbon budget, or a carbon objective without a figure.

    Unknown amounts break both. Kilograms are compared to nine digits, as answers show them.
    """
    bits = np.zeros(len(kg), np.uint32)
    cap = job.constraints.carbon_budget_kg
    if cap is not None:
        bits[~(kg <= cap * (1 + 1e-9))] |= BIT["constraints.carbon_budget_kg"]
    if job.objective == "carbon":
        bits[np.isnan(kg)] |= BIT["objective"]
    return bits
