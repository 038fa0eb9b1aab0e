"""Input and output of the estimator as arrays: one element per (machine shape, node count)."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import Accelerator

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CHECKPOINTING = ("none", "selective", "full")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """Clusters of equal nodes, as columns of equal length.

    `accelerators` is the table that `accelerator` indexes. `devices` are per node; `fraction` is the part of a card that
    one device is (1.0 for whole cards); `device_memory_mib` is of one device; `intranode_gbs` is GB/s per device in one
    direction (nan: the accelerator's own link, else its PCIe); `scaleup_domain` counts the devices that share that link
    across nodes; `internode_gbps` is Gbit/s of one node over all NICs (nan: unknown); `clusters` states whether several
    nodes can run one job.
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
        """The number of rows."""
        return len(self.nodes)

    def take(self, rows: Ints) -> "Machines":
        """The rows at these indices."""
        return Machines(accelerators=self.accelerators, **{name: getattr(self, name).take(rows) for name in _COLUMNS})


#: The columns of `Machines`.
_COLUMNS = tuple(field.name for field in fields(Machines) if field.name != "accelerators")


@lru_cache(maxsize=128)
def _alone(accelerator: Accelerator) -> tuple[Accelerator]:
    """The table of one accelerator, always the same one, for which its constants are known after the first time."""
    return (accelerator,)


def one_configuration(
    accelerator: Accelerator, *, devices: int, nodes: int = 1, internode_gbps: float = np.nan
) -> Machines:
    """One row: `nodes` machines of `devices` whole accelerators each, on the accelerator's own link."""
    return Machines(
        accelerators=_alone(accelerator),
        accelerator=np.zeros(1, dtype=np.int64),
        devices=np.array([devices], dtype=np.int64),
        fraction=np.ones(1),
        device_memory_mib=np.array([float(accelerator.device_memory_mib)]),
        intranode_gbs=np.full(1, np.nan),
        scaleup_domain=np.array([max(devices, accelerator.link_domain)], dtype=np.int64),
        internode_gbps=np.array([internode_gbps]),
        clusters=np.ones(1, dtype=bool),
        nodes=np.array([nodes], dtype=np.int64),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutRequest:
    """Parts of the layout that the user fixes; None lets the estimator choose."""

    data: int | None = None
    tensor: int | None = None
    pipeline: int | None = None
    context: int | None = None
    expert: int | None = None
    interleave: int | None = None
    zero_stage: int | None = None
    micro_batch: int | None = None
    checkpointing: str | None = None


#: Why a machine cannot run the job, by code; 0 means that it can.
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

    `reason` indexes `REASONS`. Where it is not 0, times are inf and `peak_gib` is the least that any layout needs.
    `log_sigma` is the standard deviation of ln(actual / predicted hours), so the 80 % band is
    hours x exp(-+1.2816 log_sigma). `precision` indexes `precisions`; `substituted` marks rows where `auto` selected
    another precision than bf16. `terms` are seconds per optimizer step by cause.
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

    @property
    def accelerators(self) -> Floats:
        """Accelerators of each row; 0 where no layout was found."""
        return (self.data * self.tensor * self.pipeline * self.context).astype(np.float64)

    def layout(self, index: int) -> dict[str, int | str]:
        """The layout of element `index`, as answers show it."""
        parts = ("data", "tensor", "pipeline", "context", "expert", "interleave", "zero_stage", "micro_batch")
        shape: dict[str, int | str] = {part: int(getattr(self, part)[index]) for part in parts}
        return shape | {"checkpointing": CHECKPOINTING[int(self.checkpointing[index])]}

    def only(self, index: int) -> "Estimates":
        """Element `index` alone."""
        at = slice(index, index + 1)
        arrays: dict[str, Any] = {name: getattr(self, name)[at] for name in arrays_of(self)}
        return replace(self, **arrays, terms={name: term[at] for name, term in self.terms.items()})

    def __len__(self) -> int:
        """The number of rows, equal to that of the machines."""
        return len(self.reason)


def arrays_of(estimates: Estimates) -> tuple[str, ...]:
    """Names of the per-machine arrays of an `Estimates`, without `terms`."""
    return tuple(f.name for f in fields(estimates) if f.name not in {"precisions", "terms"})


def assembled(rows: int, parts: Iterable[tuple[Ints, Estimates]]) -> Estimates:
    """Estimates of `rows` rows from at least one part; each part comes with its row indices.

    Parts are consumed one at a time, so only one is in memory. Raises ValueError without any part.
    """
    whole: Estimates | None = None
    for at, part in parts:
        if whole is None:
            arrays: dict[str, Any] = {name: np.empty(rows, getattr(part, name).dtype) for name in arrays_of(part)}
            whole = replace(part, **arrays, terms={name: np.empty(rows) for name in part.terms})
        for name in arrays_of(part):
            getattr(whole, name)[at] = getattr(part, name)
        for name, term in part.terms.items():
            whole.terms[name][at] = term
    if whole is None:
        raise ValueError("estimates of no part")
    return whole
