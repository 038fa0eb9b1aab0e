"""What every source of machines and prices fulfils, whatever it is called by the cloud behind it.

A cloud is a package of this folder whose `provider(sources, read_at=...)` gives a `Provider`; that is
all that `providers.refresh` knows of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from catalog.offer import InstanceType, Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """A row that was read and not taken: `what` names it as the provider does, `reason` is for people."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What one region of one provider gave.

    `whole_kinds` are the price kinds of which everything there is was read: an earlier offer of such a
    kind in this region that is not among `offers` has vanished, one of any other kind is merely not
    confirmed. `unread_types` are regular expressions for the names of instance types of which the list
    did not answer: their earlier offers are not confirmed, whatever their kind. `closed` says that this
    account may rent nothing in the region: earlier offers that were not read stay, and are not available.
    `failures` has a line for each call that did not answer, naming the call, why, and what
    stays as it was; `notes` what people should know although nothing failed (an accelerator that
    nobody has described yet, hardware taken from gpuplan's own table). `provider_failures` and
    `provider_notes` are lines of the same two kinds that hold for the provider as a whole; they are
    shown once, without a region, however many regions carry them.
    """

    instance_types: tuple[InstanceType, ...] = ()
    offers: tuple[Offer, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    whole_kinds: frozenset[str] = frozenset()
    unread_types: frozenset[str] = frozenset()
    closed: bool = False
    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    provider_failures: tuple[str, ...] = ()
    provider_notes: tuple[str, ...] = ()


class Provider(Protocol):
    """A source of rows, asked region by region so that one that fails leaves the others whole.

    What all regions share (a price list, a feed) is read once, by whichever call comes first.
    Any number of threads may call `fetch` at the same time.
    """

    @property
    def name(self) -> str:
        """As rows name it: aws, gcp, azure, local."""
        ...

    @property
    def parallel(self) -> int:
        """How many regions may be fetched at the same time without exceeding the provider's limits."""
        ...

    def regions(self) -> Sequence[str]:
        """Every region that the provider has now, in its own names; a region that is not listed has gone.

        Raises `ProviderFailure` if the provider cannot be asked at all (no credentials, no answer).
        """
        ...

    def fetch(self, region: str) -> Rows:
        """The rows of one region, each offer observed at the `read_at` that the provider was made with.

        Raises `ProviderFailure` if the region gave nothing, `UnusableInput` at `region` for one that
        does not exist.
        """
        ...
