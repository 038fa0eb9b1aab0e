"""What the estimator is asked about, and what it answers: one array element per (machine shape, node count)."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catalog.accelerators import Accelerator

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CHECKPOINTING = ("none", "selective", "full")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """Clusters of equal nodes, as columns of equal length.

    `accelerators` is the table that `accelerator` indexes. `devices` per node; `fraction` of a card
    that one device is (1.0 for whole cards); `device_memory_mib` of one device; `intranode_gbs` GB/s
    per device in one direction (nan: the accelerator's own link, else its PCIe); `scaleup_domain`
    devices that share that link across nodes; `internode_gbps` Gbit/s of one node, all NICs
    (nan: unknown); `clusters` whether nodes may work together.
    """

    accelerators: tuple[Accelerator, ...]
    accelerator: Ints
    devices: Ints
    fraction: Floats
    device_memory_mib: Floats
    intranode_gbs: Floats
    scaleup_domain: Ints
    internode_gbps: Floats
    clusters: NDArray[np.bool_]
    nodes: Ints

    def __len__(self) -> int:
        """Rows."""
        return len(self.nodes)

    def take(self, rows: Ints) -> "Machines":
        """Some of the rows."""
        columns = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name != "accelerators"}
        return Machines(accelerators=self.accelerators, **columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutRequest:
    """Parts of the layout that the user fixes; None is for the estimator to choose."""

    data: int | None = None
    tensor: int | None = None
    pipeline: int | None = None
    context: int | None = None
    expert: int | None = None
    interleave: int | None = None
    zero_stage: int | None = None
    micro_batch: int | None = None
    checkpointing: str | None = None


#: Why a machine cannot run the job, by code; 0 is "it can".
REASONS = (
    "",
    "does not train",
    "precision not supported",
    "does not fit in memory",
    "nodes do not cluster",
    "devices do not talk to each other",
    "no layout divides the model",
    "more accelerators than the batch has samples",
    "no kernels for quantised weights or 8-bit optimizer states",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """The fastest layout that fits, per machine; all arrays have the machines' length.

    Where `reason` is not 0 (an index into `REASONS`) times are inf; `peak_gib` is then the least
    that any layout needs. `log_sigma` is the standard deviation of ln(actual / predicted hours), so the 80 % band is
    hours x exp(-+1.2816 log_sigma). `precision` indexes `precisions`; `substituted` marks where `auto`
    did not take the preferred one. `terms` are seconds per optimizer step by cause.
    """

    precisions: tuple[str, ...]
    reason: Ints
    precision: Ints
    substituted: NDArray[np.bool_]
    step_seconds: Floats
    hours: Floats
    hours_with_goodput: Floats
    log_sigma: Floats
    mfu: Floats
    units_per_second: Floats
    tflops_per_accelerator: Floats
    peak_gib: Floats
    capacity_gib: Floats
    states_gib: Floats
    activations_gib: Floats
    other_gib: Floats
    data: Ints
    tensor: Ints
    pipeline: Ints
    context: Ints
    expert: Ints
    interleave: Ints
    zero_stage: Ints
    micro_batch: Ints
    checkpointing: Ints
    terms: dict[str, Floats]

    def layout(self, index: int) -> dict[str, int | str]:
        """The layout of element `index`, as it appears in every answer."""
        parts = ("data", "tensor", "pipeline", "context", "expert", "interleave", "zero_stage", "micro_batch")
        shape: dict[str, int | str] = {part: int(getattr(self, part)[index]) for part in parts}
        return shape | {"checkpointing": CHECKPOINTING[int(self.checkpointing[index])]}

    def __len__(self) -> int:
        """Rows, those of the machines asked about."""
        return len(self.reason)


def arrays_of(estimates: Estimates) -> tuple[str, ...]:
    """Names of the per-machine arrays of an `Estimates`, without `terms`."""
    return tuple(f.name for f in fields(estimates) if f.name not in {"precisions", "terms"})


def assembled(rows: int, parts: Iterable[tuple[Ints, Estimates]]) -> Estimates:
    """Estimates of so many rows out of parts, at least one, each with the rows that it is of; held one part at a time."""
    whole: Estimates | None = None
    for at, part in parts:
        if whole is None:
            arrays: dict[str, Any] = {name: np.empty(rows, getattr(part, name).dtype) for name in arrays_of(part)}
            whole = replace(part, **arrays, terms={name: np.empty(rows) for name in part.terms})
        for name in arrays_of(part):
            getattr(whole, name)[at] = getattr(part, name)
        for name, each in part.terms.items():
            whole.terms[name][at] = each
    if whole is None:
        raise ValueError("estimates of no part")
    return whole
