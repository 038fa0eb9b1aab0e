"""Which TPU slices a zone has: what the TPU API lists, and what the TPU hosts among Compute Engine's machines show.

The API lists slices by name but forgets some zones and does not know every generation; the machines of a zone
show its generations but not its slices. So a generation that the API does not list for a zone is taken
from the machines, with all its documented slices.
"""

from collections.abc import Collection, Iterable
from functools import cache

from catalog.tpu_slices import TpuSlice, tpu_slices
from providers.gcp.tables import tpu_machines


@cache
def slice_named(accelerator_type: str) -> TpuSlice | None:
    """The documented slice of the TPU API's accelerator type (`v5p-8`), None for larger or unknown ones."""
    names = {accelerator_type, f"tpu-{accelerator_type}"}
    return next((each for each in tpu_slices() if each.name in names), None)


def slices_in_zone(api_types: Collection[str], machine_types: Iterable[str]) -> list[TpuSlice]:
    """The slices of one zone, in the order of the table.

    `api_types` are the TPU API's accelerator types there (empty if it did not say), `machine_types`
    the accelerator types of Compute Engine's machines there (`ct5lp`).
    """
    by_api = {each.name for each in map(slice_named, api_types) if each is not None}
    listed = {each.accelerator for each in tpu_slices() if each.name in by_api}
    hosts = [tpu_machines()[name] for name in machine_types if name in tpu_machines()]
    shown = {
        each.name
        for host in hosts
        if host.accelerator not in listed
        for each in tpu_slices()
        if each.accelerator == host.accelerator and (host.single_hosts if each.hosts == 1 else host.pods)
    }
    return [each for each in tpu_slices() if each.name in by_api | shown]
