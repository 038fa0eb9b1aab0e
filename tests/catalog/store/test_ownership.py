"""Whose a stored object is: its makers', everybody's without one, and a reader's for as long as a link holds; in both databases."""

from datetime import timedelta

import pytest

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.access_store import AuditRecord
from gpuplan.catalog.store.ownership import UNRESTRICTED, NotOwned, Viewer
from gpuplan.catalog.store.retention import RetentionPolicy
from gpuplan.catalog.store.run_store import Run
from gpuplan.catalog.store.share_store import Share
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.catalog.store.store import Store
from tests.catalog.snapshots_for_tests import NIGHT, many_offers

ANN, BOB = Viewer("key:ann"), Viewer("key:bob")
NOTED = AuditRecord(
    at=NIGHT,
    identity="key:ann",
    name="ann",
    via="key",
    action="share",
    subject="",
    outcome="done",
    request_id="",
    address="",
)


def plan(store: Store, plan_id: str, *owners: str | None) -> None:
    store.save_plan(plan_id, "s", {}, {"outcome": "planned"}, NIGHT, owners=owners)


def sees(store: Store, plan_id: str, viewer: Viewer) -> bool:
    try:
        store.plan(plan_id, viewer)
    except NotStored:
        return False
    return True


def shared(store: Store, kind: str, object_id: str, share_id: str = "0f1e2d3c4b5a", by: Viewer = ANN) -> None:
    share = Share(
        id=share_id,
        secret_hash="0" * 64,
        kind=kind,  # type: ignore[arg-type]
        object_id=object_id,
        created_by="ann",
        created_at=NIGHT,
    )
    store.shares.add(share, by, NOTED)


def test_an_object_is_its_makers_and_not_there_for_others(store: Store) -> None:
    plan(store, "p", "key:ann")
    assert [sees(store, "p", item) for item in (ANN, BOB, UNRESTRICTED)] == [True, False, True]
    with pytest.raises(NotStored) as hidden:
        store.plan("p", BOB)
    with pytest.raises(NotStored) as missing:
        store.plan("q", BOB)
    assert str(hidden.value).replace("'p'", "'q'") == str(missing.value)


def test_whoever_makes_the_same_again_owns_it_too(store: Store) -> None:
    plan(store, "p", "key:ann")
    plan(store, "p", "key:bob")
    plan(store, "p", "key:bob")
    assert [sees(store, "p", item) for item in (ANN, BOB, Viewer("key:cid"))] == [True, True, False]


def test_what_was_everybodys_stays_so_whoever_makes_it_again(store: Store) -> None:
    plan(store, "old", None)
    plan(store, "old", "key:ann")
    assert sees(store, "old", BOB)
    plan(store, "p", "key:ann")
    plan(store, "p", None)  # where no keys are in force
    assert sees(store, "p", BOB)


def test_a_link_lets_its_readers_read_and_nobody_change_until_it_is_revoked(store: Store) -> None:
    run = Run(id="r", kind="portfolio", status="running", request={}, created_at=NIGHT, beat_at=NIGHT)
    store.runs.add(run, owner="key:ann")
    shared(store, "run", "r")
    with pytest.raises(NotStored):
        store.runs.one("r", NIGHT, BOB)
    store.shares.add_reader("0f1e2d3c4b5a", "key:bob", NOTED)
    assert store.runs.one("r", NIGHT, BOB).status == "running"
    with pytest.raises(NotOwned, match="belongs to another identity"):
        store.runs.ask_cancel("r", BOB)
    with pytest.raises(NotOwned):
        shared(store, "run", "r", "000000000000", by=BOB)
    assert not store.runs.one("r", NIGHT).cancel_asked
    with pytest.raises(NotStored):
        store.shares.revoke("0f1e2d3c4b5a", NIGHT, BOB, NOTED)
    assert store.shares.of(BOB) == ()
    assert [item.object_id for item in store.shares.of(ANN)] == ["r"]
    assert store.shares.revoke("0f1e2d3c4b5a", NIGHT, ANN, NOTED).revoked_at == NIGHT
    with pytest.raises(NotStored):
        store.runs.one("r", NIGHT, BOB)
    store.shares.add_reader("0f1e2d3c4b5a", "key:bob", NOTED)  # as one who was about to when it was revoked
    with pytest.raises(NotStored):
        store.runs.one("r", NIGHT, BOB)
    store.runs.ask_cancel("r", ANN)
    assert store.runs.one("r", NIGHT).cancel_asked


def test_an_object_without_an_owner_is_read_by_everybody_and_changed_by_admins_alone(store: Store) -> None:
    run = Run(id="r", kind="portfolio", status="running", request={}, created_at=NIGHT, beat_at=NIGHT)
    store.runs.add(run)
    assert store.runs.one("r", NIGHT, BOB).id == "r"
    with pytest.raises(NotOwned):
        store.runs.ask_cancel("r", BOB)
    store.runs.ask_cancel("r", UNRESTRICTED)
    assert store.runs.one("r", NIGHT).cancel_asked


def test_a_link_of_one_kind_opens_nothing_of_another(store: Store) -> None:
    plan(store, "same", "key:ann")
    run = Run(id="same", kind="buy", status="done", request={}, created_at=NIGHT, beat_at=NIGHT)
    store.runs.add(run, owner="key:cid")
    shared(store, "plan", "same")
    store.shares.add_reader("0f1e2d3c4b5a", "key:bob", NOTED)
    assert sees(store, "same", BOB)
    with pytest.raises(UnusableInput):
        store.runs.one("same", NIGHT, BOB)


def test_what_is_forgotten_takes_its_owners_and_links_along(store: Store) -> None:
    store.put_snapshot(many_offers(3), source="refresh")
    plan(store, "p", "key:ann")
    shared(store, "plan", "p")
    store.shares.add_reader("0f1e2d3c4b5a", "key:bob", NOTED)
    store.retain(RetentionPolicy(plans_days=1), NIGHT + timedelta(days=9))
    assert not sees(store, "p", UNRESTRICTED)
    with store.engine.connect() as connection:
        left = [
            connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()
            for table in ("object_owners", "shares", "share_readers")
        ]
    assert left == [0, 0, 0]
