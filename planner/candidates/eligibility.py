"""Eligibility of offers independent of the job: retired, priced in part, not for training, other partition, unverified.

Every offer of a snapshot gets one small integer, its eligibility, once. The opt-ins of a job (other partitions,
unverified availability) then decide by a table of a few dozen entries.
"""

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.offer import InstanceType
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.model.regions import regions
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.model.job import Constraints

#: Reasons by code; 0 means eligible.
REASONS = (
    "",
    "price known only in part",
    "retired family",
    "accelerator does not train",
    "not sold on demand",
    "another partition (opt in with constraints.partitions)",
    "availability not verified (opt in with constraints.unverified_availability)",
)
_PARTIAL, _RETIRED, _NO_TRAINING, _NOT_ON_DEMAND, _PARTITION, _UNVERIFIED = range(1, 7)
#: The reason of machines that were retired.
RETIRED = REASONS[_RETIRED]
#: Reasons that a job lifts by opting in.
OPT_INS = (REASONS[_PARTITION], REASONS[_UNVERIFIED])
#: An eligibility is code + 8 x unverified + 16 x index of its partition in PARTITIONS.
PARTITIONS = ("commercial", "gov", "china")


def eligibility_of_offers(columns: Columns) -> NDArray[np.int8]:
    """The eligibility of every offer of a snapshot, in the snapshot's order."""
    is_plain = [price_kinds()[name].is_plain for name in columns.kinds]
    of_types = [_code(instance_type) for instance_type in columns.instance_types]
    by_type = np.array(of_types, np.int8).reshape(-1, 2)[:, np.array(is_plain, np.intp)]
    known = regions()
    partition = [known[place].partition if place in known else PARTITIONS[0] for place in columns.regions]
    by_region = np.array([16 * PARTITIONS.index(name) for name in partition], np.int8)
    if not len(columns):
        return np.zeros(0, np.int8)
    code = by_type[columns.type_index, columns.kind_index]
    code = np.where((code == 0) & ~columns.plannable, np.int8(_PARTIAL), code)
    return (code + np.where(columns.verified, 0, 8).astype(np.int8) + by_region[columns.region_index]).astype(np.int8)


def _code(instance_type: InstanceType) -> tuple[int, int]:
    """The code under kinds of prices that are not on demand, and on demand."""
    if instance_type.retired:
        return _RETIRED, _RETIRED
    if accelerators()[instance_type.accelerator].trains == "no":
        return _NO_TRAINING, _NO_TRAINING
    return 0, 0 if instance_type.sold_on_demand else _NOT_ON_DEMAND


def reason_table(constraints: Constraints) -> NDArray[np.int32]:
    """Reason code by eligibility, for a job with these opt-ins."""
    table = np.zeros(16 * len(PARTITIONS), np.int32)
    for eligibility in range(len(table)):
        code, unverified, partition = eligibility % 8, eligibility // 8 % 2, PARTITIONS[eligibility // 16]
        if code == 0 and partition not in constraints.partitions:
            code = _PARTITION
        if code == 0 and unverified and not constraints.unverified_availability:
            code = _UNVERIFIED
        table[eligibility] = code
    return table
