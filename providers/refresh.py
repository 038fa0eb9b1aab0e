"""One refresh: ask every cloud, set aside what cannot be, refuse what cannot be believed, and merge the rest.

A provider's rows are taken region by region (`providers.merge` says which old rows stay), or not at
all: an answer without offers, one that lost half of what a refresh had read before, and one in which
too many prices leap are refused, and the rows of before stay, marked stale. Rows that came with a
release were collected elsewhere and at other times, so the first live reading replaces them, and is
only compared.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from catalog.offer import InstanceType, Offer
from catalog.plausible_prices import usual_prices
from catalog.snapshot import Snapshot, snapshot_of
from providers.checks import Accepted, halves_gone, implausible, jumps, lost, too_many_jumps
from providers.gather import Gathered, MakeProvider, Progress, gather, no_progress
from providers.merge import Before, Merged, is_closed, merged, unread
from providers.sift import Sifted, sift, without

Outcome = Literal["whole", "partial", "refused", "failed"]
#: Time for the slowest cloud at its published rate limits, with as much again for throttling.
USUAL_LIMIT_SECONDS = 20 * 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What became of one provider: what it gave, what was set aside, why it was refused if so, its rows now.

    `warnings` are what people should look at although the rows were taken. `unconfirmed` counts offers that a
    refresh had read and this one should have: those that it gave no longer, without saying that they are gone,
    and those that came in a way that cannot be taken.
    """

    gathered: Gathered
    sifted: Sifted
    refused: tuple[str, ...]
    merged: Merged
    warnings: tuple[str, ...] = ()
    unconfirmed: int = 0

    @property
    def outcome(self) -> Outcome:
        """Whole: every region and call answered, and confirmed what was known; partial: some rows are stale."""
        if self.gathered.failure or not self.gathered.rows:
            return "failed"
        if self.refused:
            return "refused"
        incomplete = self.gathered.failed or any(
            rows.failures or rows.provider_failures for rows in self.gathered.rows.values()
        )
        return "partial" if incomplete or self.unconfirmed else "whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """The snapshot that a refresh makes, which may be the one before, and what became of each provider."""

    snapshot: Snapshot
    read: tuple[Read, ...]

    @property
    def outcome(self) -> Outcome:
        """Whole or partial if any provider's rows were taken; else refused if that is why, else failed."""
        each = {read.outcome for read in self.read}
        if each == {"whole"}:
            return "whole"
        if each & {"whole", "partial"}:
            return "partial"
        return "refused" if "refused" in each else "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The snapshot before, the newest that came with a release, and when refreshes read prices.

    A row is live if a refresh read it, which its time says: all rows of a refresh carry the same one. Others came
    with a release, this one or one whose snapshot has been dropped since.
    """

    snapshot: Snapshot
    embedded: Snapshot | None
    read_at: Set[datetime]

    def before(self, provider: str) -> Before:
        """The rows of one provider."""
        offers = {each.key: each for each in self.snapshot.offers if each.provider == provider}
        return Before(
            types={each.name: each for each in self.snapshot.instance_types if each.provider == provider},
            offers=offers,
            live=frozenset(key for key, each in offers.items() if each.observed_at in self.read_at),
            shipped=frozenset(
                each.name
                for each in (self.embedded.instance_types if self.embedded else ())
                if each.provider == provider
            ),
        )


def refresh(
    clouds: Mapping[str, MakeProvider],
    standing: Standing,
    *,
    at: datetime,
    limit_seconds: float = USUAL_LIMIT_SECONDS,
    accepted: Accepted | None = None,
    progress: Progress = no_progress,
) -> Refreshed:
    """The snapshot after asking these clouds at time `at`; every other provider's rows stay as they are."""
    gathered = gather(clouds, limit_seconds=limit_seconds, progress=progress)
    return combined(gathered, standing, at=at, accepted=accepted or Accepted())


def combined(gathered: Mapping[str, Gathered], standing: Standing, *, at: datetime, accepted: Accepted) -> Refreshed:
    """The snapshot that follows from what was gathered: no clock, no network."""
    before = {name: standing.before(name) for name in gathered}
    sifted = {name: sift(each, before[name].types) for name, each in gathered.items()}
    types = _by_name(standing.snapshot.instance_types)
    types |= _by_name(each for found in sifted.values() for each in found.types.values())
    usual = _usual(sifted.values(), standing.snapshot.offers, types, new_alone=accepted.jumps)
    read = tuple(
        _read(each, sifted[name], before[name], types, usual, at=at, accepted=accepted)
        for name, each in sorted(gathered.items())
    )
    old = standing.snapshot
    rows = [each for each in old.offers if each.provider not in gathered]
    kinds = [each for each in old.instance_types if each.provider not in gathered]
    for each in read:
        rows += each.merged.offers
        kinds += each.merged.types
    return Refreshed(snapshot=snapshot_of(kinds, rows), read=read)


def _read(
    gathered: Gathered,
    sifted: Sifted,
    before: Before,
    types: Mapping[tuple[str, str], InstanceType],
    usual: Mapping[str, float],
    *,
    at: datetime,
    accepted: Accepted,
) -> Read:
    """One provider's rows against those of before."""
    if gathered.failure or not gathered.rows:
        return Read(gathered=gathered, sifted=sifted, refused=(), merged=unread(before, at=at))
    refused = [] if sifted.offers else [f"no usable offer came from its {len(gathered.rows)} regions"]
    leapt, compared = jumps(sifted, before)
    if not accepted.loss and not refused:
        refused += lost(gathered, sifted, before)
    if not accepted.jumps:
        refused += filter(None, [too_many_jumps(len(leapt), compared)])
        sifted = without(sifted, leapt)
    sifted = without(sifted, implausible(sifted, types, usual))
    if refused:
        return Read(gathered=gathered, sifted=sifted, refused=tuple(refused), merged=unread(before, at=at))
    result = merged(gathered, sifted, before, at=at)
    return Read(
        gathered=gathered,
        sifted=sifted,
        refused=(),
        merged=result,
        warnings=_embedded_gone(gathered, sifted, before),
        unconfirmed=_unconfirmed(gathered, result, sifted, before),
    )


def _unconfirmed(gathered: Gathered, result: Merged, sifted: Sifted, before: Before) -> int:
    """How many live offers are stale that were not before, or whose new row was set aside.

    Offers where the account may not rent do not count: no refresh can confirm them.
    """
    held = {each.key for each in sifted.aside}
    stale = (each for each in result.offers if each.stale_since is not None and each.key in before.live)
    return sum(
        each.key in held or (before.offers[each.key].stale_since is None and not is_closed(gathered, each))
        for each in stale
    )


def _embedded_gone(gathered: Gathered, sifted: Sifted, before: Before) -> tuple[str, ...]:
    gone = halves_gone(gathered, sifted, before, before.offers.keys() - before.live)
    return (f"against the prices that came with gpuplan, {', '.join(gone)}",) if gone else ()


def _usual(
    sifted: Iterable[Sifted], old: Iterable[Offer], types: Mapping[tuple[str, str], InstanceType], *, new_alone: bool
) -> dict[str, float]:
    """What each accelerator costs now and before, over all clouds, so that no one source sets its own bounds.

    With `new_alone` what came counts alone, where there is anything: then a true change of all prices passes.
    """
    came = [offer for each in sifted for offer in each.offers.values()]
    if new_alone:
        return usual_prices(old, types) | usual_prices(came, types)
    return usual_prices([*old, *came], types)


def _by_name(types: Iterable[InstanceType]) -> dict[tuple[str, str], InstanceType]:
    return {(each.provider, each.name): each for each in types}
