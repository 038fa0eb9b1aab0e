"""A sequence of offers that are created on access, because most rows of a snapshot are never looked at one by one."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import overload

from gpuplan.catalog.model.offer import Offer


class LazyOffers(Sequence[Offer]):
    """A subclass states `__len__`, and how one offer is created."""

    __slots__ = ()

    @abstractmethod
    def offer_at(self, index: int) -> Offer:
        """The offer at this index."""

    @overload
    def __getitem__(self, index: int) -> Offer: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Offer]: ...

    def __getitem__(self, index: int | slice) -> Offer | Sequence[Offer]:
        """One offer, or the offers of a slice."""
        if isinstance(index, slice):
            return [self.offer_at(i) for i in range(*index.indices(len(self)))]
        return self.offer_at(index)
