"""The rates and capacities of each machine row, and the reasons that exclude a row before any layout is tried."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Training
from gpuplan.planner.performance.accelerator_constants import PRECISIONS, Chips, chips_of
from gpuplan.planner.performance.estimator_request import REASONS, Floats, Ints, Machines
from gpuplan.planner.performance.fitted_constants import value
from gpuplan.planner.performance.software_stacks import stack_of

GIB = float(1 << 30)
AUTO = "auto"

_REASON = {reason: code for code, reason in enumerate(REASONS)}
DOES_NOT_TRAIN = _REASON["does not train"]
NO_PRECISION = _REASON["precision not supported"]
DOES_NOT_FIT = _REASON["does not fit in memory"]
NO_CLUSTER = _REASON["nodes do not cluster"]
NO_PEERS = _REASON["devices do not talk to each other"]
NO_LAYOUT = _REASON["no layout divides the model"]
NO_KERNELS = _REASON["no kernels for quantised weights or 8-bit optimizer states"]
TOO_MANY = _REASON["more accelerators than the batch has samples"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """Machine rows in SI units. Rates are those that training reaches; `peak` is the dense peak of one device, FLOP/s."""

    reason: Ints
    precision: Ints
    substituted: NDArray[np.bool_]
    peak: Floats
    linear_rate: Floats
    wide_rate: Floats
    attention_rate: Floats
    memory_rate: Floats
    peer_rate: Floats
    fabric_rate: Floats
    host_rate: Floats
    domain: Ints
    gpus: Floats
    log2_domains: Floats
    element_bytes: Floats
    capacity_bytes: Floats
    context_bytes: Floats
    measured: NDArray[np.bool_]

    def take(self, rows: Ints) -> "Clusters":
        """The rows at these indices."""
        return Clusters(**{name: getattr(self, name).take(rows) for name in _COLUMNS})


_COLUMNS = tuple(field.name for field in fields(Clusters))


def clusters_of(machines: Machines, training: Training) -> Clusters:
    """The rows of `machines` as `Clusters`, at the precision of `training`, or the preferred one of each chip for `auto`.

    Raises `UnusableInput` at training.precision for an unknown precision.
    """
    chips = chips_of(machines.accelerators)
    chip = machines.accelerator
    precision = _precision(chips, chip, training.precision)
    known = np.maximum(precision, 0)
    peak = chips.rates[known, chip] * machines.fraction
    narrow = known >= PRECISIONS.index("fp8")
    wide = np.where(narrow, chips.wide[chip], known)
    wide_rate = chips.rates[wide, chip] * chips.reach[wide, chip] * machines.fraction
    attention = chips.attention[chip]
    if stack_of(training).portable_attention:
        attention = attention * chips.portable_attention[chip]
    gpus = (machines.devices * machines.nodes).astype(np.float64)
    domain = np.where(machines.nodes == 1, machines.devices, np.maximum(machines.scaleup_domain, 1))
    capacity_gib = machines.device_memory_mib / 1024 - chips.driver_gib[chip] * machines.fraction
    return Clusters(
        reason=_reasons(machines, chips, training, precision, peak),
        precision=precision,
        substituted=_substituted(training.precision, precision),
        peak=_or_one(peak),
        linear_rate=_or_one(peak * chips.reach[known, chip]),
        wide_rate=_or_one(wide_rate),
        attention_rate=_or_one(wide_rate * attention),
        memory_rate=chips.memory_bytes_per_second[chip] * machines.fraction,
        peer_rate=_peer_gbs(machines, chips) * (1e9 * value("peer_link_share")),
        fabric_rate=_fabric_gbps(machines, chips) / machines.devices * (1e9 / 8 * value("fabric_share")),
        host_rate=chips.pcie_gbs[chip] * 1e9,
        domain=domain,
        gpus=gpus,
        log2_domains=np.log2(np.maximum(1.0, gpus / domain)),
        element_bytes=np.where(known <= PRECISIONS.index("tf32"), 4.0, 2.0),
        capacity_bytes=capacity_gib * GIB,
        context_bytes=chips.context_gib[chip] * GIB,
        measured=chips.measured[chip],
    )


def _or_one(rates: Floats) -> Floats:
    """The rates, 1 where unknown: such rows are excluded."""
    return np.where(np.isnan(rates), 1.0, rates)


def _precision(chips: Chips, chip: Ints, name: str) -> Ints:
    if name == AUTO:
        return chips.preferred[chip]
    if name not in PRECISIONS:
        accepted = ", ".join((AUTO, *PRECISIONS))
        raise UnusableInput.at("training", "precision", message=f"{name!r} is not one of {accepted}")
    index = PRECISIONS.index(name)
    return np.where(np.isnan(chips.rates[index, chip]), -1, index)


def _peer_gbs(machines: Machines, chips: Chips) -> Floats:
    """GB/s to peers in the machine: as stated, else half of the chip's two-way link if it reaches all, else PCIe.

    Cards without peer-to-peer copies have what passing through the host leaves of it.
    """
    chip = machines.accelerator
    link_gbs = chips.peer_gbs[chip]
    reaches = (link_gbs > 0) & (chips.link_domain[chip] >= machines.devices)
    usual = np.where(reaches, link_gbs, chips.peer_pcie_gbs[chip])
    return np.where(machines.intranode_gbs > 0, machines.intranode_gbs, usual)


def _fabric_gbps(machines: Machines, chips: Chips) -> Floats:
    """Gbit/s of a node: as stated, else the usual fabric of such machines; 0 without a fabric."""
    given = machines.internode_gbps > 0
    return np.where(given, machines.internode_gbps, chips.internode_gbps[machines.accelerator])


def _reasons(machines: Machines, chips: Chips, training: Training, precision: Ints, peak: Floats) -> Ints:
    """The reason that excludes a row before any layout is tried, 0 for none; later lines take precedence."""
    several = machines.devices * machines.nodes > 1
    alone = ~chips.peers[machines.accelerator] | (machines.fraction < 1)
    islands = ~machines.clusters | (_fabric_gbps(machines, chips) <= 0)
    reason = np.zeros(len(machines), dtype=np.int64)
    reason[(machines.nodes > 1) & islands] = NO_CLUSTER
    reason[several & alone] = NO_PEERS
    if training.method == "qlora" or training.optimizer.endswith("_8bit"):
        reason[~chips.quantises[machines.accelerator]] = NO_KERNELS
    reason[(precision < 0) | np.isnan(peak)] = NO_PRECISION
    reason[~chips.trains[machines.accelerator]] = DOES_NOT_TRAIN
    return reason


def _substituted(name: str, precision: Ints) -> NDArray[np.bool_]:
    """Where `auto` selected another precision than bf16."""
    differs: NDArray[np.bool_] = precision != PRECISIONS.index("bf16")
    return differs if name == AUTO else np.zeros_like(differs)
