"""What the estimator says of each machine at each node count: the one thing that is taken and not worked out anew."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from catalog.accelerators import accelerators
from catalog.measured import MeasuredRates, as_measured
from catalog.offer import InstanceType
from planner.estimate.corrected import estimate_learned
from planner.estimate.learned import Learned
from planner.estimate.machines import REASONS, Machines
from planner.job import Training
from planner.own_steps import as_timed
from planner.verify.shelves import Machine
from planner.workload.work import Work

#: What decides how fast a machine is: two instance types alike in all of it are one machine.
Shape = tuple[str, int, float, float, float, int, float, bool, MeasuredRates | None]


class Row(NamedTuple):
    """One machine on so many nodes: time, spread and memory; `reason` is empty where it can run the job."""

    reason: str
    precision: str
    substituted: bool
    training_hours: float
    hours_with_goodput: float
    log_sigma: float
    units_per_second: float
    mfu: float
    peak_gib: float
    capacity_gib: float
    layout: tuple[tuple[str, int | str], ...]


def shape_of(machine: Machine) -> Shape:
    """The shape of a machine; unknown rates are -1."""
    each = machine.type
    share = min(1.0, float(each.accelerator_count))
    memory = each.accelerator_memory_mib or accelerators()[each.accelerator].device_memory_mib * share
    return (
        each.accelerator,
        each.devices,
        share,
        float(memory),
        -1.0 if each.intranode_gbs is None else each.intranode_gbs,
        each.scaleup_domain,
        -1.0 if each.network_gbps is None else each.network_gbps,
        each.clusters,
        machine.measured,
    )


def runs_on(each: InstanceType, counts: Iterable[int], most: int) -> list[int]:
    """Of the counts those that the type can be had in: all nodes of a slice together, one where nodes do not cluster."""
    if each.fixed_nodes:
        return [each.fixed_nodes] if each.fixed_nodes <= most else []
    return [count for count in counts if count == 1 or each.clusters]


class Estimator:
    """Rows for one job, asked for in bulk."""

    def __init__(self, work: Work, training: Training, goodput: float, learned: Learned) -> None:
        """For this work, trained like this."""
        self._work, self._training, self._goodput, self._learned = work, training, goodput, learned
        self._rows: dict[tuple[Shape, int], Row] = {}

    def row(self, machine: Machine, nodes: int) -> Row:
        """One row."""
        self.ask([(machine, nodes)])
        return self._rows[shape_of(machine), nodes]

    def ask(self, wanted: Iterable[tuple[Machine, int]]) -> dict[tuple[Shape, int], Row]:
        """All rows known so far, these among them."""
        missing = {(shape_of(machine), nodes): None for machine, nodes in wanted}
        keys = [key for key in missing if key not in self._rows]
        if keys:
            self._estimate(keys)
        return self._rows

    def _estimate(self, keys: list[tuple[Shape, int]]) -> None:
        names = {name: number for number, name in enumerate(accelerators())}
        table = list(accelerators().values())
        measured: dict[tuple[str, MeasuredRates], int] = {}
        chips = []
        for (name, *_, rates), _nodes in keys:
            if rates is None:
                chips.append(names[name])
                continue
            if (name, rates) not in measured:
                measured[name, rates] = len(table)
                table.append(as_measured(table[names[name]], rates))
            chips.append(measured[name, rates])
        column = list(zip(*(shape for shape, _ in keys), strict=True))
        machines = Machines(
            accelerators=tuple(table),
            accelerator=np.array(chips, np.int64),
            devices=np.array(column[1], np.int64),
            fraction=np.array(column[2], np.float64),
            device_memory_mib=np.array(column[3], np.float64),
            intranode_gbs=_unknown_as_nan(column[4]),
            scaleup_domain=np.array(column[5], np.int64),
            internode_gbps=_unknown_as_nan(column[6]),
            clusters=np.array(column[7], np.bool_),
            nodes=np.array([nodes for _, nodes in keys], np.int64),
        )
        found = estimate_learned(self._work, self._training, machines, goodput=self._goodput, learned=self._learned)
        if measured:
            found = as_timed(found, machines, self._work, self._training)
        listed = zip(
            found.reason.tolist(),
            found.precision.tolist(),
            found.substituted.tolist(),
            found.hours.tolist(),
            found.hours_with_goodput.tolist(),
            found.log_sigma.tolist(),
            found.units_per_second.tolist(),
            found.mfu.tolist(),
            found.peak_gib.tolist(),
            found.capacity_gib.tolist(),
            strict=True,
        )
        for number, (key, (reason, precision, *figures)) in enumerate(zip(keys, listed, strict=True)):
            layout = tuple(found.layout(number).items()) if not reason else ()
            self._rows[key] = Row._make((REASONS[reason], found.precisions[precision], *figures, layout))


def _unknown_as_nan(values: tuple[object, ...]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    known = np.array(values, np.float64)
    return np.where(known < 0, np.nan, known)
