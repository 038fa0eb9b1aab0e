"""What every source of machines and prices fulfils, whatever it is called by the cloud behind it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from catalog.offer import InstanceType, Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What one region of one provider gave: rows that are plausible, and a line for each that is not."""

    instance_types: tuple[InstanceType, ...] = ()
    offers: tuple[Offer, ...] = ()
    quarantined: tuple[str, ...] = ()


class Provider(Protocol):
    """A source of rows, asked region by region so that one that fails leaves the others whole."""

    @property
    def name(self) -> str:
        """As rows name it: aws, gcp, azure, local."""
        ...

    def regions(self) -> Sequence[str]:
        """The regions that can be fetched, in the provider's own names."""
        ...

    def fetch(self, region: str) -> Rows:
        """The rows of one region; raises `UnusableInput` at `region` for one that does not exist."""
        ...
