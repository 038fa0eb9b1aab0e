"""The clouds that publish capacity answers. A cloud's module is imported, and its credentials found, on its first question."""

import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from importlib import import_module

import gpuplan.providers
from gpuplan.providers.capacity.contract import CapacitySource
from gpuplan.providers.capacity.listed_stock import LISTED_STOCK, ListedStock
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.cloud_registry import made
from gpuplan.providers.price_lists.list_provider import ListProvider, RegionalListProvider

#: Clouds with a module `capacity`, and providers whose price list states stock.
WITH_MODULE = ("aws", "azure", "gcp")
CAPACITY_CLOUDS = tuple(sorted((*WITH_MODULE, *LISTED_STOCK)))


class CapacitySources(Mapping[str, Callable[[], CapacitySource]]):
    """By provider, a function that returns its source: made once, so that its rate limits hold over all questions."""

    def __init__(self, sources: Sources) -> None:
        """Imports and sends nothing yet."""
        self._sources = sources
        self._locks = {name: threading.Lock() for name in CAPACITY_CLOUDS}
        self._made: dict[str, CapacitySource] = {}

    def __getitem__(self, name: str) -> Callable[[], CapacitySource]:
        if name not in self._locks:
            raise KeyError(name)
        return partial(self._source, name)

    def __iter__(self) -> Iterator[str]:
        return iter(CAPACITY_CLOUDS)

    def __len__(self) -> int:
        return len(CAPACITY_CLOUDS)

    def _source(self, name: str) -> CapacitySource:
        """Raises `ProviderFailure` without credentials, and then tries again at the next question."""
        with self._locks[name]:
            if name not in self._made:
                if name in WITH_MODULE:
                    module = import_module(f"{gpuplan.providers.__name__}.{name}.capacity")
                    self._made[name] = module.capacity_source(self._sources)
                else:
                    self._made[name] = ListedStock(name, partial(_list_of, name, self._sources))
            return self._made[name]


def _list_of(name: str, sources: Sources, read_at: datetime) -> ListProvider | RegionalListProvider:
    provider = made(name, sources, read_at)
    if not isinstance(provider, ListProvider | RegionalListProvider):
        raise TypeError(f"{name} has no price list with stock")
    return provider
