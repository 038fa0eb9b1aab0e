"""The registry of clouds with prices. A cloud's package is imported only when its provider is created."""

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from importlib import import_module
from keyword import iskeyword

import gpuplan.providers
from gpuplan.catalog.model.provider_names import provider_names
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.contract import Provider

#: Creates a cloud's provider from its endpoints and the observation time of its rows.
MakeCloud = Callable[[Sources, datetime], Provider]


def cloud_names() -> tuple[str, ...]:
    """Every provider of `catalog/data/providers.csv` that is refreshed, by name, sorted, without importing any.

    Each is the package `providers/NAME`, whose `provider` creates a `Provider`.
    """
    return tuple(sorted(name for name, row in provider_names().items() if row.is_refreshed))


def chosen_clouds(wanted: Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """The clouds of these names; for None all `known` that are set up. Raises `UnusableInput` at `provider` for any other name."""
    if wanted is None:
        return tuple(name for name in known if is_set_up(name))
    names = [name.strip().lower() for name in wanted]
    strange = [name for name in names if name not in known]
    if strange or not names:
        problem = f"no cloud is called {strange[0][:80]!r}" if strange else "names no cloud"
        raise UnusableInput.at("provider", message=f"{problem}; accepted: {', '.join(known)}")
    return tuple(dict.fromkeys(names))


def installed_clouds() -> dict[str, MakeCloud]:
    """Factories of all clouds, by name: calling one imports the SDK and reads its settings."""
    return {name: partial(made, name) for name in cloud_names()}


def made(name: str, sources: Sources, read_at: datetime) -> Provider:
    """The provider of this name, its package imported only now."""
    provider: Provider = import_module(f"{gpuplan.providers.__name__}.{_package(name)}").provider(
        sources, read_at=read_at
    )
    return provider


def _package(name: str) -> str:
    """The package of a provider: its name, with an underscore behind a word that Python reserves."""
    return f"{name}_" if iskeyword(name) else name


def is_set_up(name: str) -> bool:
    """Whether a provider is asked unless others are named: the large clouds always, one with an endpoint with its key.

    One that shows its prices to anyone is also set up by its endpoint's variable.
    """
    row = provider_names().get(name)
    if row is None or not row.endpoint:
        return True
    variables = [f"GPUPLAN_{name.upper()}_ENDPOINT"] if not row.needs_key else []
    if row.key_variable:
        variables += [row.key_variable, f"{row.key_variable}_FILE"]
    return any(os.environ.get(variable) for variable in variables)
