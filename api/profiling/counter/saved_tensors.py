"""Peak bytes that autograd saves for the backward pass, by kind of activation checkpointing."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]

from .step import tensors_in
from .traffic import Traffic, bytes_of, element_bytes, key_of


@dataclass
class Call:
    """One call of a submodule: depth, whether it is a leaf, bytes of its input and bytes saved in it."""

    depth: int
    leaf: bool
    entry: float
    saved: float


class _SavedTensor:
    """A saved tensor; its bytes leave the count when the graph frees it."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


class SavedTensors:
    """Counts saved tensors by storage, without parameters and buffers."""

    def __init__(self, modules: list[Any], traffic: Traffic) -> None:
        self.calls: list[Call] = []
        self._most, self._now, self._ever = 0.0, 0.0, 0.0
        self._traffic = traffic
        self._live: dict[int, int] = {}
        self._saved: dict[int, float] = {}
        parameters = [tensor for module in modules for tensor in (*module.parameters(), *module.buffers())]
        self._parameters = {key_of(parameter) for parameter in parameters}
        self._hooks = [hook for module in modules for hook in self._watch(module)]

    def saving(self) -> Any:
        """The context in which saved tensors are counted."""
        return torch.autograd.graph.saved_tensors_hooks(self._pack, lambda saved: saved.tensor)

    def stop(self) -> None:
        """Remove the hooks from the modules."""
        for hook in self._hooks:
            hook.remove()

    def _pack(self, tensor: Any) -> _SavedTensor:
        saved = _SavedTensor(tensor)
        key = key_of(tensor)
        if key in self._parameters:
            return saved
        size = float(tensor.untyped_storage().nbytes() // tensor.element_size() * element_bytes(tensor))
        self._live[key] = self._live.get(key, 0) + 1
        if self._live[key] == 1:
            self._now += size
            self._ever += size
            self._most = max(self._most, self._now)
            maker = self._traffic.made(tensor)
            self._saved[maker] = self._saved.get(maker, 0.0) + size
        weakref.finalize(saved, self._release, key, size)
        return saved

    def _release(self, key: int, size: float) -> None:
        self._live[key] -= 1
        if not self._live[key]:
            del self._live[key]
            self._now -= size

    def _watch(self, module: Any) -> list[Any]:
        hooks = []
        for name, part in module.named_modules():
            depth = len(name.split(".")) if name else 0
            begun: list[tuple[float, float]] = []
            hooks.append(part.register_forward_pre_hook(self._enter(begun), with_kwargs=True))
            hooks.append(
                part.register_forward_hook(self._leave(begun, depth, leaf=next(part.children(), None) is None))
            )
        return hooks

    def _enter(self, begun: list[tuple[float, float]]) -> Any:
        def hook(_module: Any, args: Any, kwargs: Any) -> None:
            begun.append((sum(bytes_of(tensor) for tensor in tensors_in((args, kwargs))), self._ever))

        return hook

    def _leave(self, begun: list[tuple[float, float]], depth: int, *, leaf: bool) -> Any:
        def hook(_module: Any, _args: Any, _output: Any) -> None:
            entry, before = begun.pop()
            self.calls.append(Call(depth, leaf, entry, self._ever - before))

        return hook

    def levels(self) -> tuple[float, float, float]:
        """Peak bytes with (none, selective, full) checkpointing.

        Selective drops results that cheap operations can recompute. Full keeps the inputs of all blocks and one complete
        block; blocks are the submodules at the depth with the lowest total. Both are scaled from the sum of all saved
        bytes to the peak, because consecutive losses free their tensors.
        """
        if not self._ever:
            return 0.0, 0.0, 0.0
        again = self._traffic.recomputable(set(self._saved))
        selective = sum(size for maker, size in self._saved.items() if maker not in again)
        full = self._ever
        for depth in {call.depth for call in self.calls if call.depth}:
            blocks = [call for call in self.calls if call.depth == depth or (call.leaf and call.depth < depth)]
            outside = max(0.0, self._ever - sum(block.saved for block in blocks))
            full = min(full, outside + sum(block.entry for block in blocks) + max(block.saved for block in blocks))
        scale = self._most / self._ever
        return self._most, scale * selective, scale * min(selective, full)
