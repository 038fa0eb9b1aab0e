"""Capacity answers and quotas: one transaction per method."""

from gpuplan.catalog.store import stored_capacity, stored_quotas
from gpuplan.catalog.store.store_part import StorePart, reads, writes


class CapacityStore(StorePart):
    """What clouds said about getting machines, and about quotas."""

    write = writes(stored_capacity.write_capacity)
    since = reads(stored_capacity.read_capacity)
    write_quotas = writes(stored_quotas.write_quotas)
    quotas = reads(stored_quotas.read_quotas)
