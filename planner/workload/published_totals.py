"""Models with published totals only: FLOPs, outputs of layers and parameters of one sample.

Each row of `counted_models.csv` comes from a model table (timm's, torchvision's), `tools/count_networks.py` or a count by hand, as its source states.
Moved and saved elements follow from the outputs of matmul and convolution layers, as in networks counted layer by layer.
"""

from collections.abc import Mapping

from gpuplan.planner.workload.block_totals import Network
from gpuplan.planner.workload.layer_tallies import Block, Tally

#: Elements moved and saved per output element of a convolution or matmul, as in ResNet-18, 50 and 152 counted layer by
#: layer (16.0, 16.6, 16.9 moved, 5.0 more where unfused; 2.0 saved, 1.0 of them recomputable). Rows with
#: squeeze-and-excitation (a product: 6 passes) and SiLU (5, and not in place) state their own `passes`. Rows without
#: normalisation move 8 passes less, and their activations in place save each output once (`saved`).
MOVED, MOVED_UNFUSED = 16.5, 5.0
SAVED, RECOMPUTABLE, SAVED_UNFUSED = 2.0, 1.0, 1.0
#: Looked-up rows are read, and their gradients read and written with the row, once per sample.
TABLE_PASSES = 4.0
#: Blocks for recomputation where the layers are unknown; deep networks have about sixteen.
BLOCKS = 16
#: Input of a block as a share of all outputs in it (residual networks: one of three layers, of twice the width).
ENTRY_SHARE = 0.3


def whole(details: Mapping[str, str], length: int) -> Network:
    """The network of a row: `gflops` forward (2 per multiply-add) and `melements` of layer outputs per sample or token.

    A sample has `length` tokens in models that read tokens; other models have `length` 0. `adapter_width` is the sum of
    in + out of the attention and feed-forward projections, `adapter_gflops` their forward FLOPs per sample and unit of
    rank, both from the published dimensions (Flux and Wan read 512 tokens of text, SD3 333, PixArt 300, CLIP and SigLIP
    those of their note); rows without them cannot be trained by adapters.
    """
    units = max(1, length)
    elements = float(details["melements"]) * 1e6 * units
    exchanged = float(details.get("exchanged") or 0.0)
    saved = float(details.get("saved") or SAVED)
    one_block = Tally(
        flops=float(details["gflops"]) * 1e9 * units,
        parameters=float(details["parameters"]),
        moved=float(details.get("passes") or MOVED) * elements + TABLE_PASSES * exchanged,
        moved_unfused=MOVED_UNFUSED * elements,
        saved=saved * elements,
        recomputable=RECOMPUTABLE * (saved - 1.0) * elements,
        saved_unfused=SAVED_UNFUSED * elements,
        adapter_width=float(details.get("adapter_width") or 0.0),
        adapter_flops=float(details.get("adapter_gflops") or 0.0) * 1e9,
    ).times(1.0 / BLOCKS)
    block = Block(entry=ENTRY_SHARE * elements / BLOCKS, tally=one_block)
    return Network(
        blocks=(block,) * BLOCKS,
        sequential_steps=int(details.get("steps") or 1),
        table_parameters=float(details.get("tables") or 0.0),
        exchanged=2.0 * exchanged,
        narrowest=float(details.get("narrowest") or 0.0),
    )
