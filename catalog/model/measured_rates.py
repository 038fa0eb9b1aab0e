"""Rates measured on the user's own machines; they override data sheets and tables.

A calibration file holds them. `gpuplan.planner.performance` uses them for offers of that machine only.
"""

from dataclasses import dataclass, fields
from datetime import datetime

from gpuplan.catalog.model.accelerators import Accelerator

#: Share of the data sheet's memory bandwidth that a plain device-to-device copy reaches: 1.77 of 2.04 TB/s on A100 80 GB,
#: 3.02 of 3.35 on H100, 0.84 of 0.94 on RTX 3090 (BabelStream's and NVIDIA's own bandwidth tests). The estimator starts
#: from the data sheet, so a measured copy is divided by this share.
COPY_SHARE = 0.89
#: The same share for one direction of a link between two devices: 0.39 of 0.45 TB/s of NVLink 4, 26 of 31.5 GB/s of PCIe 4.
PEER_COPY_SHARE = 0.85


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulRate:
    """Square matrix products of `size`, in TFLOP/s; `precision` as in a job."""

    precision: str
    size: int
    tflops: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerStep:
    """One optimizer step of a small causal language model on one device: `batch` sequences, no recomputation."""

    precision: str
    software: str
    seconds: float
    batch: int
    layers: int
    hidden_size: int
    ffn_size: int
    attention_heads: int
    vocabulary_size: int
    sequence_length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolutionStep:
    """One optimizer step of ResNet-50 on one device: `batch` images of `image_size` pixels square, SGD."""

    precision: str
    software: str
    seconds: float
    batch: int
    image_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRates:
    """Rates of one device of one machine: bandwidths in GB/s in one direction, None where none could be measured.

    `memory_gbs` is bytes read plus bytes written by a copy within the device; `host_gbs` from pinned host memory to the
    device; `peer_gbs` from one device to its neighbour.
    """

    measured_at: datetime
    matmuls: tuple[MatmulRate, ...]
    memory_gbs: float
    host_gbs: float | None = None
    peer_gbs: float | None = None
    transformer: TransformerStep | None = None
    convolution: ConvolutionStep | None = None

    def best_tflops(self, precision: str) -> float | None:
        """The best matmul rate in `precision` over all sizes; None if it was not measured."""
        return max((matmul.tflops for matmul in self.matmuls if matmul.precision == precision), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredAccelerator(Accelerator):
    """The accelerator of one owned machine: its table row, with measured bandwidths and matmul rates."""

    rates: MeasuredRates


def as_measured(chip: Accelerator, rates: MeasuredRates) -> MeasuredAccelerator:
    """`chip` with measured bandwidths instead of nominal ones. Dense peaks stay, because MFU is relative to them."""
    row = {field.name: getattr(chip, field.name) for field in fields(Accelerator)}
    row["memory_gbs"] = rates.memory_gbs / COPY_SHARE
    if rates.host_gbs is not None:
        row["pcie_gbs"] = rates.host_gbs
    return MeasuredAccelerator(**row, rates=rates)
