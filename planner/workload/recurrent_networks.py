"""LSTM language models, in which every position depends on the previous one."""

from collections.abc import Mapping
from itertools import pairwise

from gpuplan.planner.workload.block_totals import Network
from gpuplan.planner.workload.convolutional_networks import numbers
from gpuplan.planner.workload.layer_tallies import Block, Tally, linear

#: Per unit of hidden state: forward reads 4 gates and the cell and writes gates, cell and output (11),
#: backward reads gates, both cells and both gradients and writes 4 + 1 of them (14).
_CELL_PASSES = 25


def lstm(spec: Mapping[str, str], sequence_length: int) -> Network:
    """An LSTM whose `sizes` are those of the embedding and of each layer; gates are 4 matmuls of input and state.

    Source: Zaremba 2014. Layers overlap as a wavefront (Appleyard 2016), so the recurrence has as many steps as the
    sequence has positions, plus the number of other layers.
    """
    sizes, vocabulary = numbers(spec["sizes"]), int(spec["vocabulary"])
    layers = list(pairwise(sizes))
    blocks = tuple(
        Block(entry=inputs * sequence_length, tally=_layer(inputs, outputs, sequence_length))
        for inputs, outputs in layers
    )
    return Network(
        blocks=blocks,
        embedding_parameters=0.0 if spec["tied"] == "yes" else float(vocabulary * sizes[0]),
        head_parameters=float(vocabulary * sizes[-1] + vocabulary),
        head_positions=sequence_length,
        logits=float(vocabulary * sequence_length),
        sequential_steps=sequence_length + len(layers) - 1,
    )


def _layer(inputs: int, outputs: int, length: int) -> Tally:
    gates = linear(inputs, 4 * outputs, length) + linear(outputs, 4 * outputs, length)
    cells = float(outputs * length)
    return gates + Tally(moved=_CELL_PASSES * cells, saved=6 * cells, recomputable=cells)
