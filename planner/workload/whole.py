"""Models known by their published totals alone: FLOPs, outputs of layers and parameters of one sample.

Behind each row of `counted_models.csv` stands a model table (timm's, torchvision's) or a count by hand, as its source
says. What they move and keep follows from the outputs of their matrix and convolution layers, as in the
networks that are counted layer by layer.
"""

from collections.abc import Mapping

from planner.workload.counted import Network
from planner.workload.layers import Block, Tally

#: Per output element of a convolution or matmul: elements moved and kept, as ResNet-18, 50 and 152 come out when
#: counted layer by layer (16.0, 16.6, 16.9 moved, 5.0 more where nothing is fused; 2.0 kept, 1.0 of them recomputable).
#: Rows with squeeze-and-excitation (a product: 6 passes) and SiLU (5, and not in place) have `passes` of their own.
MOVED, MOVED_UNFUSED = 16.5, 5.0
KEPT, RECOMPUTABLE, KEPT_UNFUSED = 2.0, 1.0, 1.0
#: Looked-up rows are read, and their gradients read and written with the row, once per sample.
TABLE_PASSES = 4.0
#: Blocks between which recomputation may cut where the layers are not known, as deep networks have some sixteen stages.
BLOCKS = 16
#: A layer hands on about this share of the outputs of its block (residual networks: the last of three, twice the wider).
ENTRY_SHARE = 0.3


def whole(details: Mapping[str, str], length: int) -> Network:
    """The network of a row: `gflops` forward (2 per multiply-add) and `melements` of layer outputs per sample or token.

    A sample of models that read tokens is `length` of them, of the others one (`length` 0).
    """
    units = max(1, length)
    elements = float(details["melements"]) * 1e6 * units
    exchanged = float(details.get("exchanged") or 0.0)
    each = Tally(
        flops=float(details["gflops"]) * 1e9 * units,
        parameters=float(details["parameters"]),
        moved=float(details.get("passes") or MOVED) * elements + TABLE_PASSES * exchanged,
        moved_unfused=MOVED_UNFUSED * elements,
        kept=KEPT * elements,
        recomputable=RECOMPUTABLE * elements,
        kept_unfused=KEPT_UNFUSED * elements,
    ).times(1.0 / BLOCKS)
    block = Block(entry=ENTRY_SHARE * elements / BLOCKS, tally=each)
    return Network(
        blocks=(block,) * BLOCKS,
        sequential_steps=int(details.get("steps") or 1),
        table_parameters=float(details.get("tables") or 0.0),
        exchanged=2.0 * exchanged,
    )
