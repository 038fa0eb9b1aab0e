"""Costs and carbon of a place: egress of the data, storage of data and checkpoints, and the carbon of its grid."""

from dataclasses import dataclass
from functools import lru_cache

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.egress_rates import egress_tiers
from gpuplan.catalog.model.grid_carbon import carbon
from gpuplan.catalog.model.storage_rates import storage_usd_per_gb_month
from gpuplan.planner.model.job import DataSource, Training
from gpuplan.planner.verify.estimator_port import Work
from gpuplan.planner.verify.offer_groups import Machine, Place

#: 365.25 days / 12.
MONTH_HOURS = 730.5
GB_PER_GIB = 1024**3 / 1e9
#: Bytes of an fp32 weight, stored beside the optimizer's moments.
WEIGHT_BYTES = 4.0
#: Bytes of moments per trained parameter: two fp32 values of Adam (Kingma 2015) and LAMB (You 2020), one of Lion
#: (Chen 2023) and of momentum, two of one byte in 8 bit (Dettmers 2022), and of Adafactor one value per row and
#: column (Shazeer 2018).
MOMENT_BYTES = {
    "adamw": 8.0,
    "adam": 8.0,
    "lamb": 8.0,
    "lion": 4.0,
    "lars": 4.0,
    "sgd": 4.0,
    "momentum": 4.0,
    "rmsprop": 4.0,
    "adagrad": 4.0,
    "muon": 4.0,
    "adamw_8bit": 2.0,
    "adam_8bit": 2.0,
    "lion_8bit": 1.0,
    "adafactor": 0.1,
}
#: A DGX H100 draws 10.2 kW, of which its eight devices take 8 x 700 W (NVIDIA's data sheet): 0.82 W per device watt.
HOST_WATTS = 0.82


def checkpoint_gb(work: Work, training: Training) -> float:
    """GB (10^9 bytes) of one checkpoint: trained weights and moments, or the stated memory of explicit work."""
    if work.fixed_state_gib is not None:
        return work.fixed_state_gib * GB_PER_GIB
    return work.trainable_parameters * (WEIGHT_BYTES + MOMENT_BYTES[training.optimizer]) / 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceCost:
    """USD: `egress` once, `storage_per_hour` while the job runs."""

    egress: float
    storage_per_hour: float


@lru_cache(maxsize=4096)
def _rates(place: Place) -> tuple[float, float]:
    rates = storage_usd_per_gb_month(*place)
    return rates.block_usd_per_gb_month, rates.object_usd_per_gb_month


def place_cost(place: Place, data: DataSource, checkpoints_gb: float) -> PlaceCost:
    """Cost of a place: egress and block storage of the data unless they are there, and object storage of the
    checkpoints.
    """
    brought = 0.0 if place == (data.provider, data.region) else data.dataset_gb
    block_storage, object_storage = _rates(place)
    egress = egress_tiers(data.provider, data.region, *place).egress_usd(brought) if brought and data.provider else 0.0
    return PlaceCost(
        egress=egress, storage_per_hour=(block_storage * brought + object_storage * checkpoints_gb) / MONTH_HOURS
    )


def carbon_kg(machine: Machine, place: Place, node_hours: float) -> float | None:
    """kg of CO2 of busy node-hours; None where power, PUE or grid is unknown."""
    owned_machine = machine.owned
    if owned_machine is not None:
        watts, pue, grams = owned_machine.power_watts, owned_machine.pue, owned_machine.grams_co2_per_kwh
        return None if grams is None else node_hours * watts / 1000 * pue * grams / 1000
    tdp, figures = accelerators()[machine.type.accelerator].tdp_watts, carbon(*place)
    if tdp is None or figures.pue is None or figures.grid_g_per_kwh is None:
        return None
    devices_kw = tdp * float(machine.type.accelerator_count) / 1000
    return node_hours * devices_kw * (1 + HOST_WATTS) * figures.pue * figures.grid_g_per_kwh / 1000
