"""The contract of every source of machines and prices.

A cloud is a package of this folder whose `provider(sources, read_at=...)` returns a `Provider`;
`gpuplan.providers.refresh.refresh_run` uses nothing else of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gpuplan.catalog.model.offer import InstanceType, Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """A rejected row: `what` identifies it in the provider's terms, `reason` is for people."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows of one region of one provider.

    `whole_kinds` are the price kinds that were read completely: an earlier offer of such a kind in this region that is
    missing from `offers` has vanished; one of any other kind is only unconfirmed. `unread_types` are regular expressions
    for names of instance types whose list did not answer: their earlier offers are unconfirmed, whatever their kind.
    `closed` means that this account may rent nothing in the region: earlier offers that were not read stay, as unavailable.
    `failures` has a line for each failed call, with the call, the reason, and which rows stay unchanged. `notes` are for
    people although nothing failed (an unknown accelerator, hardware taken from gpuplan's own table). `provider_failures`
    and `provider_notes` are such lines about the provider as a whole; they are shown once, without a region, even if
    several regions carry them.
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
    """A source of rows, read region by region so that a failing region leaves the others whole.

    Data that all regions share (a price list, a feed) is read once, by the first call. Any number of threads may call
    `fetch` at the same time.
    """

    @property
    def name(self) -> str:
        """The name in rows: aws, gcp, azure, local."""
        ...

    @property
    def parallel(self) -> int:
        """How many regions may be fetched concurrently within the provider's rate limits."""
        ...

    def regions(self) -> Sequence[str]:
        """Every current region, in the provider's names; an unlisted region has gone.

        Raises `ProviderFailure` if the provider cannot be reached at all (no credentials, no answer).
        """
        ...

    def fetch(self, region: str) -> Rows:
        """The rows of one region, each offer observed at the provider's `read_at`.

        Raises `ProviderFailure` if the region gave nothing, `UnusableInput` at `region` for one that does not exist.
        """
        ...
