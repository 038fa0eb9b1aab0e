"""Which clouds there are: every package of this folder that gives a `provider`, imported only when it is asked for."""

import pkgutil
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from importlib import import_module

import providers
from catalog.errors import UnusableInput
from providers.contract import Provider
from providers.sources import Sources

#: Makes a cloud's provider from where it is reached and the time at which its rows will have been read.
MakeCloud = Callable[[Sources, datetime], Provider]


def cloud_names() -> tuple[str, ...]:
    """Every cloud by name, sorted, without importing any."""
    return tuple(sorted(each.name for each in pkgutil.iter_modules(providers.__path__) if each.ispkg))


def chosen_clouds(wanted: Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """The clouds of that name, all `known` for None. Raises `UnusableInput` at `provider` for any other name."""
    if wanted is None:
        return tuple(known)
    names = [each.strip().lower() for each in wanted]
    strange = [each for each in names if each not in known]
    if strange or not names:
        said = f"no cloud is called {strange[0][:80]!r}" if strange else "names no cloud"
        raise UnusableInput.at("provider", message=f"{said}; accepted: {', '.join(known)}")
    return tuple(dict.fromkeys(names))


def installed_clouds() -> dict[str, MakeCloud]:
    """How to make each cloud, by name: its SDK is imported, and its settings are read, when that is called."""
    return {name: partial(_made, name) for name in cloud_names()}


def _made(name: str, sources: Sources, read_at: datetime) -> Provider:
    made: Provider = import_module(f"{providers.__name__}.{name}").provider(sources, read_at=read_at)
    return made
