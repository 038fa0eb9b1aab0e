"""The answers of the catalogue: offers, accelerators, known models and snapshots.

Field names and their order are those of the JSON object.
"""

from dataclasses import dataclass
from typing import Literal

from gpuplan.api.schemas.json_types import Moment, Usd
from gpuplan.catalog.parsing.json_object import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferRow:
    """One machine in one place at one price; unknown figures are null."""

    provider: str
    region: str
    zone: str
    instance_type: str
    accelerator: str
    accelerator_count: float
    price_kind: str
    usd_per_hour: Usd
    """Effective, per node-hour over the term."""
    observed_at: Moment
    source: str
    observed_approximately: bool
    stale_since: Moment | None
    interruptions_per_hour: float | None
    modelled: tuple[str, ...]
    partial: tuple[str, ...]
    available: bool
    vcpus: float | None
    ram_gib: float | None
    network_gbps: float | None
    fixed_nodes: int | None
    sold_on_demand: bool
    retired: bool
    sale_notice: str | None
    """Who alone can still start such a machine; null where every account can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """A page of offers of one snapshot."""

    snapshot_id: str
    total: int
    offers: tuple[OfferRow, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorRow:
    """One device as a training framework sees it; unknown peaks are null."""

    name: str
    vendor: str
    architecture: str
    year: int | None
    form_factor: str
    memory_gb: float
    device_memory_mib: int
    memory_gbs: float | None
    fp32_tflops: float | None
    tf32_tflops: float | None
    fp16_tflops: float | None
    bf16_tflops: float | None
    fp8_tflops: float | None
    fp4_tflops: float | None
    fp16_is_tensor: bool
    link: str
    link_gbs: float | None
    link_domain: int
    pcie_gbs: float | None
    tdp_watts: float | None
    ecc: bool
    mig_slices: int | None
    trains: Literal["yes", "limited", "no"]
    trains_reason: str
    stack: str
    talks_to_peers: bool
    usual_per_node: int
    usual_internode_gbps: float
    source: str
    as_of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerators:
    """All accelerators of the catalogue."""

    accelerators: tuple[AcceleratorRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Presets:
    """The models that a job can name, with their dimensions."""

    presets: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRow:
    """A snapshot of all prices."""

    id: str
    observed_at: Moment
    created_at: Moment
    source: str
    offers: int
    current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshots:
    """The snapshots in the store, newest first."""

    snapshots: tuple[SnapshotRow, ...]
