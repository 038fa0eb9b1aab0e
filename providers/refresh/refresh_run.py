"""One refresh: fetch every cloud, quarantine impossible rows, refuse implausible providers, merge the rest.

A provider's rows are accepted region by region (`gpuplan.providers.refresh.row_merge` decides which old rows stay), or not
at all. Refused are an answer without offers, one that lost half of the rows of earlier refreshes, and one with too many
price jumps; then the old rows stay, marked stale. Rows shipped with a release come from other places and times, so the
first live reading replaces them and is only compared with them.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.price_plausibility import usual_prices
from gpuplan.catalog.snapshots.snapshot import Snapshot, snapshot_of
from gpuplan.providers.refresh.parallel_fetch import Gathered, MakeProvider, Progress, gather, no_progress
from gpuplan.providers.refresh.refresh_acceptance import Accepted, halves_gone, implausible, jumps, jumps_exceeded, lost
from gpuplan.providers.refresh.row_merge import Before, Merged, is_closed, merged, unread
from gpuplan.providers.refresh.row_validation import ValidatedRows, validate_rows, without

Outcome = Literal["whole", "partial", "refused", "failed"]
#: Time for the slowest cloud at its published rate limits, doubled to allow for throttling.
USUAL_LIMIT_SECONDS = 20 * 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The result of one provider: fetched rows, quarantined rows, the reason for a refusal, its rows now.

    `warnings` are findings to review although the rows were accepted. `unconfirmed` counts offers of earlier refreshes that
    this one should have confirmed: those that are missing without being reported as gone, and those with unusable rows.
    """

    gathered: Gathered
    sifted: ValidatedRows
    refused: tuple[str, ...]
    merged: Merged
    warnings: tuple[str, ...] = ()
    unconfirmed: int = 0

    @property
    def outcome(self) -> Outcome:
        """Whole: every region and call answered and confirmed the known offers; partial: some rows are stale."""
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
    """The snapshot after a refresh, possibly the previous one, and each provider's result."""

    snapshot: Snapshot
    read: tuple[Read, ...]

    @property
    def outcome(self) -> Outcome:
        """Whole or partial if any provider's rows were accepted; else refused if any was refused, else failed."""
        outcomes = {read.outcome for read in self.read}
        if outcomes == {"whole"}:
            return "whole"
        if outcomes & {"whole", "partial"}:
            return "partial"
        return "refused" if "refused" in outcomes else "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentRows:
    """The previous snapshot, the newest shipped one, and the times at which refreshes read prices.

    A row is live if a refresh read it, which its time shows: all rows of a refresh have the same time. Others came with a
    release, this one or one whose snapshot has been dropped since. `ended` are providers that exist no more, whose rows go.
    """

    snapshot: Snapshot
    embedded: Snapshot | None
    read_at: Set[datetime]
    ended: Set[str] = frozenset()

    def before(self, provider: str) -> Before:
        """The rows of one provider."""
        offers = {offer.key: offer for offer in self.snapshot.offers if offer.provider == provider}
        return Before(
            types={
                instance_type.name: instance_type
                for instance_type in self.snapshot.instance_types
                if instance_type.provider == provider
            },
            offers=offers,
            live=frozenset(key for key, offer in offers.items() if offer.observed_at in self.read_at),
            shipped=frozenset(
                instance_type.name
                for instance_type in (self.embedded.instance_types if self.embedded else ())
                if instance_type.provider == provider
            ),
        )


def refresh(
    clouds: Mapping[str, MakeProvider],
    current_rows: CurrentRows,
    *,
    at: datetime,
    limit_seconds: float = USUAL_LIMIT_SECONDS,
    accepted: Accepted | None = None,
    progress: Progress = no_progress,
) -> Refreshed:
    """The snapshot after fetching these clouds at time `at`; the rows of other providers do not change."""
    gathered = gather(clouds, limit_seconds=limit_seconds, progress=progress)
    return combined(gathered, current_rows, at=at, accepted=accepted or Accepted())


def combined(
    gathered: Mapping[str, Gathered], current_rows: CurrentRows, *, at: datetime, accepted: Accepted
) -> Refreshed:
    """The snapshot that follows from the fetched rows: no clock, no network."""
    before = {name: current_rows.before(name) for name in gathered}
    sifted = {name: validate_rows(fetched, before[name].types) for name, fetched in gathered.items()}
    types = _by_name(current_rows.snapshot.instance_types)
    types |= _by_name(instance_type for rows in sifted.values() for instance_type in rows.types.values())
    usual = _usual(sifted.values(), current_rows.snapshot.offers, types, new_alone=accepted.jumps)
    read = tuple(
        _read(fetched, sifted[name], before[name], types, usual, at=at, accepted=accepted)
        for name, fetched in sorted(gathered.items())
    )
    old, replaced = current_rows.snapshot, gathered.keys() | current_rows.ended
    rows = [offer for offer in old.offers if offer.provider not in replaced]
    kinds = [instance_type for instance_type in old.instance_types if instance_type.provider not in replaced]
    for cloud in read:
        rows += cloud.merged.offers
        kinds += cloud.merged.types
    return Refreshed(snapshot=snapshot_of(kinds, rows), read=read)


def _read(
    gathered: Gathered,
    sifted: ValidatedRows,
    before: Before,
    types: Mapping[tuple[str, str], InstanceType],
    usual: Mapping[str, float],
    *,
    at: datetime,
    accepted: Accepted,
) -> Read:
    """Compare one provider's rows with the previous ones."""
    if gathered.failure or not gathered.rows:
        return Read(gathered=gathered, sifted=sifted, refused=(), merged=unread(before, at=at))
    refused = [] if sifted.offers else [f"no usable offer came from its {len(gathered.rows)} regions"]
    leapt, compared = jumps(sifted, before)
    if not accepted.loss and not refused:
        refused += lost(gathered, sifted, before)
    if not accepted.jumps:
        refused += filter(None, [jumps_exceeded(len(leapt), compared)])
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


def _unconfirmed(gathered: Gathered, result: Merged, sifted: ValidatedRows, before: Before) -> int:
    """The number of live offers that became stale, or whose new row was quarantined.

    Offers where the account may not rent do not count: no refresh can confirm them.
    """
    quarantined_keys = {row.key for row in sifted.aside}
    stale = (offer for offer in result.offers if offer.stale_since is not None and offer.key in before.live)
    return sum(
        offer.key in quarantined_keys
        or (before.offers[offer.key].stale_since is None and not is_closed(gathered, offer))
        for offer in stale
    )


def _embedded_gone(gathered: Gathered, sifted: ValidatedRows, before: Before) -> tuple[str, ...]:
    gone = halves_gone(gathered, sifted, before, before.offers.keys() - before.live)
    return (f"against the prices that came with gpuplan, {', '.join(gone)}",) if gone else ()


def _usual(
    sifted: Iterable[ValidatedRows],
    old: Iterable[Offer],
    types: Mapping[tuple[str, str], InstanceType],
    *,
    new_alone: bool,
) -> dict[str, float]:
    """Usual accelerator prices now and before, over all clouds, so that no single source sets its own bounds.

    With `new_alone`, only new rows count if there are any: then a genuine change of all prices passes.
    """
    came = [offer for validated_rowse in sifted for offer in validated_rowse.offers.values()]
    if new_alone:
        return usual_prices(old, types) | usual_prices(came, types)
    return usual_prices([*old, *came], types)


def _by_name(types: Iterable[InstanceType]) -> dict[tuple[str, str], InstanceType]:
    return {(instance_type.provider, instance_type.name): instance_type for instance_type in types}
