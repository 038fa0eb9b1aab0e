"""Counts one model: on the meta device if possible, else on the CPU; at two batch sizes if possible."""

from __future__ import annotations

import os
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]
from torch.utils.flop_counter import FlopCounterMode  # type: ignore[import-not-found, unused-ignore]

from .factory import Built, build, check_callable, find
from .refusal import Refused, running
from .saved_tensors import SavedTensors
from .stand_ins import StandIns
from .step import losses
from .traffic import Traffic, key_of

#: Batches on the CPU, where time and memory are real; normalisation over a batch needs at least two samples.
_SMALL = 2
#: Of a CPU step: parameters, gradients and headroom, at four bytes each, must stay within this share of memory.
_MEMORY_SHARE, _PARAMETER_BYTES = 0.8, 12


def count(request: dict[str, Any]) -> dict[str, Any]:
    """`{"counts": [per batch size], "model": {...}, "notes": [...]}`. Raises `Refused`."""
    stand_ins = StandIns()
    factory = find(request["target"])
    check_callable(factory, request["target"])
    try:
        return _on_meta(factory, request, stand_ins)
    except Refused as on_meta:
        why = on_meta.message
    stand_ins.counting = None
    result = _on_cpu(factory, request, stand_ins)
    result["notes"].append(f"counted on the CPU, because on the meta device {why}")
    return result


def _on_meta(factory: Any, request: dict[str, Any], stand_ins: StandIns) -> dict[str, Any]:
    built = build(factory, request["target"], "meta")
    stated = request["batch"]
    return _counts(built, request, stand_ins, "meta", [max(_SMALL, stated)])


def _on_cpu(factory: Any, request: dict[str, Any], stand_ins: StandIns) -> dict[str, Any]:
    built = build(factory, request["target"], "cpu")
    needed = _PARAMETER_BYTES * sum(
        parameter.numel() for parameter in _parameters(built) if not torch.nn.parameter.is_lazy(parameter)
    )
    room = _MEMORY_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > room:
        raise Refused(
            "target", f"needs {needed / 2**30:.0f} GiB to run on the CPU, and does not run on the meta device"
        )
    sizes = [_SMALL, request["batch"]] if request["batch"] != _SMALL else [_SMALL]
    return _counts(built, request, stand_ins, "cpu", sizes)


def _counts(
    built: Built, request: dict[str, Any], stand_ins: StandIns, device: str, sizes: list[int]
) -> dict[str, Any]:
    """Counts at the first accepted size of `sizes`, and at twice that size if accepted."""
    _give_lazy_layers_their_sizes(built, request, device, sizes[-1])
    model = _model(built)
    notes = []
    counts = []
    for number, size in enumerate(sizes):
        try:
            counts.append(_step(built, request, stand_ins, device, size))
            break
        except Refused:
            if number == len(sizes) - 1:
                raise
    try:
        counts.append(_step(built, request, stand_ins, device, 2 * counts[0]["batch"]))
    except Refused as refused:
        notes.append(f"counted at one batch size, because twice the size is refused: {refused.message}")
    return {"counts": counts, "model": model, "notes": notes, "device": device, "torch": torch.__version__}


def _give_lazy_layers_their_sizes(built: Built, request: dict[str, Any], device: str, size: int) -> None:
    """Run one input through the model, so that lazy layers get their sizes."""
    if not any(torch.nn.parameter.is_lazy(parameter) for parameter in _parameters(built)):
        return
    inputs, targets = (
        [_tensor(spec, request, size, device) for spec in request[name]] for name in ("inputs", "targets")
    )
    for loss in losses(built, inputs, targets):
        loss.detach()


def _parameters(built: Built) -> list[Any]:
    """All parameters, shared ones once."""
    return list({id(parameter): parameter for module in built.modules for parameter in module.parameters()}.values())


def _model(built: Built) -> dict[str, Any]:
    """Counts that do not depend on the batch: parameters, and bytes of buffers."""
    parameters = _parameters(built)
    trained = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
    if not trained:
        raise Refused("target", "has no trainable parameters (requires_grad), so there is nothing to train")
    buffers = {key_of(buffer): buffer for module in built.modules for buffer in module.buffers()}.values()
    return {
        "parameters": sum(parameter.numel() for parameter in parameters),
        "trainable_parameters": trained,
        "buffer_bytes": sum(buffer.numel() * buffer.element_size() for buffer in buffers),
        "modules": len(built.modules),
    }


def _step(built: Built, request: dict[str, Any], stand_ins: StandIns, device: str, size: int) -> dict[str, Any]:
    """One training step of `size` samples, counted."""
    inputs = [_tensor(spec, request, size, device) for spec in request["inputs"]]
    targets = [_tensor(spec, request, size, device) for spec in request["targets"]]
    for module in built.modules:
        module.zero_grad(set_to_none=True)
    traffic = Traffic(_parameters(built))
    saved_tensors = SavedTensors(built.modules, traffic)
    flops = FlopCounterMode(display=False)
    stand_ins.counting = traffic
    try:
        with saved_tensors.saving(), traffic, flops:
            for loss in losses(built, inputs, targets):
                traffic.forward = False
                with running("the backward pass"):
                    loss.backward()
                traffic.forward = True
    finally:
        saved_tensors.stop()
        stand_ins.counting = None
    none, selective, full = saved_tensors.levels()
    by_operation = {str(name): number for name, number in flops.get_flop_counts().get("Global", {}).items()}
    return {
        "batch": size,
        "matmul_flops": sum(by_operation.values()),
        "convolution_flops": sum(number for name, number in by_operation.items() if "convolution" in name),
        "attention_flops": traffic.attention_flops,
        "attention_scores": traffic.attention_scores,
        "eager_bytes": traffic.eager_bytes,
        "fused_bytes": traffic.fused_bytes,
        "kernels": traffic.kernels,
        "fused_kernels": traffic.fused_kernels,
        "saved_bytes": none,
        "selective_saved_bytes": selective,
        "full_saved_bytes": full,
        "sequential_steps": traffic.sequential_steps,
    }


def _tensor(spec: dict[str, Any], request: dict[str, Any], size: int, device: str) -> Any:
    """An input: uniform in [0, 1) if floating point, else zeros, which are valid indices and classes."""
    axis, stated = request["batch_axis"], request["batch"]
    shape = list(spec["shape"])
    if axis < len(shape) and shape[axis] == stated:
        shape[axis] = size
    dtype = getattr(torch, spec["dtype"])
    with running("making the inputs", "input"):
        if dtype.is_floating_point:
            return torch.rand(shape, device=device).to(dtype)
        return torch.zeros(shape, dtype=dtype, device=device)
