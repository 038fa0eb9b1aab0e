"""The chosen configuration while it runs: layout, rate, memory, checkpoints, carbon."""

import numpy as np

from catalog.accelerators import accelerators
from catalog.carbon import carbon
from planner.answer import Phase
from planner.candidates.configurations import Configurations
from planner.candidates.gather import Candidates
from planner.candidates.market import Market
from planner.choice import in_words
from planner.cost.preemption import checkpoint_interval

#: Power of the host per watt of its accelerators where nobody states it: a DGX H100 draws 10.2 kW
#: for eight 700 W devices (NVIDIA DGX H100 data sheet), 0.82 W per accelerator watt.
HOST_WATTS_PER_ACCELERATOR_WATT = 0.82


def phase(found: Candidates, table: Configurations, index: int) -> Phase:
    """Configuration `index` as the phase of a plan."""
    market_number, row = int(table.market[index]), int(table.row[index])
    market, estimates = found.question.markets[market_number], found.estimated[market_number].estimates
    choice = in_words(found, table, index)
    rate = float(table.cluster_rate[index])
    work_hours = estimates.hours_with_goodput[row : row + 1]
    interval = (
        checkpoint_interval(work_hours, table.checkpoint_hours[index : index + 1], np.array([rate])) if rate else None
    )
    return Phase(
        choice=choice,
        precision=estimates.precisions[int(estimates.precision[row])],
        precision_substituted=bool(estimates.substituted[row]),
        layout=estimates.layout(row),
        throughput=float(estimates.units_per_second[row]),
        unit=f"{found.question.work.unit}/s",
        mfu=float(estimates.mfu[row]),
        memory_gib=float(estimates.peak_gib[row]),
        capacity_gib=float(estimates.capacity_gib[row]),
        training_hours=float(estimates.hours[row]),
        hours_with_goodput=float(work_hours[0]),
        log_sigma=float(estimates.log_sigma[row]),
        interruptions_per_hour=rate / choice.nodes,
        checkpoint_interval_hours=None if interval is None else float(interval[0]),
        expected_preemptions=rate * float(table.bill.run_hours[index]),
        carbon_kg=_carbon_kg(market, table, index),
        correction=found.question.learned.of(choice.accelerator),
    )


def _carbon_kg(market: Market, table: Configurations, index: int) -> float | None:
    """Grid carbon of the run in kg, None where power or grid is unknown."""
    place = int(table.place[index])
    type_index = int(market.snapshot.type_index[place])
    each = market.columns.instance_types[type_index]
    busy_node_hours = float(table.nodes[index] * table.bill.run_hours[index])
    grams: float | None
    pue: float | None
    watts: float
    if market.owned:
        machine = market.owned[type_index]
        grams, pue, watts = machine.grams_co2_per_kwh, machine.pue, machine.power_watts
    else:
        provider, region = market.columns.regions[int(market.snapshot.region_index[place])]
        figures = carbon(provider, region)
        tdp = accelerators()[each.accelerator].tdp_watts
        if tdp is None:
            return None
        grams, pue = figures.grid_g_per_kwh, figures.pue
        watts = tdp * float(each.accelerator_count) * (1 + HOST_WATTS_PER_ACCELERATOR_WATT)
    if grams is None or pue is None:
        return None
    return busy_node_hours * watts / 1000 * pue * grams / 1000
