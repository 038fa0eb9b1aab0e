"""Constants of each accelerator as arrays, worked out once per table of accelerators."""

from dataclasses import dataclass

import numpy as np

from catalog.accelerators import Accelerator
from catalog.measured import MeasuredAccelerator
from planner.estimate.ceilings import EIGHT, SIXTEEN, VECTOR, best_matmul, ceilings, generation_is_measured
from planner.estimate.constants import places, value
from planner.estimate.machines import Floats, Ints

#: Precisions by name; a chip without a rate for one does not run it.
PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")
#: Which ceiling a precision's matmuls have; fp16 without tensor units is corrected per chip.
_CEILING = {"fp32": VECTOR, "tf32": SIXTEEN, "fp16": SIXTEEN, "bf16": SIXTEEN, "fp8": EIGHT, "fp4": EIGHT}

#: Held by driver and firmware, not offered to any process, GiB. On NVIDIA data-centre chips PyTorch names 0.4-0.8
#: less as total capacity (A100-80 79.15, A100-40 39.4-39.6) than nvidia-smi reports. Other vendors: assumed alike.
DRIVER_GIB = {"NVIDIA": 0.45, "AMD": 0.5, "Google": 0.3, "AWS": 1.0, "Intel": 1.0}
DRIVER_GIB_UNKNOWN = 0.5
#: Context of one process with its libraries (CUDA context, cuBLAS workspace, NCCL code), GiB: half a GiB and more on
#: CUDA; assumed for the others.
CONTEXT_GIB = {"NVIDIA": 0.6, "AMD": 1.0, "Google": 0.3, "AWS": 0.5, "Intel": 0.8}
CONTEXT_GIB_UNKNOWN = 0.8

#: Where a table says nothing about the host link: PCIe 3.0 x16, one direction (PCI-SIG).
PCIE_GBS_UNKNOWN = 15.75

#: Stacks with kernels for 4-bit weights and 8-bit optimizer states in training: bitsandbytes has CUDA and ROCm
#: back ends (its installation guide, 2025); XLA, Neuron and Habana have none.
QUANTISING_STACKS = frozenset(("cuda", "rocm"))

PREFERENCE = ("bf16", "fp16", "tf32", "fp32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chips:
    """One element per accelerator; `rates` are dense FLOP/s, `reach` the share of them in training,
    `attention` what attention reaches of that.

    Both are indexed by (`PRECISIONS`, accelerator), nan where a chip lacks the precision. `wide`
    is the precision that attention and logits run in when the rest is 8-bit or less; `preferred`
    what `auto` takes, -1 for none.
    """

    rates: Floats
    reach: Floats
    attention: Floats
    wide: Ints
    preferred: Ints
    memory_bytes_per_second: Floats
    peer_gbs: Floats
    link_domain: Ints
    pcie_gbs: Floats
    internode_gbps: Floats
    driver_gib: Floats
    context_gib: Floats
    quantises: np.ndarray[tuple[int], np.dtype[np.bool_]]
    trains: np.ndarray[tuple[int], np.dtype[np.bool_]]
    peers: np.ndarray[tuple[int], np.dtype[np.bool_]]
    measured: np.ndarray[tuple[int], np.dtype[np.bool_]]


_KNOWN: dict[int, tuple[tuple[Accelerator, ...], Chips]] = {}


def chips_of(table: tuple[Accelerator, ...]) -> Chips:
    """The constants of `table`; remembered by identity, since hashing rows costs more than the rest."""
    known = _KNOWN.get(id(table))
    if known is not None and known[0] is table:
        return known[1]
    if len(_KNOWN) >= 32:
        _KNOWN.clear()
    chips = _work_out(table)
    _KNOWN[id(table)] = (table, chips)
    return chips


def _work_out(table: tuple[Accelerator, ...]) -> Chips:
    rates = np.array([[_rate(chip, name) for chip in table] for name in PRECISIONS])
    reach = np.array([[_reach(chip, name) for chip in table] for name in PRECISIONS])
    preferred = np.array([_preferred(chip) for chip in table], dtype=np.int64)
    pcie = np.array([chip.pcie_gbs or PCIE_GBS_UNKNOWN for chip in table])
    return Chips(
        rates=rates,
        reach=reach,
        attention=np.array([value("attention_share", *places(chip)) for chip in table]),
        wide=np.maximum(preferred, 0),
        preferred=preferred,
        memory_bytes_per_second=np.array([chip.memory_gbs * 1e9 for chip in table]),
        peer_gbs=np.array([(chip.link_gbs or 0.0) / 2 for chip in table]),
        link_domain=np.array([chip.link_domain for chip in table], dtype=np.int64),
        pcie_gbs=pcie,
        internode_gbps=np.array([chip.usual_internode_gbps for chip in table]),
        driver_gib=np.array([DRIVER_GIB.get(chip.vendor, DRIVER_GIB_UNKNOWN) for chip in table]),
        context_gib=np.array([CONTEXT_GIB.get(chip.vendor, CONTEXT_GIB_UNKNOWN) for chip in table]),
        quantises=np.array([chip.stack in QUANTISING_STACKS for chip in table]),
        trains=np.array([chip.trains != "no" for chip in table]),
        peers=np.array([chip.talks_to_peers for chip in table]),
        measured=np.array([generation_is_measured(chip) or isinstance(chip, MeasuredAccelerator) for chip in table]),
    )


def peak_tflops(chip: Accelerator, precision: str) -> float | None:
    """Dense peak of `chip` in `precision`; None where it is unknown or lacking."""
    rate: float | None = getattr(chip, f"{precision}_tflops")
    return rate or None


def _rate(chip: Accelerator, precision: str) -> float:
    return (peak_tflops(chip, precision) or np.nan) * 1e12


def _reach(chip: Accelerator, precision: str) -> float:
    kind = _CEILING[precision]
    if precision == "fp16" and not chip.fp16_is_tensor:
        kind = VECTOR
    usual = ceilings(chip)[kind] * (value("four_bit_share") if precision == "fp4" else 1.0)
    best = chip.rates.best_tflops(precision) if isinstance(chip, MeasuredAccelerator) else None
    if best is None:
        return usual
    # A training step reaches the same part of the best matmul, whatever that is on this machine.
    return usual / best_matmul(chip)[kind] * best / (peak_tflops(chip, precision) or np.nan)


def _preferred(chip: Accelerator) -> int:
    """Index of what `auto` takes: tensor bf16, tensor fp16, tf32, fp32; never 8 bits; -1 if none is known."""
    for precision in PREFERENCE:
        usable = precision != "fp16" or chip.fp16_is_tensor
        if usable and peak_tflops(chip, precision):
            return PRECISIONS.index(precision)
    return -1


def forget() -> None:
    """Drop what was worked out, after a constant has been changed by a benchmark."""
    _KNOWN.clear()
