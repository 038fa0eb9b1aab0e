"""From MODULE:FACTORY to modules that train: import, call, and sort out what came back."""

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
    """The modules of one job in the order in which the factory gave them, and how their loss comes about.

    `loss` is called as loss(output, *targets) with one module, as loss(*modules, *inputs, *targets) with
    several; None is the mean of the outputs, or, with two modules, the adversarial step.
    """

    modules: list[Any]
    loss: Any


def find(target: str) -> Any:
    """What MODULE:FACTORY names, imported. Raises `Refused`."""
    place, _, name = target.rpartition(":")
    with running(f"importing {place}"):
        module = _imported(place)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            known = sorted(each for each, value in vars(module).items() if callable(value) and not each.startswith("_"))
            raise Refused("target", f"{place} has no {part!r}; it has {', '.join(known[:12]) or 'nothing to call'}")
        found = getattr(found, part)
    return found


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


def check_callable(found: Any, target: str) -> None:
    """Raise `Refused` unless `found` is a module or can be called without arguments."""
    if isinstance(found, torch.nn.Module):
        return
    if not callable(found):
        raise Refused(
            "target", f"{target} is a {type(found).__name__}; accepted: a function or class that takes no arguments"
        )
    with contextlib.suppress(ValueError):  # built-in callables have no signature, and are simply called
        signature = inspect.signature(found)
        needed = [
            name
            for name, each in signature.parameters.items()
            if each.default is each.empty and each.kind not in {each.VAR_POSITIONAL, each.VAR_KEYWORD}
        ]
        if needed:
            raise Refused(
                "target",
                f"{target} needs arguments ({', '.join(needed)}); accepted: a factory that takes none, such as a "
                "function that calls it with your values",
            )


def build(found: Any, target: str, device: str) -> Built:
    """Call the factory with `device` as the default device, and move what it made there."""
    context = torch.device(device) if device != "cpu" else contextlib.nullcontext()
    with running(f"{target}()"), context:
        made = found if isinstance(found, torch.nn.Module) else found()
    built = _sorted_out(made, target)
    with running(f"moving the modules to the {device} device"):
        built.modules = [_moved(module, device).train() for module in built.modules]
        if isinstance(built.loss, torch.nn.Module):
            built.loss = built.loss.to(device)
    return built


def _moved(module: Any, device: str) -> Any:
    """The module on `device`; one with values stays as it is, for they could not be had back from the meta device."""
    valued = any(each.device.type != device for each in module.parameters())
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
