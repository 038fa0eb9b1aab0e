"""What a place adds to the bill: moving the data there, and keeping data and checkpoints there."""

from functools import lru_cache

import numpy as np

from catalog.columns import Columns
from catalog.egress import egress_tiers
from catalog.storage import storage_usd_per_gb_month
from planner.answer import Choice
from planner.job import DataSource, TrainingJob
from planner.screen import RegionCosts

#: A month as clouds bill it: 365.25 days / 12.
HOURS_PER_MONTH = 730.5


@lru_cache(maxsize=256)
def region_costs(columns: Columns, data: DataSource, checkpoints_gb: float) -> RegionCosts:
    """Egress and storage of every region of the snapshot for this data and this much checkpoint.

    Data that already lies in a place is not copied there: neither egress nor storage is added.
    Copies stand on block storage, checkpoints in object storage.
    """
    egress = np.zeros(len(columns.regions))
    storage = np.zeros(len(columns.regions))
    for i, (provider, region) in enumerate(columns.regions):
        copied_gb = copied(data, provider, region)
        if copied_gb and data.provider:
            egress[i] = egress_tiers(data.provider, data.region, provider, region).egress_usd(copied_gb)
        rate = storage_usd_per_gb_month(provider, region)
        monthly = rate.block_usd_per_gb_month * copied_gb + rate.object_usd_per_gb_month * checkpoints_gb
        storage[i] = monthly / HOURS_PER_MONTH
    return RegionCosts(egress_usd=egress, storage_usd_per_hour=storage)


def copied(data: DataSource, provider: str, region: str) -> float:
    """GB of the data set that must be brought to a place."""
    return 0.0 if (provider, region) == (data.provider, data.region) else data.dataset_gb


def place_notes(job: TrainingJob, choice: Choice) -> tuple[str, ...]:
    """What the egress and storage of the chosen place assume."""
    provider, region = choice.offer.provider, choice.offer.region
    notes = list(storage_usd_per_gb_month(provider, region).assumptions)
    if copied(job.data, provider, region) and job.data.provider:
        notes += egress_tiers(job.data.provider, job.data.region, provider, region).assumptions
    return tuple(notes)
