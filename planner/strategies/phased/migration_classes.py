"""Migration classes: configurations of one software stack and precision, between which a checkpoint can be taken."""

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.candidates.configurations import Configurations
from gpuplan.planner.candidates.machine_shapes import Shapes
from gpuplan.planner.performance.accelerator_constants import PRECISIONS

Ints = NDArray[np.int64]


def migration_classes(candidates: Candidates, table: Configurations) -> Ints:
    """[table]: the migration class of each configuration, the same number in all markets."""
    if len(candidates.question.markets) == 1:
        return _migration_class_of(candidates, 0, table.place, table.row)
    migration_class = np.empty(len(table), np.int64)
    for number in range(len(candidates.question.markets)):
        mine = np.flatnonzero(table.market == number)
        migration_class[mine] = _migration_class_of(candidates, number, table.place[mine], table.row[mine])
    return migration_class


def _migration_class_of(candidates: Candidates, number: int, place: Ints, row: Ints) -> Ints:
    """The migration class of offers and estimates of one market."""
    snapshot, estimates = candidates.question.markets[number].snapshot, candidates.estimated[number].estimates
    shapes = snapshot.shapes
    stack = _stack_of(shapes)[shapes.of_type[snapshot.type_index[place]]]
    precisions = np.array([PRECISIONS.index(name) for name in estimates.precisions])
    return np.asarray(stack * len(PRECISIONS) + precisions[estimates.precision[row]])


def _stack_of(shapes: Shapes) -> Ints:
    """The number of the software stack of each of these shapes, in alphabetical order of all stacks."""
    stacks = sorted({accelerator.stack for accelerator in accelerators().values()})
    return np.array([stacks.index(accelerator.stack) for accelerator in shapes.accelerators], np.int64)[
        shapes.accelerator
    ]
