"""TPU slices by zone, from the TPU API and the TPU hosts among Compute Engine's machines.

The API lists slices by name but omits some zones and generations; the machines of a zone show its generations but not its
slices. So a generation that the API does not list for a zone is taken from the machines, with all its documented slices.
"""

from collections.abc import Collection, Iterable
from functools import cache

from gpuplan.catalog.model.tpu_slices import TpuSlice, tpu_slices
from gpuplan.providers.gcp.mapping_tables import tpu_machines


@cache
def slice_named(accelerator_type: str) -> TpuSlice | None:
    """The documented slice of the TPU API's accelerator type (`v5p-8`), None for larger or unknown ones."""
    names = {accelerator_type, f"tpu-{accelerator_type}"}
    return next((tpu_slice for tpu_slice in tpu_slices() if tpu_slice.name in names), None)


def slices_in_zone(api_types: Collection[str], machine_types: Iterable[str]) -> list[TpuSlice]:
    """The slices of one zone, in the order of the table.

    `api_types` are the TPU API's accelerator types in the zone (empty if it did not answer), `machine_types` the
    accelerator types of Compute Engine's machines in the zone (`ct5lp`).
    """
    by_api = {tpu_slice.name for tpu_slice in map(slice_named, api_types) if tpu_slice is not None}
    listed = {tpu_slice.accelerator for tpu_slice in tpu_slices() if tpu_slice.name in by_api}
    hosts = [tpu_machines()[name] for name in machine_types if name in tpu_machines()]
    shown = {
        tpu_slice.name
        for host in hosts
        if host.accelerator not in listed
        for tpu_slice in tpu_slices()
        if tpu_slice.accelerator == host.accelerator and (host.single_hosts if tpu_slice.hosts == 1 else host.pods)
    }
    return [tpu_slice for tpu_slice in tpu_slices() if tpu_slice.name in by_api | shown]
