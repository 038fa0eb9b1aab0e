"""What may be forgotten is, and every snapshot that is kept still reads as it was."""

import shutil
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.model.capacity_answers import CapacityAnswer
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.snapshots.snapshot import Snapshot, snapshot_of
from gpuplan.catalog.store.plan_store import Actual
from gpuplan.catalog.store.retention import RetentionPolicy
from gpuplan.catalog.store.schema import idempotency_keys, instance_types, offers, prices, readings, refreshes
from gpuplan.catalog.store.store import NotStored, Store
from tests.catalog.snapshots_for_tests import NIGHT, TYPES, many_offers, offer
from tests.catalog.store.test_price_history import series

#: A Sunday; 2026-11-02 begins the next week.
NOW = NIGHT + timedelta(days=60)
POLICY = RetentionPolicy(every_snapshot_days=20, weekly_snapshot_days=40, plans_days=30)


def nightly(store: Store, days: Iterable[int]) -> list[Snapshot]:
    """A refresh on each of these days before now, none like the other, as they were written."""
    result = []
    for i, days_ago in enumerate(days):
        seen = NOW - timedelta(days=days_ago)
        result.append(many_offers(20, {i % 20: 5_000_000 + i}, observed_at=seen))
        store.put_snapshot(result[-1], source="refresh")
    return result


def stored_ids(store: Store) -> list[str]:
    return [snapshot.id for snapshot in reversed(store.snapshots())]


def rows(store: Store, table: sa.Table) -> int:
    with store.engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def save_plan(store: Store, plan_id: str, snapshot_id: str, *, days_ago: float) -> None:
    store.save_plan(plan_id, snapshot_id, {}, {"outcome": "planned"}, NOW - timedelta(days=days_ago))


def test_snapshots_past_the_first_bound_are_thinned_to_the_first_of_each_week_and_past_the_second_dropped(
    store: Store,
) -> None:
    written = nightly(store, range(59, -1, -1))
    forgotten = store.retain(POLICY, NOW)
    ages = [(NOW - item.observed_at).days for item in written if item.id in stored_ids(store)]
    assert [age for age in ages if age <= 20] == list(range(20, -1, -1))
    old = [NOW - timedelta(days=age) for age in ages if age > 20]
    weeks = [day.isocalendar()[:2] for day in old]
    assert len(weeks) == len(set(weeks)) == 3
    assert all((NOW - day).days <= 40 for day in old)
    assert forgotten.snapshots == 60 - len(ages)
    assert {store.snapshot(item.id) == item for item in written if item.id in stored_ids(store)} == {True}


def test_rows_that_no_kept_snapshot_has_are_deleted(store: Store) -> None:
    first = [offer(1, region="gone", observed_at=NOW - timedelta(days=50)), offer(2)]
    store.put_snapshot(snapshot_of(TYPES, first), source="refresh")
    store.put_snapshot(snapshot_of(TYPES[:1], [offer(3, observed_at=NOW)]), source="refresh")
    forgotten = store.retain(POLICY, NOW)
    assert (forgotten.snapshots, forgotten.prices) == (1, 2)
    assert [rows(store, price) for price in (prices, readings, instance_types, offers)] == [1, 1, 1, 1]


def test_asked_again_it_finds_nothing_more_to_forget(store: Store) -> None:
    nightly(store, range(59, -1, -1))
    store.retain(POLICY, NOW)
    before = stored_ids(store)
    assert store.retain(POLICY, NOW).snapshots == 0
    assert stored_ids(store) == before


def test_run_night_by_night_it_keeps_a_snapshot_of_every_week(store: Store) -> None:
    seen = []
    for day in range(50, -1, -1):
        now = NOW - timedelta(days=day)
        seen.append(many_offers(5, {0: 5_000_000 + day}, observed_at=now))
        store.put_snapshot(seen[-1], source="refresh")
        store.retain(RetentionPolicy(every_snapshot_days=10, weekly_snapshot_days=None), now)
    weeks = {snapshot.observed_at.isocalendar()[:2] for snapshot in store.snapshots()}
    assert weeks == {item.observed_at.isocalendar()[:2] for item in seen}
    assert len(store.snapshots()) == 11 + len({item.observed_at.isocalendar()[:2] for item in seen[:-11]})


def test_the_current_snapshot_and_the_embedded_one_stay_however_old(store: Store) -> None:
    store.ensure_embedded()
    last = nightly(store, [3000, 2999])[-1]
    store.retain(POLICY, NOW + timedelta(days=10_000))
    assert store.current_snapshot_id() in stored_ids(store)
    assert {snapshot.source for snapshot in store.snapshots()} >= {"embedded"}
    assert last.id in stored_ids(store)


def test_the_snapshot_of_a_kept_plan_stays_and_can_be_planned_on(store: Store) -> None:
    written = nightly(store, range(59, -1, -1))
    named, nameless = written[1], written[2]
    save_plan(store, "plan-1", named.id, days_ago=1)
    store.columns(nameless.id)
    store.retain(POLICY, NOW)
    assert store.snapshot(named.id) == named
    assert len(store.columns(named.id)) == len(named.offers)
    with pytest.raises(NotStored, match=f"no snapshot '{nameless.id}'; nearest: "):
        store.columns(nameless.id)


def test_old_plans_go_unless_a_run_reported_on_them_or_a_watch_follows_them(store: Store) -> None:
    [stored] = nightly(store, [0])
    followed = "plan-0123456789abcdef0123"
    for name in ("plan-old", "plan-ran", followed):
        save_plan(store, name, stored.id, days_ago=31)
    save_plan(store, "plan-new", stored.id, days_ago=29)
    store.save_actual(_actual("plan-ran"))
    _watch(store, {"plan": {"id": followed}})
    assert store.retain(POLICY, NOW).plans == 1
    for name in ("plan-ran", "plan-new", followed):
        assert store.plan(name).id == name
    with pytest.raises(NotStored):
        store.plan("plan-old")


def test_a_snapshot_that_a_watch_was_last_told_of_stays(store: Store) -> None:
    written = nightly(store, range(59, -1, -1))
    _watch(store, {"plan": {"id": "plan-0123456789abcdef0123", "snapshot_id": written[1].id}})
    store.retain(POLICY, NOW)
    assert store.snapshot(written[1].id) == written[1]


def test_responses_past_their_day_and_old_reports_of_refreshes_go(store: Store) -> None:
    nightly(store, [0])
    with store.engine.begin() as connection:
        for key, age in (("old", 25), ("new", 23)):
            row = {"scope": "plans", "key": key, "request_hash": "", "response": "{}"}
            connection.execute(sa.insert(idempotency_keys), row | {"created_at": NOW - timedelta(hours=age)})
        for name, days in (("old", 41), ("new", 39)):
            at = NOW - timedelta(days=days)
            report = {"id": name, "started_at": at, "finished_at": at, "outcome": "failed", "report": "{}"}
            connection.execute(sa.insert(refreshes), report)
    forgotten = store.retain(POLICY, NOW)
    assert (forgotten.idempotency_keys, forgotten.refreshes) == (1, 1)
    assert (rows(store, idempotency_keys), rows(store, refreshes)) == (1, 1)


def test_nothing_is_forgotten_where_the_policy_says_for_ever(store: Store) -> None:
    written = nightly(store, range(59, -1, -5))
    save_plan(store, "plan-old", written[0].id, days_ago=5000)
    forever = RetentionPolicy(every_snapshot_days=None, weekly_snapshot_days=None, plans_days=None)
    assert store.retain(forever, NOW).snapshots == 0
    assert stored_ids(store) == [item.id for item in written]
    assert store.plan("plan-old").snapshot_id == written[0].id


def test_an_empty_store_has_nothing_to_forget(store: Store) -> None:
    assert store.retain(POLICY, NOW).snapshots == 0


def test_a_night_after_is_written_as_if_nothing_had_been_forgotten(store: Store) -> None:
    written = nightly(store, range(59, -1, -1))
    store.retain(POLICY, NOW)
    before = rows(store, prices)
    following = many_offers(20, {3: 9_000_000, 19: 5_000_000 + 59}, observed_at=NOW + timedelta(days=1))
    store.put_snapshot(following, source="refresh")
    assert store.snapshot(following.id) == following
    assert store.snapshot(written[-1].id) == written[-1]
    assert rows(store, prices) - before <= 2
    assert store.find_snapshot(following.id).parent == written[-1].id


OFFERS = st.builds(
    offer,
    st.integers(1, 3),
    region=st.sampled_from(["us-east-1", "eu-west-1"]),
    zone=st.sampled_from(["", "a"]),
    price_kind=st.sampled_from(["on_demand", "spot"]),
    stale_since=st.sampled_from([None, NIGHT]),
    interruptions_per_hour=st.sampled_from([None, 0.5]),
    source=st.sampled_from(["", "somewhere"]),
)
NIGHTS = st.lists(
    st.tuples(st.lists(OFFERS, max_size=6, unique_by=lambda item: item.key), st.integers(1, 9), st.booleans()),
    min_size=1,
    max_size=9,
)


@pytest.mark.slow(reason="one long case")
@settings(max_examples=12, deadline=None)
@given(NIGHTS, st.integers(0, 20), st.integers(0, 40), st.integers(0, 8))
def test_whatever_is_forgotten_every_kept_snapshot_and_its_history_read_as_before(
    empty_store: Path, nights: list[tuple[list[Offer], int, bool]], every: int, weekly_days: int, named: int
) -> None:
    policy = RetentionPolicy(every_snapshot_days=every, weekly_snapshot_days=every + weekly_days, plans_days=None)
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(f"sqlite:///{shutil.copy(empty_store, folder)}")
        now, written = NIGHT, {}
        for rows_of_night, days, again in nights:
            now += timedelta(days=days)
            seen = offer(1, region="read every night", observed_at=now)
            made = snapshot_of(TYPES[: 1 + len(rows_of_night) % 2], [*rows_of_night, seen])
            written[store.put_snapshot(made, source="refresh")] = made
            if again:
                store.retain(policy, now)
        wanted = list(written)[named % len(written)]
        if wanted in stored_ids(store):
            store.save_plan("plan-1", wanted, {}, {}, now)
        store.retain(policy, now)
        stored = store.snapshots()
        for item in stored:
            assert store.snapshot(item.id) == written[item.id]
        line = [written[snapshot_id] for snapshot_id in stored_ids(store)]
        assert [snapshot.parent for snapshot in reversed(stored)] == [None, *stored_ids(store)[:-1]]
        _assert_history_reads_as_written(store, line)
        store.close()


def _assert_history_reads_as_written(store: Store, line: list[Snapshot]) -> None:
    """The history and the diffs are those of the kept snapshots, and no row is left that none of them has."""
    points = store.price_points("p5.48xlarge", line[-1].id)
    assert [(point.key, point.usd_micros_per_hour, point.since, point.until) for point in points] == [
        sery[:4] for sery in series(line)
    ]
    seqs = [snapshot.seq for snapshot in store.snapshots()]
    for table in (prices, readings, instance_types):
        with store.engine.connect() as connection:
            spans = connection.execute(sa.select(table.c.first_seq, table.c.last_seq)).all()
        assert all(any(first <= seq <= last for seq in seqs) for first, last in spans)
    assert rows(store, offers) == len({offer.key for snapshot in line for offer in snapshot.offers})


def _actual(plan_id: str) -> Actual:
    figures: dict[str, Any] = {"hours": 1.0, "throughput": None, "peak_memory_gib": None, "preemptions": None}
    return Actual(
        id="actual-1",
        plan_id=plan_id,
        task="t",
        accelerator="a",
        reported_at=datetime(2026, 1, 1, tzinfo=UTC),
        reported_by="me",
        running=False,
        share_done=1.0,
        expected={},
        **figures,
    )


def _watch(store: Store, last_told: dict[str, Any]) -> None:
    from gpuplan.catalog.store.watch_store import Watch, write_watch

    watch = Watch(
        id="watch-1", name="w", job={}, channels=(), threshold_percent=10.0, created_at=NIGHT, last_told=last_told
    )
    with store.engine.begin() as connection:
        write_watch(connection, watch)


def test_capacity_answers_stay_as_long_as_reports_of_refreshes(store: Store) -> None:
    policy = RetentionPolicy(weekly_snapshot_days=10)
    young, old = (answer_asked_at(NOW - timedelta(days=days)) for days in (9, 11))
    store.capacity.write([young, old])
    store.retain(policy, NOW)
    assert store.capacity.since(NOW - timedelta(days=100)) == (young,)


def answer_asked_at(asked_at: datetime) -> CapacityAnswer:
    return CapacityAnswer(
        provider="aws",
        region="us-east-1",
        zone="use1-az1",
        instance_type="p5.48xlarge",
        nodes=2,
        price_kind="spot",
        probability=0.65,
        published="7",
        asked_at=asked_at,
        source="test",
    )
