"""Hours from the order of machines until the first step: as the settings state, else modelled from `setup_times.csv`.

    hours = boot (provider, kind of machine) + pull of the image + start of the program + slowest x ln(nodes)

A cluster begins when its slowest node is ready, which takes longer the more nodes there are; of times with an exponential
tail, the greatest of n grows with ln n. Machines of one's own neither boot nor pull. The time in which the data are read
belongs to the work, not to the set-up.
"""

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.model.setup_times import (
    BOOT,
    CAPACITY_BLOCK,
    IMAGE,
    OWNED,
    SLOWEST,
    START,
    TPU_SLICE,
    SetupTime,
    setup_times,
)
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.snapshot_cache import cached_per_snapshot

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def setup_hours_of(
    columns: Columns, type_: NDArray[np.intp], kind: NDArray[np.intp], nodes: Ints, stated: float | None
) -> Floats:
    """Hours of set-up of each configuration: arrays of instance types, price kinds and node counts; `stated` wins."""
    if stated is not None:
        return np.full(len(nodes), stated)
    of_one_node = _of_one_node(columns)
    at = type_ * of_one_node.shape[1] + kind
    logarithms = np.log(np.arange(1.0, nodes.max(initial=0) + 1.0))
    slowest = setup_times()[SLOWEST, "", ""].minutes / 60.0
    return np.asarray(of_one_node.ravel().take(at) + slowest * logarithms.take(nodes - 1))


@cached_per_snapshot(4)
def _of_one_node(columns: Columns) -> Floats:
    """Hours of set-up of one node: [instance types, price kinds]."""
    machines = [(machine.provider, machine.accelerator) for machine in columns.instance_types]
    minutes = {
        machine: [sum(part.minutes for part in parts_of_one_node(*machine, kind)) for kind in columns.kinds]
        for machine in dict.fromkeys(machines)
    }
    of_types = np.array([minutes[machine] for machine in machines], np.float64)
    return of_types.reshape(len(machines), len(columns.kinds)) / 60.0


def parts_of_one_node(provider: str, accelerator: str, price_kind: str) -> tuple[SetupTime, SetupTime, SetupTime]:
    """Boot, image and start of one node of this provider with this accelerator at this price kind."""
    rows, machine = setup_times(), _kind_of_machine(accelerator, price_kind)
    boot = rows.get((BOOT, "", machine)) if machine else rows.get((BOOT, provider, ""))
    image = rows.get((IMAGE, "", machine), rows[IMAGE, "", ""])
    return boot or rows[BOOT, "", ""], image, rows[START, "", ""]


def _kind_of_machine(accelerator: str, price_kind: str) -> str:
    """The name in the table of a kind of machine with rows of its own; empty for a virtual machine."""
    if price_kinds()[price_kind].owned:
        return OWNED
    if accelerators()[accelerator].stack == "xla":
        return TPU_SLICE
    return CAPACITY_BLOCK if (BOOT, "", price_kind) in setup_times() else ""
