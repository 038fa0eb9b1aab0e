"""One training step: forward, loss and backward for every loss."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]

from .factory import Built
from .refusal import Refused, described, running


def losses(built: Built, inputs: list[Any], targets: list[Any]) -> Iterator[Any]:
    """The losses of one step in order; the caller runs the backward pass of a loss before requesting the next."""
    if len(built.modules) == 1:
        yield _single(built, inputs, targets)
    elif built.loss is not None:
        yield from _stated(built, inputs, targets)
    else:
        yield from _adversarial(built.modules, inputs)


def _single(built: Built, inputs: list[Any], targets: list[Any]) -> Any:
    with running("the forward pass"):
        output = built.modules[0](*inputs)
    if built.loss is None:
        return mean_of(output)
    try:
        loss = built.loss(output, *targets)
    except Exception as error:  # noqa: BLE001 the loss is the user's code
        hint = "" if targets else "; give its targets as --target SHAPE[:DTYPE]"
        raise Refused("target", f"the loss raised {described(error)}{hint}") from None
    return mean_of(loss)


def _stated(built: Built, inputs: list[Any], targets: list[Any]) -> Iterator[Any]:
    with running("the step"):
        given = built.loss(*built.modules, *inputs, *targets)
        loss_terms = iter(given) if inspect.isgenerator(given) or isinstance(given, (list, tuple)) else iter([given])
    while True:
        with running("the step"):
            loss = next(loss_terms, None)
        if loss is None:
            return
        yield mean_of(loss)


def _adversarial(modules: list[Any], inputs: list[Any]) -> Iterator[Any]:
    """The discriminator on real and on generated samples, then the generator through the discriminator.

    The generator runs once and serves both updates; the last pass leaves gradients in both, as in
    common code (Goodfellow 2014, algorithm 1; Radford 2016).
    """
    generator, discriminator = modules
    with running("the generator's forward pass"):
        made = generator(*inputs)
    if not isinstance(made, torch.Tensor):
        raise Refused("target", f"the generator gave a {type(made).__name__}; accepted: one tensor, or your own step")
    for judged in (torch.zeros_like(made).detach(), made.detach(), made):
        with running("the discriminator's forward pass"):
            verdict = discriminator(judged)
        yield mean_of(verdict)


def mean_of(output: Any) -> Any:
    """A scalar of all floating-point tensors in `output`, or its loss (a `loss` key or attribute)."""
    stated_loss = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    if isinstance(stated_loss, torch.Tensor):
        output = stated_loss
    differentiable = [tensor for tensor in tensors_in(output) if tensor.requires_grad and tensor.is_floating_point()]
    if not differentiable:
        raise Refused("target", "no output of the model depends on its parameters, so there is nothing to train")
    means = [tensor if tensor.dim() == 0 else tensor.mean() for tensor in differentiable]
    return means[0] if len(means) == 1 else torch.stack(means).sum()


def tensors_in(value: Any) -> Iterator[Any]:
    """All tensors in nested lists, tuples, mappings and dataclass-like outputs."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from tensors_in(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from tensors_in(inner)
    elif hasattr(value, "__dict__") and not isinstance(value, torch.nn.Module):
        for inner in vars(value).values():
            yield from tensors_in(inner)
