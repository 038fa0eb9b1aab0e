"""Costs that depend on the place: egress of the data, and storage of data and checkpoints."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.egress_rates import EgressRate, egress_tiers
from gpuplan.catalog.model.storage_rates import storage_usd_per_gb_month
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.candidates.configuration_carbon import kg_per_kwh
from gpuplan.planner.candidates.offer_screening import RegionCosts
from gpuplan.planner.model.current_placement import Origin
from gpuplan.planner.model.job import DataSource, TrainingJob
from gpuplan.planner.model.outcome import Choice
from gpuplan.planner.snapshot_cache import cached_per_snapshot

Floats = NDArray[np.float64]

#: A month as clouds bill it: 365.25 days / 12.
HOURS_PER_MONTH = 730.5


@cached_per_snapshot(256)
def region_costs(columns: Columns, data: DataSource, checkpoints_gb: float) -> RegionCosts:
    """Egress and storage costs of every region of the snapshot for this data and `checkpoints_gb` of checkpoints.

    Data is not copied to the place where it already is: neither egress nor storage is added. Copies are on block storage,
    checkpoints in object storage.
    """
    block, object_storage = _storage(columns)
    home = (data.provider, data.region)
    elsewhere = np.array([place != home for place in columns.regions], np.bool_)
    monthly = block * elsewhere * data.dataset_gb + object_storage * checkpoints_gb
    return RegionCosts(
        egress_usd=_egress(columns, data) * elsewhere,
        storage_usd_per_hour=monthly / HOURS_PER_MONTH,
        kg_per_kwh=kg_per_kwh(columns),
    )


def under_way(costs: RegionCosts, columns: Columns, origin: Origin, one_checkpoint_gb: float) -> RegionCosts:
    """The costs for a running job: its checkpoint must be moved too, and its current place already has the data."""
    at_origin = np.array([place == (origin.provider, origin.region) for place in columns.regions], np.bool_)
    rates = _egress_rates(columns, origin.provider, origin.region)
    return replace(
        costs,
        egress_usd=np.where(at_origin, 0.0, costs.egress_usd),
        fetch_usd=np.where(at_origin, 0.0, _usd_of(rates, one_checkpoint_gb)),
        delay_hours=origin.write_hours + np.where(at_origin, 0.0, origin.far_hours),
    )


@lru_cache(maxsize=8)
def _storage(columns: Columns) -> tuple[Floats, Floats]:
    """USD per GB-month of block and of object storage, per region."""
    rates = [storage_usd_per_gb_month(provider, region) for provider, region in columns.regions]
    block = np.array([rate.block_usd_per_gb_month for rate in rates])
    return block, np.array([rate.object_usd_per_gb_month for rate in rates])


def _egress(columns: Columns, data: DataSource) -> Floats:
    """USD of egress to bring the data to each region once."""
    if not data.provider or not data.dataset_gb:
        return np.zeros(len(columns.regions))
    return _usd_of(_egress_rates(columns, data.provider, data.region), data.dataset_gb)


def _usd_of(rates: tuple[EgressRate, ...], gigabytes: float) -> Floats:
    """USD to move this much once at each rate; most of them share their tiers."""
    usd = {tiers: rate.egress_usd(gigabytes) for tiers, rate in {rate.tiers: rate for rate in rates}.items()}
    return np.array([usd[rate.tiers] for rate in rates])


def _egress_rates(columns: Columns, provider: str, region: str) -> tuple[EgressRate, ...]:
    return tuple(egress_tiers(provider, region, *place) for place in columns.regions)


def copied(data: DataSource, provider: str, region: str) -> float:
    """GB of the data set that must be brought to a place."""
    return 0.0 if (provider, region) == (data.provider, data.region) else data.dataset_gb


def place_notes(job: TrainingJob, choice: Choice) -> tuple[str, ...]:
    """What the egress and storage of the chosen place assume."""
    provider, region = choice.offer.provider, choice.offer.region
    storage = storage_usd_per_gb_month(provider, region)
    notes = list(storage.assumptions)
    if copied(job.data, provider, region) and storage.block_usd_per_gb_month:
        notes.append("one copy of the data is brought to the place and kept on block storage while the job runs")
    if copied(job.data, provider, region) and job.data.provider:
        notes += egress_tiers(job.data.provider, job.data.region, provider, region).assumptions
    return tuple(notes)
