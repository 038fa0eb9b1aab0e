"""Laws of a refresh over any rows of before and now."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.contract import Rows
from gpuplan.providers.refresh.parallel_fetch import Gathered
from gpuplan.providers.refresh.refresh_acceptance import Accepted
from gpuplan.providers.refresh.refresh_run import CurrentRows, Refreshed, combined
from gpuplan.providers.refresh.row_merge import is_modelled_price
from tests.providers.fake_clouds import LAST_NIGHT, NIGHTS, SHIPPED_AT, TONIGHT, machine, price, snapshot

REGIONS = ("r1", "r2", "r3")
KINDS = ("on_demand", "spot", "reserved_1y")
NAMES = ("p5.48xlarge", "g6.xlarge")

old_offers = st.builds(
    lambda region, zone, name, kind, cents, since, modelled, provider: price(
        region,
        name,
        5_000_000 + cents * 10_000,
        zone=zone,
        price_kind=kind,
        provider=provider,
        observed_at=LAST_NIGHT,
        stale_since=since,
        modelled=("spot_price",) if modelled and kind == "spot" else (),
    ),
    st.sampled_from(REGIONS),
    st.sampled_from(("", "a", "b")),
    st.sampled_from(NAMES),
    st.sampled_from(KINDS),
    st.integers(0, 300),
    st.sampled_from([None, SHIPPED_AT]),
    st.booleans(),
    st.sampled_from(("aws", "gcp")),
)
snapshots = st.lists(old_offers, min_size=1, max_size=25, unique_by=lambda item: item.key).map(
    lambda item: snapshot(*item)
)


def tonight(offer: Offer) -> Offer:
    return replace(offer, provider="aws", observed_at=TONIGHT, stale_since=None)


answers = st.builds(
    lambda came, whole: Rows(
        instance_types=tuple(machine(name) for name in NAMES),
        offers=tuple(tonight(item) for item in came),
        whole_kinds=frozenset(whole),
    ),
    st.lists(old_offers, max_size=12, unique_by=lambda item: item.key[2:]),
    st.sets(st.sampled_from(KINDS)),
)


@st.composite
def gathers(draw: st.DrawFn) -> Gathered:
    """An answer of AWS: some regions read, some failed, some no longer listed."""
    listed = draw(st.lists(st.sampled_from(REGIONS), unique=True, min_size=1))
    failed = {item for item in listed if draw(st.integers(0, 3)) == 0}
    gathered = Gathered(provider="aws", listed=tuple(listed))
    for region in listed:
        if region in failed:
            gathered.failed[region] = str(ProviderFailure("down"))
        else:
            rows = draw(answers)
            gathered.rows[region] = replace(rows, offers=tuple(replace(offer, region=region) for offer in rows.offers))
    return gathered


ACCEPTED = st.builds(Accepted, loss=st.booleans(), jumps=st.booleans())
LAWS = settings(max_examples=150, deadline=None)


def run(before: CurrentRows, gathered: Gathered, accepted: Accepted) -> Refreshed:
    return combined({"aws": gathered}, before, at=TONIGHT, accepted=accepted)


def of_aws(done: Refreshed) -> dict[tuple[str, ...], Offer]:
    return {offer.key: offer for offer in done.snapshot.offers if offer.provider == "aws"}


@LAWS
@given(snapshots, gathers(), ACCEPTED)
def test_a_cloud_that_was_not_asked_stays_as_it_is(before, fetched, accepted) -> None:  # type: ignore[no-untyped-def]
    done = run(CurrentRows(snapshot=before, embedded=None, read_at=NIGHTS), fetched, accepted)
    assert [offer for offer in done.snapshot.offers if offer.provider == "gcp"] == [
        offer for offer in before.offers if offer.provider == "gcp"
    ]
    assert {instance_type.name for instance_type in before.instance_types if instance_type.provider == "gcp"} == {
        instance_type.name for instance_type in done.snapshot.instance_types if instance_type.provider == "gcp"
    }


@LAWS
@given(snapshots, gathers(), ACCEPTED)
def test_every_row_came_tonight_or_is_an_old_one_marked_stale(before, fetched, accepted) -> None:  # type: ignore[no-untyped-def]
    old = {offer.key: offer for offer in before.offers}
    came = {offer for rows in fetched.rows.values() for offer in rows.offers}
    for key, row in of_aws(run(CurrentRows(snapshot=before, embedded=None, read_at=NIGHTS), fetched, accepted)).items():
        if row in came:
            continue
        assert row.stale_since is not None
        assert row == replace(old[key], stale_since=old[key].stale_since or TONIGHT)


@LAWS
@given(snapshots, gathers(), ACCEPTED)
def test_a_region_that_failed_keeps_every_row(before, fetched, accepted) -> None:  # type: ignore[no-untyped-def]
    remaining = of_aws(run(CurrentRows(snapshot=before, embedded=None, read_at=NIGHTS), fetched, accepted))
    for offer in before.offers:
        if offer.provider == "aws" and offer.region in fetched.failed:
            assert remaining[offer.key] == replace(offer, stale_since=offer.stale_since or TONIGHT)


@LAWS
@given(snapshots, gathers(), ACCEPTED)
def test_a_refused_or_failed_cloud_loses_nothing(before, fetched, accepted) -> None:  # type: ignore[no-untyped-def]
    done = run(CurrentRows(snapshot=before, embedded=None, read_at=NIGHTS), fetched, accepted)
    if done.outcome in {"refused", "failed"}:
        assert of_aws(done).keys() == {offer.key for offer in before.offers if offer.provider == "aws"}


@LAWS
@given(snapshots, gathers())
def test_no_modelled_price_comes_beside_a_stated_one(before, fetched) -> None:  # type: ignore[no-untyped-def]
    done = run(CurrentRows(snapshot=before, embedded=None, read_at=NIGHTS), fetched, Accepted(loss=True, jumps=True))
    remaining = of_aws(done).values()
    stated = {
        (offer.region, offer.instance_type, offer.price_kind) for offer in remaining if not is_modelled_price(offer)
    }
    for item in remaining:
        if is_modelled_price(item) and item.stale_since is None:
            assert (item.region, item.instance_type, item.price_kind) not in stated


@LAWS
@given(snapshots, gathers(), ACCEPTED)
def test_the_same_answer_again_changes_nothing(before, fetched, accepted) -> None:  # type: ignore[no-untyped-def]
    first = run(CurrentRows(snapshot=before, embedded=None, read_at=NIGHTS), fetched, accepted)
    again = combined(
        {"aws": fetched},
        CurrentRows(snapshot=first.snapshot, embedded=None, read_at=NIGHTS),
        at=TONIGHT + timedelta(days=1),
        accepted=accepted,
    )
    assert again.snapshot == first.snapshot
    # What the first could not confirm is known to be stale by the second.
    assert again.outcome == first.outcome or (first.outcome, again.outcome) == ("partial", "whole")
