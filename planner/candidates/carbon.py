"""Grid carbon of every configuration: power at the socket times the hours it is drawn times what the grid emits.

    kg = nodes x run hours x kW of one node x PUE x grid (g CO2e per kWh) / 1000

Accelerators count at their whole design power while they run (a utilisation of 1), hosts at a share of it; for own
machines the inventory's power, PUE and grid stand in. What making the machines emitted is left out. A figure that
nobody publishes is nan, and stays nan: unknown carbon is never taken for none.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from catalog.accelerators import accelerators
from catalog.carbon import carbon
from catalog.columns import Columns
from planner.candidates.market import Market
from planner.candidates.requirements import BIT
from planner.job import TrainingJob

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Power of the host per watt of its accelerators where nobody states it: a DGX H100 draws 10.2 kW
#: for eight 700 W devices (NVIDIA DGX H100 data sheet), 0.82 W per accelerator watt.
HOST_WATTS_PER_ACCELERATOR_WATT = 0.82

#: What a plan says that was made for the sake of carbon.
ASSUMED = (
    "carbon counts accelerators at full design power while they run, "
    f"{HOST_WATTS_PER_ACCELERATOR_WATT:g} W of host per accelerator watt, the region's PUE and the yearly mean of its grid; "
    "making the machines is not counted"
)


def weighs_carbon(job: TrainingJob) -> bool:
    """Whether carbon decides anything of this job: then offers differ by their place's grid too."""
    return job.objective == "carbon" or job.constraints.carbon_budget_kg is not None


@lru_cache(maxsize=16)
def kg_per_kwh(columns: Columns) -> Floats:
    """Per region of the snapshot: kg CO2e for one kWh of computing, PUE included; nan where unknown."""
    found = [carbon(*place) for place in columns.regions]
    pairs = [
        np.nan if each.grid_g_per_kwh is None or each.pue is None else each.grid_g_per_kwh * each.pue / 1000
        for each in found
    ]
    return np.array(pairs, np.float64)


@lru_cache(maxsize=16)
def node_kw(columns: Columns) -> Floats:
    """Per instance type of the snapshot: kW of one node at work, without PUE; nan where unknown."""
    tdp = [accelerators()[each.accelerator].tdp_watts for each in columns.instance_types]
    count = [float(each.accelerator_count) for each in columns.instance_types]
    watts = np.array([np.nan if each is None else each for each in tdp], np.float64) * np.array(count, np.float64)
    return watts * (1 + HOST_WATTS_PER_ACCELERATOR_WATT) / 1000


def kg_per_node_hour(market: Market, place: Ints) -> Floats:
    """kg CO2e of one node at these places of a market's offers in an hour; nan where unknown."""
    kind, region = market.snapshot.type_index[place], market.snapshot.region_index[place]
    if market.owned:
        return np.array([_owned_kg_per_hour(market, i) for i in range(len(market.owned))], np.float64)[kind]
    return np.asarray(node_kw(market.columns)[kind] * kg_per_kwh(market.columns)[region], np.float64)


def _owned_kg_per_hour(market: Market, type_index: int) -> float:
    machine = market.owned[type_index]
    grams = np.nan if machine.grams_co2_per_kwh is None else machine.grams_co2_per_kwh
    return float(machine.power_watts / 1000 * machine.pue * grams / 1000)


def carbon_bits(job: TrainingJob, kg: Floats) -> NDArray[np.uint16]:
    """The requirement bits that these amounts break: a cap that they exceed, and an objective that cannot count them.

    Unknown amounts break both. Kilograms are compared to nine digits, as answers show them.
    """
    bits = np.zeros(len(kg), np.uint16)
    cap = job.constraints.carbon_budget_kg
    if cap is not None:
        bits[~(kg <= cap * (1 + 1e-9))] |= BIT["constraints.carbon_budget_kg"]
    if job.objective == "carbon":
        bits[np.isnan(kg)] |= BIT["objective"]
    return bits
