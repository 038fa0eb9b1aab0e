"""Constants of each accelerator as arrays, computed once per table of accelerators."""

import re
from dataclasses import dataclass

import numpy as np

from gpuplan.catalog.model.accelerators import Accelerator
from gpuplan.catalog.model.measured_rates import MeasuredAccelerator
from gpuplan.planner.performance.estimator_request import Floats, Ints
from gpuplan.planner.performance.fitted_constants import is_listed, places, value

SIXTEEN, EIGHT, VECTOR = 0, 1, 2

#: Share of the vector peak that cuBLAS reaches in one matmul, without the rest of a training step.
VECTOR_MATMUL = 0.90


def best_matmul(chip: Accelerator) -> tuple[float, float, float]:
    """Shares of dense peak that the best single matmul reaches (16-bit and tf32, 8-bit and below, vector fp32)."""
    where = places(chip)
    return value("mamf_16bit", *where), value("mamf_8bit", *where), VECTOR_MATMUL


def ceilings(chip: Accelerator) -> tuple[float, float, float]:
    """Shares of dense peak that training reaches in (16-bit and tf32, 8-bit and below, vector fp32) matmuls.

    Plain fp32 units are limited by instruction issue rather than by memory, so neither MAMF nor `stack_share` applies.
    """
    sixteen, eight, _ = best_matmul(chip)
    stack = value("stack_share", *places(chip))
    return sixteen * stack, eight * value("eight_bit_share") * stack, value("vector_ceiling")


def generation_is_measured(chip: Accelerator) -> bool:
    """Whether runs of this chip or its architecture, not only of its vendor, identify the share."""
    return is_listed("stack_share", *places(chip)[:2])


#: Precisions by name. A chip supports those for which it has a rate.
PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")
#: The matmul ceiling of each precision; `_reach` corrects fp16 on chips without tensor units.
_CEILING = {"fp32": VECTOR, "tf32": SIXTEEN, "fp16": SIXTEEN, "bf16": SIXTEEN, "fp8": EIGHT, "fp4": EIGHT}

#: Memory that driver and firmware reserve, GiB. On NVIDIA data-centre chips PyTorch reports 0.4-0.8 GiB less total
#: capacity (A100-80 79.15, A100-40 39.4-39.6) than nvidia-smi. Other vendors: assumed similar.
DRIVER_GIB = {"NVIDIA": 0.45, "AMD": 0.5, "Google": 0.3, "AWS": 1.0, "Intel": 1.0}
DRIVER_GIB_UNKNOWN = 0.5
#: Context of one process with its libraries (CUDA context, cuBLAS workspace, NCCL code), GiB: half a GiB and more on
#: CUDA; assumed for the others.
CONTEXT_GIB = {"NVIDIA": 0.6, "AMD": 1.0, "Google": 0.3, "AWS": 0.5, "Intel": 0.8}
CONTEXT_GIB_UNKNOWN = 0.8

#: Default where the table has no host link: PCIe 3.0 x16, one direction (PCI-SIG).
PCIE_GBS_UNKNOWN = 15.75

#: GeForce and Titan cards: their driver gives no peer-to-peer copies over PCIe, so traffic passes through host memory.
_WITHOUT_PEER_COPIES = re.compile(r"GTX-|RTX-[2-5]0[5-9]\d|Titan-")

#: Stacks with kernels for 4-bit weights and 8-bit optimizer states in training: bitsandbytes has CUDA and ROCm
#: back ends (its installation guide, 2025); XLA, Neuron and Habana have none.
QUANTISING_STACKS = frozenset(("cuda", "rocm"))

PREFERENCE = ("bf16", "fp16", "tf32", "fp32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chips:
    """Constants with one element per accelerator.

    `rates` are dense FLOP/s and `reach` the share of them that training reaches, both indexed by (`PRECISIONS`,
    accelerator) and nan where a chip lacks the precision. `attention` is the share of the training rate that attention
    reaches, `portable_attention` the share of that which FlashAttention-2 reaches, written for Ampere. `wide` is the index
    of the precision of attention and logits where the rest runs at 8 bits or less; `preferred` that of the precision that
    `auto` selects, -1 for none.
    """

    rates: Floats
    reach: Floats
    attention: Floats
    portable_attention: Floats
    wide: Ints
    preferred: Ints
    memory_bytes_per_second: Floats
    peer_gbs: Floats
    link_domain: Ints
    pcie_gbs: Floats
    peer_pcie_gbs: Floats
    internode_gbps: Floats
    driver_gib: Floats
    context_gib: Floats
    quantises: np.ndarray[tuple[int], np.dtype[np.bool_]]
    trains: np.ndarray[tuple[int], np.dtype[np.bool_]]
    peers: np.ndarray[tuple[int], np.dtype[np.bool_]]
    measured: np.ndarray[tuple[int], np.dtype[np.bool_]]


_CACHE: dict[int, tuple[tuple[Accelerator, ...], Chips]] = {}


def chips_of(table: tuple[Accelerator, ...]) -> Chips:
    """The constants of `table`, cached by identity because hashing the rows costs more than the lookup."""
    cached = _CACHE.get(id(table))
    if cached is not None and cached[0] is table:
        return cached[1]
    if len(_CACHE) >= 32:
        _CACHE.clear()
    chips = _computed(table)
    _CACHE[id(table)] = (table, chips)
    return chips


def _computed(table: tuple[Accelerator, ...]) -> Chips:
    rates = np.array([[_rate(chip, name) for chip in table] for name in PRECISIONS])
    reach = np.array([[_reach(chip, name) for chip in table] for name in PRECISIONS])
    preferred = np.array([_preferred(chip) for chip in table], dtype=np.int64)
    pcie = np.array([chip.pcie_gbs or PCIE_GBS_UNKNOWN for chip in table])
    return Chips(
        rates=rates,
        reach=reach,
        attention=np.array([value("attention_share", *places(chip)) for chip in table]),
        portable_attention=np.array([value("portable_attention", *places(chip)) for chip in table]),
        wide=np.maximum(preferred, 0),
        preferred=preferred,
        memory_bytes_per_second=np.array([chip.memory_gbs * 1e9 for chip in table]),
        peer_gbs=np.array([(chip.link_gbs or 0.0) / 2 for chip in table]),
        link_domain=np.array([chip.link_domain for chip in table], dtype=np.int64),
        pcie_gbs=pcie,
        peer_pcie_gbs=pcie * np.array([_peer_copy_share(chip) for chip in table]),
        internode_gbps=np.array([chip.usual_internode_gbps for chip in table]),
        driver_gib=np.array([DRIVER_GIB.get(chip.vendor, DRIVER_GIB_UNKNOWN) for chip in table]),
        context_gib=np.array([CONTEXT_GIB.get(chip.vendor, CONTEXT_GIB_UNKNOWN) for chip in table]),
        quantises=np.array([chip.stack in QUANTISING_STACKS for chip in table]),
        trains=np.array([chip.trains != "no" for chip in table]),
        peers=np.array([chip.talks_to_peers for chip in table]),
        measured=np.array([generation_is_measured(chip) or isinstance(chip, MeasuredAccelerator) for chip in table]),
    )


def _peer_copy_share(chip: Accelerator) -> float:
    """The share of PCIe that collectives between cards without a link of their own see."""
    return value("host_copy_share") if _WITHOUT_PEER_COPIES.match(chip.name) else 1.0


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
    # A training step reaches the same share of the best matmul on every machine with this chip.
    return usual / best_matmul(chip)[kind] * best / (peak_tflops(chip, precision) or np.nan)


def _preferred(chip: Accelerator) -> int:
    """Index of the precision that `auto` selects: tensor bf16, tensor fp16, tf32, fp32; never 8 bits; -1 if none."""
    for precision in PREFERENCE:
        usable = precision != "fp16" or chip.fp16_is_tensor
        if usable and peak_tflops(chip, precision):
            return PRECISIONS.index(precision)
    return -1


def forget() -> None:
    """Clear the cache, after a benchmark has changed a constant."""
    _CACHE.clear()
