"""Bytes through device memory, kernels and recurrences, from every operation that one training step runs.

Each operation reads its inputs and writes its outputs once, or as often as its kernels have to; views move
nothing, look-ups read what they give. Floating-point numbers count two bytes, as in 16-bit training. Beside that count, which is eager
execution's, stands the one of a stack that fuses: there an element-wise operation or normalisation reads
nothing that another one has just made, and needs no kernel of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]
from torch.utils._python_dispatch import TorchDispatchMode  # type: ignore[import-not-found, unused-ignore]
from torch.utils._pytree import tree_leaves  # type: ignore[import-not-found, unused-ignore]

#: Operations that give memory, or name it anew, and move nothing.
_NOTHING = (
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "lift_fresh",
    "_local_scalar_dense",
)
#: Look-ups: they touch as much of their table as they give.
_SELECTIONS = ("embedding", "gather", "index", "index_select", "_embedding_bag", "_embedding_bag_forward_only")
#: Fused with the element-wise operations around them.
_NORMS = ("norm", "softmax")
#: Arguments that are read a second time: statistics come before values, and the two gradients of a
#: convolution are two kernels.
_READ_AGAIN = {
    "convolution_backward": (0,),
    "native_batch_norm": (0,),
    "_native_batch_norm_legit": (0,),
    "_batch_norm_with_update": (0,),
    "native_batch_norm_backward": (0, 1),
    "batch_norm_backward": (0, 1),
    "native_group_norm": (0,),
    "native_group_norm_backward": (0, 1),
}
#: A weight that so many operations use one after the other is a recurrence; fewer are shared or tied layers.
LEAST_RECURRENCE = 16
FLOAT_BYTES = 2


def key_of(tensor: Any) -> int:
    """What tells one storage from another while it lives."""
    return int(tensor.untyped_storage()._cdata)


def element_bytes(tensor: Any) -> int:
    """Bytes of one number in 16-bit training."""
    if tensor.is_complex():
        return 2 * FLOAT_BYTES
    return FLOAT_BYTES if tensor.is_floating_point() else int(tensor.element_size())


def bytes_of(tensor: Any) -> float:
    """Bytes that reading all of `tensor` moves; an expanded one holds no more than its storage."""
    held = tensor.untyped_storage().nbytes() // tensor.element_size()
    return float(min(tensor.numel(), held) * element_bytes(tensor))


def _dense(values: Any) -> list[Any]:
    """The tensors among `values` that have a storage; sparse gradients, a few rows of a table, have none."""
    return [each for each in tree_leaves(values) if isinstance(each, torch.Tensor) and each.layout is torch.strided]


class Traffic(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
    """Counts while it is active; `paused` leaves out what stands in for something else."""

    def __init__(self, parameters: Iterable[Any]) -> None:
        super().__init__()
        self.eager_bytes = 0.0
        self.fused_bytes = 0.0
        self.kernels = 0
        self.fused_kernels = 0
        self.attention_flops = 0.0
        self.attention_scores = 0.0
        self.recurrence_steps = 0
        self.forward = True
        self.paused = False
        self._made: dict[int, int] = {}
        self._operations: list[tuple[bool, tuple[int, ...]]] = []
        self._depth: dict[int, int] = {}
        self._uses: dict[int, set[int]] = {key_of(each): set() for each in parameters}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation, then count it."""
        result = func(*args, **(kwargs or {}))
        outputs = _dense(result)
        if self.paused:
            for each in outputs:
                self._made.pop(key_of(each), None)
        else:
            self._count(func, args, _dense((args, kwargs)), outputs)
        return result

    def made(self, tensor: Any) -> int:
        """The number of the operation that made what `tensor` holds now; -1 for what was there before."""
        return self._made.get(key_of(tensor), -1)

    def recomputable(self, saved: set[int]) -> set[int]:
        """Operations whose results can be had again from `saved` ones by cheap operations alone."""
        at_hand, again = {-1} | saved, set()
        for number, (fusable, made_from) in enumerate(self._operations):
            if fusable and all(each in at_hand for each in made_from):
                again.add(number)
                at_hand.add(number)
        return again

    @property
    def sequential_steps(self) -> int:
        """Length of the longest recurrence: stated ones, or uses of one weight that waited for each other."""
        loops = max((len(depths) for depths in self._uses.values()), default=0)
        return max(1, self.recurrence_steps + (loops if loops >= LEAST_RECURRENCE else 0))

    def add(self, *, moved: float, scores_moved: float = 0.0, kernels: int = 1) -> None:
        """Count something that no operation here stands for; `scores_moved` only where nothing is fused."""
        self.eager_bytes += moved + scores_moved
        self.fused_bytes += moved
        self.kernels += kernels
        self.fused_kernels += kernels

    def _count(self, func: Any, args: Any, inputs: list[Any], outputs: list[Any]) -> None:
        name = func._schema.name.split("::")[-1]
        known = {key_of(each) for each in inputs}
        if name in _NOTHING or (not func._schema.is_mutable and all(key_of(each) in known for each in outputs)):
            return
        fusable = torch.Tag.pointwise in func.tags or any(norm in name for norm in _NORMS)
        written = sum(bytes_of(each) for each in outputs)
        read, free = (written, 0.0) if name in _SELECTIONS else self._read(inputs, fusable=fusable)
        again = [args[place] for place in _READ_AGAIN.get(name, ()) if isinstance(args[place], torch.Tensor)]
        moved = read + written + sum(bytes_of(each) for each in again)
        if moved > 0:
            self.eager_bytes += moved
            self.fused_bytes += moved - free
            self.kernels += 2 if again else 1
            self.fused_kernels += 0 if free else 2 if again else 1
        self._follow(inputs, outputs, fusable=fusable)

    def _read(self, inputs: list[Any], *, fusable: bool) -> tuple[float, float]:
        """Bytes read, and those of them that a fused kernel has at hand."""
        sizes = {key_of(each): (bytes_of(each), fusable and self._is_fusable(each)) for each in inputs}
        return sum(size for size, _ in sizes.values()), sum(size for size, at_hand in sizes.values() if at_hand)

    def _is_fusable(self, tensor: Any) -> bool:
        number = self.made(tensor)
        return number >= 0 and self._operations[number][0]

    def _follow(self, inputs: list[Any], outputs: list[Any], *, fusable: bool) -> None:
        """Remember of each output what made it and after how many operations that depend on each other."""
        depth = 1 + max((self._depth.get(key_of(each), 0) for each in inputs), default=0)
        self._operations.append((fusable, tuple({self.made(each) for each in inputs})))
        for each in outputs:
            key = key_of(each)
            self._made[key] = len(self._operations) - 1
            if key not in self._uses:
                self._depth[key] = depth
        if self.forward:
            for each in inputs:
                if key_of(each) in self._uses:
                    self._uses[key_of(each)].add(depth)
