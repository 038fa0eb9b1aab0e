"""Imports MODULE:FACTORY, calls it, and classifies the result as modules, loss and step."""

from __future__ import annotations

import contextlib
import copy
import importlib
import importlib.util
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]

from .refusal import Refused, running

_ACCEPTED = (
    "a torch.nn.Module, (module, loss), (generator, discriminator), or (module, module, ..., step) where "
    "step(*modules, *inputs, *targets) gives one loss or several in turn"
)


@dataclass
class Built:
    """The modules of one job in the factory's order, and their loss.

    `loss` is called as loss(output, *targets) with one module, as loss(*modules, *inputs, *targets) with
    several; None is the mean of the outputs, or, with two modules, the adversarial step.
    """

    modules: list[Any]
    loss: Any


def find(target: str) -> Any:
    """Import the object named by MODULE:FACTORY. Raises `Refused`."""
    place, _, name = target.rpartition(":")
    with running(f"importing {place}"):
        module = _imported(place)
    target_object: Any = module
    for part in name.split("."):
        if not hasattr(target_object, part):
            known = sorted(
                member for member, value in vars(module).items() if callable(value) and not member.startswith("_")
            )
            raise Refused("target", f"{place} has no {part!r}; it has {', '.join(known[:12]) or 'nothing to call'}")
        target_object = getattr(target_object, part)
    return target_object


def _imported(place: str) -> Any:
    if not place.endswith(".py"):
        return importlib.import_module(place)
    path = Path(place).resolve()
    if not path.is_file():
        raise Refused("target", f"there is no file {place}")
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise Refused("target", f"{place} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def check_callable(target_object: Any, target: str) -> None:
    """Raise `Refused` unless `found` is a module or can be called without arguments."""
    if isinstance(target_object, torch.nn.Module):
        return
    if not callable(target_object):
        raise Refused(
            "target",
            f"{target} is a {type(target_object).__name__}; accepted: a function or class that takes no arguments",
        )
    with contextlib.suppress(ValueError):  # built-in callables have no signature, and are simply called
        signature = inspect.signature(target_object)
        needed = [
            name
            for name, parameter in signature.parameters.items()
            if parameter.default is parameter.empty
            and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
        ]
        if needed:
            raise Refused(
                "target",
                f"{target} needs arguments ({', '.join(needed)}); accepted: a factory that takes none, such as a "
                "function that calls it with your values",
            )


def build(target_object: Any, target: str, device: str) -> Built:
    """Call the factory with `device` as the default device, and move its modules to it."""
    context = torch.device(device) if device != "cpu" else contextlib.nullcontext()
    with running(f"{target}()"), context:
        made = target_object if isinstance(target_object, torch.nn.Module) else target_object()
    built = _sorted_out(made, target)
    with running(f"moving the modules to the {device} device"):
        built.modules = [_moved(module, device).train() for module in built.modules]
        if isinstance(built.loss, torch.nn.Module):
            built.loss = built.loss.to(device)
    return built


def _moved(module: Any, device: str) -> Any:
    """The module on `device`. A module with values is not moved to the meta device, which would lose them."""
    valued = any(parameter.device.type != device for parameter in module.parameters())
    return (copy.deepcopy(module) if valued and device == "meta" else module).to(device)


def _sorted_out(made: Any, target: str) -> Built:
    if isinstance(made, torch.nn.Module):
        return Built([made], None)
    if isinstance(made, dict):
        made = (
            tuple(made.get(name) for name in ("generator", "discriminator"))
            if "generator" in made
            else tuple(made.values())
        )
    parts = list(made) if isinstance(made, (tuple, list)) else []
    loss = parts.pop() if len(parts) > 1 and not _is_trained(parts[-1]) else None
    wrong = not parts or not all(isinstance(part, torch.nn.Module) for part in parts)
    if wrong or (loss is not None and not callable(loss)):
        raise Refused("target", f"{target}() gave {_kinds(made)}; accepted: {_ACCEPTED}")
    if len(parts) > 2 and loss is None:
        raise Refused("target", f"{target}() gave {len(parts)} modules and no step; accepted: {_ACCEPTED}")
    return Built(parts, loss)


def _is_trained(part: Any) -> bool:
    """Whether a part is a module with parameters; a loss has none."""
    return isinstance(part, torch.nn.Module) and next(part.parameters(), None) is not None


def _kinds(made: Any) -> str:
    if isinstance(made, (tuple, list)):
        return f"({', '.join(type(part).__name__ for part in made)})"
    return type(made).__name__
