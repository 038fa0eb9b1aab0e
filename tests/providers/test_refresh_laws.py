"""Laws of a refresh over any rows of before and now."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.errors import ProviderFailure
from catalog.offer import Offer
from providers.checks import Accepted
from providers.contract import Rows
from providers.gather import Gathered
from providers.merge import is_modelled_price
from providers.refresh import Refreshed, Standing, combined
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
snapshots = st.lists(old_offers, min_size=1, max_size=25, unique_by=lambda each: each.key).map(
    lambda each: snapshot(*each)
)


def tonight(each: Offer) -> Offer:
    return replace(each, provider="aws", observed_at=TONIGHT, stale_since=None)


answers = st.builds(
    lambda came, whole: Rows(
        instance_types=tuple(machine(name) for name in NAMES),
        offers=tuple(tonight(each) for each in came),
        whole_kinds=frozenset(whole),
    ),
    st.lists(old_offers, max_size=12, unique_by=lambda each: each.key[2:]),
    st.sets(st.sampled_from(KINDS)),
)


@st.composite
def gathers(draw: st.DrawFn) -> Gathered:
    """An answer of AWS: some regions read, some failed, some no longer listed."""
    listed = draw(st.lists(st.sampled_from(REGIONS), unique=True, min_size=1))
    failed = {each for each in listed if draw(st.integers(0, 3)) == 0}
    found = Gathered(provider="aws", listed=tuple(listed))
    for region in listed:
        if region in failed:
            found.failed[region] = str(ProviderFailure("down"))
        else:
            rows = draw(answers)
            found.rows[region] = replace(rows, offers=tuple(replace(each, region=region) for each in rows.offers))
    return found


ACCEPTED = st.builds(Accepted, loss=st.booleans(), jumps=st.booleans())
LAWS = settings(max_examples=150, deadline=None)


def run(before: Standing, found: Gathered, accepted: Accepted) -> Refreshed:
    return combined({"aws": found}, before, at=TONIGHT, accepted=accepted)


def of_aws(done: Refreshed) -> dict[tuple[str, ...], Offer]:
    return {each.key: each for each in done.snapshot.offers if each.provider == "aws"}


@LAWS
@given(snapshots, gathers(), ACCEPTED)
def test_a_cloud_that_was_not_asked_stays_as_it_is(before, found, accepted) -> None:  # type: ignore[no-untyped-def]
    done = run(Standing(snapshot=before, embedded=None, read_at=NIGHTS), found, accepted)
    assert [each for each in done.snapshot.offers if each.provider == "gcp"] == [
        each for each in before.offers if each.provider == "gcp"
    ]
    assert {each.name for each in before.instance_types if each.provider == "gcp"} == {
        each.name for each in done.snapshot.instance_types if each.provider == "gcp"
    }


@LAWS
@given(snapshots, gathers(), ACCEPTED)
def test_every_row_came_tonight_or_is_an_old_one_marked_stale(before, found, accepted) -> None:  # type: ignore[no-untyped-def]
    old = {each.key: each for each in before.offers}
    came = {each for rows in found.rows.values() for each in rows.offers}
    for key, row in of_aws(run(Standing(snapshot=before, embedded=None, read_at=NIGHTS), found, accepted)).items():
        if row in came:
            continue
        assert row.stale_since is not None
        assert row == replace(old[key], stale_since=old[key].stale_since or TONIGHT)


@LAWS
@given(snapshots, gathers(), ACCEPTED)
def test_a_region_that_failed_keeps_every_row(before, found, accepted) -> None:  # type: ignore[no-untyped-def]
    kept = of_aws(run(Standing(snapshot=before, embedded=None, read_at=NIGHTS), found, accepted))
    for each in before.offers:
        if each.provider == "aws" and each.region in found.failed:
            assert kept[each.key] == replace(each, stale_since=each.stale_since or TONIGHT)


@LAWS
@given(snapshots, gathers(), ACCEPTED)
def test_a_refused_or_failed_cloud_loses_nothing(before, found, accepted) -> None:  # type: ignore[no-untyped-def]
    done = run(Standing(snapshot=before, embedded=None, read_at=NIGHTS), found, accepted)
    if done.outcome in {"refused", "failed"}:
        assert of_aws(done).keys() == {each.key for each in before.offers if each.provider == "aws"}


@LAWS
@given(snapshots, gathers())
def test_no_modelled_price_comes_beside_a_stated_one(before, found) -> None:  # type: ignore[no-untyped-def]
    done = run(Standing(snapshot=before, embedded=None, read_at=NIGHTS), found, Accepted(loss=True, jumps=True))
    kept = of_aws(done).values()
    stated = {(each.region, each.instance_type, each.price_kind) for each in kept if not is_modelled_price(each)}
    for each in kept:
        if is_modelled_price(each) and each.stale_since is None:
            assert (each.region, each.instance_type, each.price_kind) not in stated


@LAWS
@given(snapshots, gathers(), ACCEPTED)
def test_the_same_answer_again_changes_nothing(before, found, accepted) -> None:  # type: ignore[no-untyped-def]
    first = run(Standing(snapshot=before, embedded=None, read_at=NIGHTS), found, accepted)
    again = combined(
        {"aws": found},
        Standing(snapshot=first.snapshot, embedded=None, read_at=NIGHTS),
        at=TONIGHT + timedelta(days=1),
        accepted=accepted,
    )
    assert again.snapshot == first.snapshot
    # What the first could not confirm is known to be stale by the second.
    assert again.outcome == first.outcome or (first.outcome, again.outcome) == ("partial", "whole")
