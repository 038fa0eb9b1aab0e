"""Counts bytes moved through device memory, kernels and recurrences over all operations of a training step.

An operation reads its inputs and writes its outputs once per kernel; views move nothing, look-ups read as much as they
return. Floating-point numbers count two bytes, as in 16-bit training. Besides this count of eager execution there is one
of fused execution: an element-wise operation or normalisation does not read the result of the previous one from memory,
and needs no kernel of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]
from torch.utils._python_dispatch import TorchDispatchMode  # type: ignore[import-not-found, unused-ignore]
from torch.utils._pytree import tree_leaves  # type: ignore[import-not-found, unused-ignore]

#: Operations that allocate or alias memory and move nothing.
_NOTHING = (
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "lift_fresh",
    "_local_scalar_dense",
)
#: Look-ups: they read as much of their table as they return.
_SELECTIONS = ("embedding", "gather", "index", "index_select", "_embedding_bag", "_embedding_bag_forward_only")
#: Operations that fuse with neighbouring element-wise operations.
_NORMS = ("norm", "softmax")
#: Arguments that are read twice: normalisation reads for statistics and again for values; a convolution's two gradients
#: are two kernels.
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
#: Sequential uses of one weight that make it a recurrence; fewer are shared or tied layers.
LEAST_RECURRENCE = 16
FLOAT_BYTES = 2


def key_of(tensor: Any) -> int:
    """Identity of a tensor's storage while it exists."""
    return int(tensor.untyped_storage()._cdata)


def element_bytes(tensor: Any) -> int:
    """Bytes of one number in 16-bit training."""
    if tensor.is_complex():
        return 2 * FLOAT_BYTES
    return FLOAT_BYTES if tensor.is_floating_point() else int(tensor.element_size())


def bytes_of(tensor: Any) -> float:
    """Bytes moved by reading `tensor`; for an expanded tensor at most its storage."""
    held = tensor.untyped_storage().nbytes() // tensor.element_size()
    return float(min(tensor.numel(), held) * element_bytes(tensor))


def _dense(values: Any) -> list[Any]:
    """The tensors among `values` with a storage; sparse gradients have none."""
    return [
        tree_leaf
        for tree_leaf in tree_leaves(values)
        if isinstance(tree_leaf, torch.Tensor) and tree_leaf.layout is torch.strided
    ]


class Traffic(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
    """Counts operations while active; `paused` excludes those of replacements."""

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
        self._uses: dict[int, set[int]] = {key_of(parameter): set() for parameter in parameters}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation, then count it."""
        result = func(*args, **(kwargs or {}))
        outputs = _dense(result)
        if self.paused:
            for output in outputs:
                self._made.pop(key_of(output), None)
        else:
            self._count(func, args, _dense((args, kwargs)), outputs)
        return result

    def made(self, tensor: Any) -> int:
        """The number of the operation that wrote `tensor`; -1 if none in this step."""
        return self._made.get(key_of(tensor), -1)

    def recomputable(self, saved: set[int]) -> set[int]:
        """Operations whose results cheap operations can recompute from `saved` ones."""
        at_hand, again = {-1} | saved, set()
        for number, (fusable, made_from) in enumerate(self._operations):
            if fusable and all(producer in at_hand for producer in made_from):
                again.add(number)
                at_hand.add(number)
        return again

    @property
    def sequential_steps(self) -> int:
        """Length of the longest recurrence: recorded ones, or dependent uses of one weight."""
        loops = max((len(depths) for depths in self._uses.values()), default=0)
        return max(1, self.recurrence_steps + (loops if loops >= LEAST_RECURRENCE else 0))

    def add(self, *, moved: float, scores_moved: float = 0.0, kernels: int = 1) -> None:
        """Count work outside of the operations seen; `scores_moved` only applies without fusion."""
        self.eager_bytes += moved + scores_moved
        self.fused_bytes += moved
        self.kernels += kernels
        self.fused_kernels += kernels

    def _count(self, func: Any, args: Any, inputs: list[Any], outputs: list[Any]) -> None:
        name = func._schema.name.split("::")[-1]
        known = {key_of(tensor) for tensor in inputs}
        if name in _NOTHING or (not func._schema.is_mutable and all(key_of(output) in known for output in outputs)):
            return
        fusable = torch.Tag.pointwise in func.tags or any(norm in name for norm in _NORMS)
        written = sum(bytes_of(output) for output in outputs)
        read, free = (written, 0.0) if name in _SELECTIONS else self._read(inputs, fusable=fusable)
        again = [args[place] for place in _READ_AGAIN.get(name, ()) if isinstance(args[place], torch.Tensor)]
        moved = read + written + sum(bytes_of(tensor) for tensor in again)
        if moved > 0:
            self.eager_bytes += moved
            self.fused_bytes += moved - free
            self.kernels += 2 if again else 1
            self.fused_kernels += 0 if free else 2 if again else 1
        self._follow(inputs, outputs, fusable=fusable)

    def _read(self, inputs: list[Any], *, fusable: bool) -> tuple[float, float]:
        """(bytes read, the part that a fused kernel already has in registers)."""
        sizes = {key_of(tensor): (bytes_of(tensor), fusable and self._is_fusable(tensor)) for tensor in inputs}
        return sum(size for size, _ in sizes.values()), sum(size for size, at_hand in sizes.values() if at_hand)

    def _is_fusable(self, tensor: Any) -> bool:
        number = self.made(tensor)
        return number >= 0 and self._operations[number][0]

    def _follow(self, inputs: list[Any], outputs: list[Any], *, fusable: bool) -> None:
        """Record the producer of every output and the length of its dependency chain."""
        depth = 1 + max((self._depth.get(key_of(tensor), 0) for tensor in inputs), default=0)
        self._operations.append((fusable, tuple({self.made(tensor) for tensor in inputs})))
        for tensor in outputs:
            key = key_of(tensor)
            self._made[key] = len(self._operations) - 1
            if key not in self._uses:
                self._depth[key] = depth
        if self.forward:
            for tensor in inputs:
                if key_of(tensor) in self._uses:
                    self._uses[key_of(tensor)].add(depth)
