"""What one refresh makes of the rows of before and now: taken, set aside, refused, or kept and marked stale."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.catalog.snapshots.snapshot import Snapshot
from gpuplan.providers.contract import Rows
from gpuplan.providers.refresh.refresh_acceptance import Accepted
from gpuplan.providers.refresh.refresh_run import CurrentRows, Read, Refreshed, refresh
from tests.providers.fake_clouds import (
    H100_MACHINE,
    LAST_NIGHT,
    NIGHTS,
    SHIPPED_AT,
    TONIGHT,
    FakeCloud,
    current_rows,
    last_night,
    machine,
    price,
    rows,
    snapshot,
    unreadable,
)

Answer = Rows | Exception


def refreshed(
    before: CurrentRows, accepted: Accepted | None = None, named: Mapping[str, Answer] | None = None, **answers: Answer
) -> Refreshed:
    """AWS answers so by region; `named` for those whose names are no words of Python."""
    cloud = FakeCloud(answers=answers | dict(named or {}))
    return refresh({"aws": lambda: cloud}, before, at=TONIGHT, limit_seconds=30, accepted=accepted)


def one(done: Refreshed) -> Read:
    [read] = done.read
    return read


def offers(snapshot: Snapshot | Refreshed, provider: str = "aws") -> list[Offer]:
    rows_of = snapshot.snapshot if isinstance(snapshot, Refreshed) else snapshot
    return [offer for offer in rows_of.offers if offer.provider == provider]


def stale(offer: Offer) -> Offer:
    return replace(offer, stale_since=TONIGHT)


def test_a_whole_answer_replaces_what_was_there() -> None:
    done = refreshed(current_rows(*last_night("r1", "r2")), r1=rows(price("r1")), r2=rows(price("r2")))
    assert offers(done) == [price("r1"), price("r2")]
    assert done.outcome == "whole"
    assert (one(done).merged.new, one(done).merged.vanished, one(done).merged.changed) == (0, 0, 0)


def test_what_is_new_gone_and_changed_is_counted() -> None:
    before = current_rows(*last_night("r1", "r2", "r3"), *last_night("r3", name="g6.xlarge"))
    done = refreshed(
        before,
        r1=rows(price("r1")),
        r2=rows(price("r2", usd_micros=90_000_000)),
        r3=rows(price("r3")),
        r4=rows(price("r4")),
    )
    counts = one(done).merged
    assert (counts.new, counts.vanished, counts.changed) == (1, 1, 1)


def test_a_region_that_is_no_longer_listed_takes_its_rows_with_it() -> None:
    done = refreshed(current_rows(*last_night("r1", "r2")), r1=rows(price("r1")))
    assert offers(done) == [price("r1")]


def test_a_failed_region_keeps_its_rows_marked_stale() -> None:
    [_, old] = last = last_night("r1", "r2")
    done = refreshed(current_rows(*last), r1=rows(price("r1")), r2=ProviderFailure("down"))
    assert offers(done) == [price("r1"), stale(old)]
    assert done.outcome == "partial"


def test_a_row_that_was_stale_before_keeps_the_time_since_when() -> None:
    [old] = last_night("r2", stale_since=LAST_NIGHT)
    done = refreshed(current_rows(*last_night("r1"), old), r1=rows(price("r1")), r2=ProviderFailure("down"))
    assert offers(done)[1] == old


def test_a_stale_row_that_comes_again_is_fresh() -> None:
    done = refreshed(current_rows(*last_night("r1", stale_since=LAST_NIGHT)), r1=rows(price("r1")))
    assert offers(done) == [price("r1")]


def test_a_failed_cloud_keeps_its_rows_marked_stale_and_others_stay_untouched() -> None:
    before = current_rows(*last_night("r1"), *last_night("e1", provider="azure"))
    failing = FakeCloud(listing=ProviderFailure("no credentials"))
    done = refresh({"aws": lambda: failing}, before, at=TONIGHT, limit_seconds=30)
    assert offers(done) == [stale(last_night("r1")[0])]
    assert offers(done, "azure") == last_night("e1", provider="azure")
    assert done.outcome == "failed"


def test_a_second_failed_night_makes_no_other_snapshot() -> None:
    failing = FakeCloud(listing=ProviderFailure("no credentials"))
    first = refresh({"aws": lambda: failing}, current_rows(*last_night("r1")), at=TONIGHT, limit_seconds=30)
    again = CurrentRows(snapshot=first.snapshot, embedded=None, read_at=NIGHTS)
    second = refresh({"aws": lambda: failing}, again, at=TONIGHT.replace(day=22), limit_seconds=30)
    assert second.snapshot == first.snapshot


def test_a_kind_that_was_not_read_whole_is_kept_stale() -> None:
    [spot] = last_night("r1", price_kind="spot")
    done = refreshed(current_rows(*last_night("r1"), spot), r1=rows(price("r1"), whole=["on_demand"]))
    assert offers(done) == [price("r1"), stale(spot)]
    done = refreshed(current_rows(*last_night("r1"), spot), r1=rows(price("r1"), whole=["on_demand", "spot"]))
    assert offers(done) == [price("r1")]


def test_machines_whose_list_did_not_answer_stay_and_others_that_did_not_come_are_gone() -> None:
    [unread] = last_night("r1", name="g6.xlarge")
    before = current_rows(*last_night("r1"), unread, *last_night("r1", name="p4d.24xlarge"))
    done = refreshed(before, r1=rows(price("r1"), unread_types=frozenset({r"g6\..*"})))
    assert offers(done) == [stale(unread), price("r1")]
    assert one(done).merged.vanished == 1


def test_spot_in_a_region_that_the_account_may_not_use_is_not_available_and_the_refresh_is_whole() -> None:
    [spot] = last_night("r2", price_kind="spot")
    listed = price("r2", available=False)
    done = refreshed(current_rows(*last_night("r1", "r2"), spot), r1=rows(price("r1")), r2=rows(listed, closed=True))
    assert offers(done) == [price("r1"), listed, replace(stale(spot), available=False)]
    assert (done.outcome, one(done).unconfirmed) == ("whole", 0)


def test_a_region_that_the_account_may_use_again_is_available_again() -> None:
    [spot] = last_night("r1", price_kind="spot", available=False, stale_since=LAST_NIGHT)
    done = refreshed(current_rows(spot), r1=rows(price("r1", price_kind="spot"), whole=["spot"]))
    assert offers(done) == [price("r1", price_kind="spot")]


def test_a_call_that_failed_makes_a_refresh_partial() -> None:
    done = refreshed(
        current_rows(*last_night("r1")), r1=rows(price("r1"), failures=("DescribeSpotPriceHistory: denied",))
    )
    assert done.outcome == "partial"


def test_a_modelled_price_never_replaces_or_joins_one_that_a_source_states() -> None:
    [stated] = last_night("r1", price_kind="spot", zone="r1-a")
    modelled = price("r1", price_kind="spot", modelled=("spot_price",))
    before = current_rows(*last_night("r1"), stated)
    done = refreshed(before, r1=rows(price("r1"), modelled, whole=["on_demand", "spot"]))
    assert offers(done) == [price("r1"), stale(stated)]


def test_a_modelled_price_is_taken_where_no_source_states_one() -> None:
    modelled = price("r1", price_kind="spot", modelled=("spot_price",))
    [earlier] = last_night("r1", price_kind="spot", modelled=("spot_price",))
    done = refreshed(current_rows(*last_night("r1"), earlier), r1=rows(price("r1"), modelled))
    assert offers(done) == [price("r1"), modelled]


def test_a_stated_price_replaces_a_modelled_one() -> None:
    [modelled] = last_night("r1", price_kind="spot", modelled=("spot_price",))
    stated = price("r1", price_kind="spot")
    assert offers(refreshed(current_rows(*last_night("r1"), modelled), r1=rows(price("r1"), stated)))[1] == stated


def test_the_same_row_twice_is_one_and_two_that_differ_are_none() -> None:
    before = current_rows(*last_night("r1", "r2"))
    twice = rows(price("r1"), price("r1"), price("r2"), price("r2", usd_micros=97_000_000))
    done = refreshed(before, r1=twice, r2=rows())
    assert offers(done) == [price("r1"), stale(last_night("r2")[0])]
    [first, second] = one(done).sifted.aside
    assert (first.what, first.reason) == (second.what, "came 2 times with different contents (96 and 97 USD/h)")


def test_a_row_of_an_unknown_machine_is_set_aside() -> None:
    done = refreshed(
        current_rows(*last_night("r1")), r1=Rows(instance_types=(machine(),), offers=(price(), price(name="p9")))
    )
    assert [item.reason for item in one(done).sifted.aside] == ["nothing is known of its machine"]
    assert offers(done) == [price()]


def test_a_machine_with_an_unknown_accelerator_is_listed_by_name() -> None:
    strange = machine("p9.48xlarge", accelerator="X900")
    done = refreshed(current_rows(*last_night("r1")), r1=rows(price(), price(name="p9.48xlarge"), kinds=[strange]))
    read = one(done)
    assert read.sifted.unknown_accelerators == ("X900",)
    assert [item.reason for item in read.sifted.aside] == ["its accelerator 'X900' is unknown"]
    assert "p9.48xlarge" not in {instance_type.name for instance_type in done.snapshot.instance_types}


@pytest.mark.parametrize("change", [{"provider": "gcp"}, {"price_kind": "barter"}])
def test_a_row_of_another_provider_or_an_unknown_kind_is_set_aside(change: dict[str, object]) -> None:
    done = refreshed(current_rows(*last_night("r1")), r1=rows(price(), price(**change)))  # type: ignore[arg-type]
    assert len(one(done).sifted.aside) == 1
    assert offers(done) == [price()]


def test_a_price_that_cannot_be_is_set_aside_with_its_figures_and_the_old_one_stays() -> None:
    before = current_rows(*last_night("r1", "r2", "r3"))
    done = refreshed(before, r1=rows(price("r1")), r2=rows(price("r2", usd_micros=12_000_000)), r3=rows(price("r3")))
    assert offers(done)[1] == stale(last_night("r2")[0])
    reason = "1.5000 USD per accelerator-hour is outside 3.6000..96.0000; is it the price of one accelerator?"
    assert one(done).sifted.aside[0].reason == reason
    assert done.outcome == "partial"


def test_a_row_that_no_adapter_could_read_keeps_the_old_one() -> None:
    before = current_rows(*last_night("r1"), *last_night("r1", name="g6.xlarge"))
    done = refreshed(before, r1=rows(price(), quarantined=unreadable("g6.xlarge/on_demand")))
    assert offers(done)[0] == stale(last_night("r1", name="g6.xlarge")[0])


def offers_alike(count: int, **changes: object) -> list[Offer]:
    """Live prices of last night, or those of tonight with `changes`, in `count` zones."""
    return [price("r1", zone=f"z{i:03}", **changes) for i in range(count)]  # type: ignore[arg-type]


def test_a_cloud_that_lost_half_is_refused_unless_the_loss_is_accepted() -> None:
    before = current_rows(*offers_alike(10, observed_at=LAST_NIGHT))
    answer = rows(*offers_alike(4))
    done = refreshed(before, r1=answer)
    assert done.outcome == "refused"
    assert one(done).refused == ("only 4 of 10 offers are still there; --accept-loss takes that",)
    assert offers(done) == [stale(item) for item in offers_alike(10, observed_at=LAST_NIGHT)]
    assert offers(refreshed(before, Accepted(loss=True), r1=answer)) == offers_alike(4)


def test_a_cloud_that_keeps_half_is_taken() -> None:
    done = refreshed(current_rows(*offers_alike(10, observed_at=LAST_NIGHT)), r1=rows(*offers_alike(5)))
    assert (done.outcome, one(done).merged.vanished) == ("whole", 5)


def test_regions_and_machines_that_are_lost_count_for_themselves() -> None:
    before = current_rows(*last_night("r2", "r3"), *offers_alike(10, observed_at=LAST_NIGHT))
    assert one(refreshed(before, r1=rows(*offers_alike(10)))).refused == (
        "only 1 of 3 regions are still there; --accept-loss takes that",
    )
    kinds = [offer for name in ("g6.xlarge", "p4d.24xlarge") for offer in last_night("r1", name=name)]
    before = current_rows(*kinds, *offers_alike(10, observed_at=LAST_NIGHT))
    assert one(refreshed(before, r1=rows(*offers_alike(10)))).refused == (
        "only 1 of 3 instance types are still there; --accept-loss takes that",
    )


def test_a_region_that_failed_is_not_lost() -> None:
    before = current_rows(*last_night("r1", "r2", "r3"))
    done = refreshed(before, r1=rows(price("r1")), r2=ProviderFailure("down"), r3=ProviderFailure("down"))
    assert done.outcome == "partial"


def test_rows_that_came_with_a_release_may_be_replaced_by_fewer() -> None:
    shipped = snapshot(*offers_alike(10, observed_at=SHIPPED_AT, source="shipped"))
    done = refreshed(CurrentRows(snapshot=shipped, embedded=shipped, read_at=NIGHTS), r1=rows(*offers_alike(4)))
    assert (done.outcome, offers(done)) == ("whole", offers_alike(4))
    assert one(done).warnings == ("against the prices that came with gpuplan, only 4 of 10 offers are still there",)


def test_an_embedded_row_that_a_refresh_has_read_since_is_live() -> None:
    shipped = snapshot(*offers_alike(10, observed_at=SHIPPED_AT, source="shipped"))
    before = CurrentRows(snapshot=snapshot(*offers_alike(10, observed_at=LAST_NIGHT)), embedded=shipped, read_at=NIGHTS)
    assert refreshed(before, r1=rows(*offers_alike(4))).outcome == "refused"


def test_an_empty_answer_is_refused_whatever_is_accepted() -> None:
    done = refreshed(current_rows(*last_night("r1")), Accepted(loss=True, jumps=True), r1=rows(), r2=rows())
    assert done.outcome == "refused"
    assert one(done).refused == ("no usable offer came from its 2 regions",)
    assert offers(done) == [stale(last_night("r1")[0])]


@pytest.mark.parametrize("factor", [0.1, 10])
def test_a_price_that_leapt_is_set_aside(factor: float) -> None:
    micros = 9_600_000 if factor < 1 else 960_000_000
    before = current_rows(*offers_alike(200, observed_at=LAST_NIGHT))
    done = refreshed(before, r1=rows(*offers_alike(199), price("r1", zone="z199", usd_micros=micros)))
    assert (done.outcome, one(done).unconfirmed) == ("partial", 1)
    assert offers(done)[-1] == stale(offers_alike(200, observed_at=LAST_NIGHT)[-1])
    assert one(done).sifted.aside[0].reason.startswith(f"moved from 96 to {micros / 1e6:g} USD/h")


def test_too_many_prices_that_leapt_refuse_the_cloud_unless_they_are_accepted() -> None:
    before = current_rows(*offers_alike(100, observed_at=LAST_NIGHT))
    answer = rows(*offers_alike(97), *(price("r1", zone=f"z{i:03}", usd_micros=9_600_000) for i in (97, 98, 99)))
    done = refreshed(before, r1=answer)
    assert one(done).refused == ("3 of 100 prices moved by 10x or more; --accept-jumps takes them",)
    assert offers(done) == [stale(item) for item in offers_alike(100, observed_at=LAST_NIGHT)]


@pytest.mark.parametrize(
    ("leapt", "compared", "refused"),
    [(1, 1, True), (1, 2, False), (2, 3, True), (2, 100, False), (3, 299, True), (3, 300, False)],
)
def test_few_leaps_refuse_a_small_cloud_only_where_they_are_most_of_it(
    leapt: int, compared: int, *, refused: bool
) -> None:
    before = current_rows(*offers_alike(compared, observed_at=LAST_NIGHT))
    fallen = [replace(item, usd_micros_per_hour=9_600_000) for item in offers_alike(compared)[:leapt]]
    done = refreshed(before, r1=rows(*fallen, *offers_alike(compared)[leapt:]))
    assert (done.outcome == "refused") == refused
    if not refused:
        assert one(done).unconfirmed == leapt


def test_prices_that_are_missing_without_a_word_make_a_refresh_partial_once() -> None:
    [spot] = last_night("r1", price_kind="spot")
    done = refreshed(current_rows(*last_night("r1"), spot), r1=rows(price("r1"), whole=["on_demand"]))
    assert (done.outcome, one(done).unconfirmed) == ("partial", 1)
    again = CurrentRows(snapshot=done.snapshot, embedded=None, read_at=NIGHTS)
    assert refreshed(again, r1=rows(price("r1"), whole=["on_demand"])).outcome == "whole"


def test_prices_of_a_release_that_nobody_can_confirm_leave_a_refresh_whole() -> None:
    [spot] = last_night("r1", price_kind="spot", observed_at=SHIPPED_AT, source="shipped")
    done = refreshed(current_rows(*last_night("r1"), spot), r1=rows(price("r1"), whole=["on_demand"]))
    assert (done.outcome, offers(done)) == ("whole", [price("r1"), stale(spot)])


def test_rows_of_an_embedded_snapshot_that_was_dropped_are_still_nobodys_live_reading() -> None:
    old = offers_alike(10, observed_at=SHIPPED_AT, source="shipped with an older release", stale_since=LAST_NIGHT)
    before = CurrentRows(snapshot=snapshot(*old), embedded=None, read_at=NIGHTS)
    assert refreshed(before, r1=rows(*offers_alike(4))).outcome == "whole"


def test_a_true_fall_of_all_prices_is_taken_when_accepted() -> None:
    before = current_rows(*offers_alike(20, observed_at=LAST_NIGHT))
    fallen = offers_alike(20, usd_micros=9_600_000)
    assert refreshed(before, r1=rows(*fallen)).outcome == "refused"
    done = refreshed(before, Accepted(jumps=True), r1=rows(*fallen))
    assert (done.outcome, offers(done)) == ("whole", fallen)


def test_a_leap_against_a_row_that_came_with_a_release_is_no_leap() -> None:
    shipped = snapshot(*offers_alike(1, observed_at=SHIPPED_AT, source="shipped", price_kind="spot"), price("r1"))
    before = CurrentRows(snapshot=shipped, embedded=shipped, read_at=NIGHTS)
    cheap = offers_alike(1, usd_micros=8_000_000, price_kind="spot")
    assert refreshed(before, r1=rows(*cheap, price("r1"))).outcome == "whole"


def test_what_most_regions_say_of_a_machine_counts() -> None:
    odd = machine(vcpus=96.0)
    usual = machine(vcpus=192.0)
    answers = {
        "r1": Rows(instance_types=(odd,), offers=(price("r1"),)),
        "r2": Rows(instance_types=(usual,), offers=(price("r2"),)),
        "r3": Rows(instance_types=(usual,), offers=(price("r3"),)),
    }
    done = refreshed(current_rows(*last_night("r1")), named=answers)
    assert one(done).sifted.types[H100_MACHINE] == usual
    assert one(done).sifted.notes == ("regions describe p5.48xlarge differently; most of them count",)


def test_a_machine_that_is_as_before_keeps_its_row() -> None:
    before = current_rows(*last_night("r1"))
    again = Rows(instance_types=(machine(source="elsewhere", as_of="2026-11-21"),), offers=(price(),))
    assert machine() in refreshed(before, r1=again).snapshot.instance_types


def test_a_machine_that_nobody_offers_goes_unless_it_came_with_a_release() -> None:
    shipped = snapshot(price("r9", name="p4d.24xlarge", observed_at=SHIPPED_AT, source="shipped"))
    kinds = [machine("p4d.24xlarge"), machine("g6.xlarge")]
    before = current_rows(*last_night("r1"), embedded=shipped, kinds=kinds)
    done = refreshed(before, r1=rows(price()))
    assert [instance_type.name for instance_type in done.snapshot.instance_types] == ["p4d.24xlarge", H100_MACHINE]


def test_a_local_zone_that_is_priced_as_a_region_follows_its_parent() -> None:
    zone = last_night("us-west-2-lax-1")
    current = last_night("us-west-2")
    before = current_rows(*current, *zone)
    done = refreshed(before, named={"us-west-2": ProviderFailure("down"), "us-east-1": rows(price("us-east-1"))})
    assert offers(done) == [price("us-east-1"), stale(current[0]), stale(zone[0])]
    both = rows(price("us-west-2"), price("us-west-2-lax-1"))
    assert offers(refreshed(before, named={"us-west-2": both})) == [price("us-west-2"), price("us-west-2-lax-1")]
