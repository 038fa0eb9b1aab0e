"""The work of networks counted block by block: convolutional, diffusion, adversarial and recurrent models.

Models with published totals only: FLOPs, outputs of layers and parameters of one sample.

Each row of `counted_models.csv` comes from a model table (timm's, torchvision's), `tools/count_networks.py` or a count by hand, as its source states.
Moved and saved elements follow from the outputs of matmul and convolution layers, as in networks counted layer by layer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Training
from gpuplan.planner.workload.activations import LOSS_BYTES
from gpuplan.planner.workload.layer_tallies import Block, Tally, total
from gpuplan.planner.workload.step_work import Work
from gpuplan.planner.workload.training_methods import (
    adapter_overhead_of,
    check_rank,
    frozen_bytes,
    is_fused,
    logit_bytes,
    method_of,
)

_HALF = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A network as blocks that one sample passes through, plus embeddings, head and tables.

    `embedding_parameters` are looked up, not multiplied. `head_parameters` are multiplied at each of `head_positions`
    and produce `logits` numbers in total. `narrowest` is the upper bound of the rank of adapters. `sequential_steps`,
    `table_parameters` and `exchanged` (elements) are as in `Work`. `tally` is the sum over all blocks.
    """

    blocks: tuple[Block, ...]
    embedding_parameters: float = 0.0
    head_parameters: float = 0.0
    head_positions: float = 0.0
    logits: float = 0.0
    sequential_steps: int = 1
    narrowest: float = 0.0
    table_parameters: float = 0.0
    exchanged: float = 0.0
    assumptions: tuple[str, ...] = ()
    tally: Tally = field(init=False)

    def __post_init__(self) -> None:
        """Sum the blocks once, because many jobs share a network."""
        object.__setattr__(self, "tally", total(self.blocks))


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Amount of training: units of the whole job, of one step and of one sample."""

    unit: str
    total: float
    per_step: float
    per_sample: float = 1.0
    assumptions: tuple[str, ...] = ()


def work_of_blocks(name: str, task: str, network: Network, amount: Amount, training: Training) -> Work:
    """Work of a counted network; raises `UnusableInput` if the training method does not apply to it."""
    method, fused, all_layers = method_of(training), is_fused(training), network.tally
    if method.adapters and not all_layers.adapter_width:
        raise UnusableInput.at(
            "training",
            "method",
            message=f"{training.method} needs attention or feed-forward projections, and gpuplan knows none in {name}; accepted: full",
        )
    parameters = all_layers.parameters + network.embedding_parameters + network.head_parameters
    adapters = 0.0
    if method.adapters:
        check_rank(training, network.narrowest)
        adapters = training.rank * all_layers.adapter_width
    linear = method.base_passes * all_layers.flops
    if method.adapters:
        linear += 3 * training.rank * all_layers.adapter_flops
    moved = _moved_bytes(all_layers, fused=fused)
    # Recurrences launch theirs at every step.
    kernels = all_layers.kernels if network.sequential_steps == 1 else 0.0
    if method.adapters:
        overhead = adapter_overhead_of(training)
        kernels += overhead.kernels * all_layers.adapted
        # An element of input or output is two FLOPs per unit of rank.
        moved += _HALF * overhead.passes * all_layers.adapter_flops / 2
    scale = 1 / amount.per_sample
    return Work(
        task=task,
        name=name,
        unit=amount.unit,
        units_total=amount.total,
        units_per_step=amount.per_step,
        units_per_sample=amount.per_sample,
        parameters=parameters + adapters + network.table_parameters,
        active_parameters=all_layers.parameters + network.head_parameters + adapters,
        trainable_parameters=adapters if method.adapters else parameters,
        embedding_parameters=network.embedding_parameters,
        linear_flops_per_unit=linear * scale,
        attention_flops_per_unit=3 * all_layers.attention_flops * scale,
        head_flops_per_unit=2 * method.base_passes * network.head_parameters * network.head_positions * scale,
        vector_bytes_per_unit=(moved + network.logits * LOSS_BYTES[fused]) * scale,
        activation_bytes_per_sample=saved_bytes(network.blocks, fused=fused),
        logits_bytes_per_sample=network.logits * logit_bytes(training),
        sequential_steps=network.sequential_steps,
        kernels=kernels,
        table_parameters=network.table_parameters,
        exchanged_bytes_per_unit=_HALF * network.exchanged * scale,
        frozen_parameter_bytes=frozen_bytes(training, all_layers.parameters, parameters - all_layers.parameters)
        if method.adapters
        else 0.0,
        assumptions=(*amount.assumptions, *network.assumptions, *_adapter_note(training, adapters)),
    )


def saved_bytes(blocks: tuple[Block, ...], *, fused: bool) -> tuple[float, float, float]:
    """Activation bytes of one sample under (none, selective, full) checkpointing."""
    by_block = [_HALF * (block.tally.saved + (0.0 if fused else block.tally.saved_unfused)) for block in blocks]
    none = sum(by_block)
    selective = sum(_HALF * (block.tally.saved - block.tally.recomputable) for block in blocks)
    full = _HALF * sum(block.entry for block in blocks) + max(by_block)
    return none, selective, min(selective, full)


def _moved_bytes(tally: Tally, *, fused: bool) -> float:
    return _HALF * (tally.moved + (0.0 if fused else tally.moved_unfused))


def _adapter_note(training: Training, adapters: float) -> list[str]:
    return [f"adapters of rank {training.rank} on every attention and feed-forward projection"] if adapters else []


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
