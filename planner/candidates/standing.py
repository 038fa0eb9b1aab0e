"""Why an offer cannot be had whatever the job asks: retired, partial, not for training, elsewhere, unverified.

Each offer of a snapshot gets one small integer, its standing, once; what a job opts in to (other
partitions, unverified availability) then decides by a table of a few dozen entries.
"""

import numpy as np
from numpy.typing import NDArray

from catalog.accelerators import accelerators
from catalog.columns import Columns
from catalog.offer import InstanceType
from catalog.price_kinds import PriceKind, price_kinds
from catalog.regions import regions
from planner.job import Constraints

#: Reasons by code; 0 is "it can be had".
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
#: What a job may opt in to.
OPT_INS = (REASONS[_PARTITION], REASONS[_UNVERIFIED])
#: A standing is code + 8 x unverified + 16 x place of its partition in PARTITIONS.
PARTITIONS = ("commercial", "gov", "china")


def standings(columns: Columns) -> NDArray[np.int8]:
    """The standing of every offer of a snapshot, in the snapshot's order."""
    kinds = [price_kinds()[name] for name in columns.kinds]
    by_type = np.array([[_code(each, kind) for kind in kinds] for each in columns.instance_types], np.int8)
    known = regions()
    partition = [known[place].partition if place in known else PARTITIONS[0] for place in columns.regions]
    by_region = np.array([16 * PARTITIONS.index(each) for each in partition], np.int8)
    if not len(columns):
        return np.zeros(0, np.int8)
    code = by_type[columns.type_index, columns.kind_index]
    code = np.where((code == 0) & ~columns.plannable, np.int8(_PARTIAL), code)
    return (code + np.where(columns.verified, 0, 8).astype(np.int8) + by_region[columns.region_index]).astype(np.int8)


def _code(each: InstanceType, kind: PriceKind) -> int:
    if each.retired:
        return _RETIRED
    if accelerators()[each.accelerator].trains == "no":
        return _NO_TRAINING
    return _NOT_ON_DEMAND if kind.is_plain and not each.sold_on_demand else 0


def reason_table(constraints: Constraints) -> NDArray[np.int32]:
    """Reason code by standing, for a job with these opt-ins."""
    table = np.zeros(16 * len(PARTITIONS), np.int32)
    for standing in range(len(table)):
        code, unverified, partition = standing % 8, standing // 8 % 2, PARTITIONS[standing // 16]
        if code == 0 and partition not in constraints.partitions:
            code = _PARTITION
        if code == 0 and unverified and not constraints.unverified_availability:
            code = _UNVERIFIED
        table[standing] = code
    return table
