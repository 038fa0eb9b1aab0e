"""Capacity answers: one transaction per method."""

from gpuplan.catalog.store import stored_capacity
from gpuplan.catalog.store.store_part import StorePart, reads, writes


class CapacityStore(StorePart):
    """What clouds said about getting machines."""

    write = writes(stored_capacity.write_capacity)
    since = reads(stored_capacity.read_capacity)
