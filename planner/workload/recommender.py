"""Recommenders: embedding tables that are looked up, and small dense networks around them."""

from collections.abc import Mapping
from itertools import pairwise

from planner.workload.convolution import numbers
from planner.workload.counted import Network
from planner.workload.layers import Block, Tally, activated, linear

#: A looked-up row is read and written out forward; its gradient is read, and the row read and written, backward.
_LOOKUP_PASSES = 5


def deep_learning_recommendation(spec: Mapping[str, str]) -> Network:
    """DLRM (Naumov 2019): a bottom network, pairwise products of all embeddings, a top network."""
    bottom, tables, width = numbers(spec["bottom"]), int(spec["tables"]), int(spec["width"])
    vectors = tables + 1
    pairs = vectors * (vectors - 1) // 2
    lookups = Tally(moved=float(_LOOKUP_PASSES * tables * width), kept=float(vectors * width))
    products = Tally(flops=2.0 * width * pairs, moved=3.0 * (vectors * width + pairs))
    top = (pairs + width, *numbers(spec["top"]))
    return Network(
        blocks=(
            Block(entry=bottom[0], tally=_dense(bottom)),
            Block(entry=vectors * width, tally=lookups + products + _dense(top)),
        ),
        embedding_parameters=float(spec["rows"]) * width,
        assumptions=("one lookup per table and sample",),
    )


def _dense(sizes: tuple[int, ...]) -> Tally:
    tally = Tally()
    for inputs, outputs in pairwise(sizes):
        tally += linear(inputs, outputs) + activated(outputs, 1)
    return tally
