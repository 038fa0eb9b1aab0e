"""Keys, sessions, quotas and the audit log in the store, on both databases."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from alembic import command

from gpuplan.catalog.store.access_store import AuditRecord, Charge, QuotaExceeded, StoredKey, StoredSession
from gpuplan.catalog.store.retention import RetentionPolicy
from gpuplan.catalog.store.schema_upgrade import alembic_config
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.catalog.store.store import Store

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)


def recorded(action: str = "plan", *, identity: str = "key:1", at: datetime = NOW, subject: str = "p") -> AuditRecord:
    return AuditRecord(
        at=at,
        identity=identity,
        name=f"name of {identity}",
        via="key",
        action=action,
        subject=subject,
        outcome="planned",
        request_id="r",
        address="127.0.0.1",
    )


def key(key_id: str = "k", **extra: object) -> StoredKey:
    usual = {"id": key_id, "name": "ci", "secret_hash": "0" * 64, "scopes": ("plan",), "created_at": NOW}
    return StoredKey(**usual | {"created_by": "root"} | extra)  # type: ignore[arg-type]


def test_a_key_holds_until_it_expires_or_is_revoked(store: Store) -> None:
    access = store.access
    assert not access.has_valid_key(NOW)
    access.add_key(key(expires_at=NOW + timedelta(hours=1)), recorded("key.create"))
    assert access.find_key("k") == key(expires_at=NOW + timedelta(hours=1))
    assert access.has_valid_key(NOW)
    assert not access.has_valid_key(NOW + timedelta(hours=1))
    revoked = access.revoke_key("k", NOW, recorded("key.revoke"))
    assert revoked.revoked_at == NOW
    assert access.revoke_key("k", NOW + timedelta(days=1), recorded("key.revoke")).revoked_at == NOW
    assert access.rotate_key("k", "1" * 64, recorded("key.rotate")).secret_hash == "0" * 64
    assert not access.has_valid_key(NOW)
    with pytest.raises(NotStored):
        access.revoke_key("none", NOW, recorded("key.revoke"))
    assert [item.record.subject for item in access.audit()] == ["p"] * 4


def test_a_use_is_noted_once_a_minute(store: Store) -> None:
    store.access.add_key(key(), recorded("key.create"))
    for seconds in (0, 59, 60, 61, 130):
        store.access.note_use("k", NOW + timedelta(seconds=seconds))
    assert store.access.key("k").last_used_at == NOW + timedelta(seconds=130)
    store.access.note_use("k", NOW + timedelta(seconds=140))
    assert store.access.key("k").last_used_at == NOW + timedelta(seconds=130)


def test_sessions_that_have_expired_go_with_the_next_one(store: Store) -> None:
    def session(name: str, at: datetime) -> StoredSession:
        until = at + timedelta(hours=1)
        return StoredSession(id=name, secret_hash="s", key_id="k", key_hash="h", created_at=at, expires_at=until)

    first, later = session("first", NOW), session("later", NOW + timedelta(hours=2))
    store.access.open_session(first, recorded("login"))
    assert store.access.find_session("first") == first
    store.access.open_session(later, recorded("login"))
    assert store.access.find_session("first") is None
    store.access.end_session("later", recorded("logout"))
    assert store.access.find_session("later") is None


def test_a_plan_over_the_quota_is_neither_saved_nor_recorded(store: Store) -> None:
    def save(name: str, at: datetime, limit: int | None = 2) -> None:
        charge = Charge(record=recorded(at=at, subject=name), limit=limit)
        store.save_plan(name, "s", {}, {"outcome": "planned"}, at, charge=charge)

    save("one", NOW)
    save("two", NOW)
    with pytest.raises(QuotaExceeded, match="2 plans a day"):
        save("three", NOW)
    with pytest.raises(NotStored):
        store.plan("three")
    assert [item.record.subject for item in store.access.audit()] == ["two", "one"]
    assert store.access.used("key:1", NOW.date()) == 2
    save("tomorrow", NOW + timedelta(days=1))
    save("without end", NOW, limit=None)
    assert store.access.used("key:1", NOW.date()) == 3


def test_the_log_is_read_by_time_by_who_and_in_pages(store: Store) -> None:
    for number in range(6):
        at, identity = NOW + timedelta(minutes=number), f"key:{number % 2}"
        store.access.record(recorded(at=at, identity=identity, subject=str(number)))

    def subjects(**wanted: object) -> list[str]:
        return [item.record.subject for item in store.access.audit(**wanted)]  # type: ignore[arg-type]

    assert subjects() == ["5", "4", "3", "2", "1", "0"]
    assert subjects(since=NOW + timedelta(minutes=4)) == ["5", "4"]
    assert subjects(identity="key:1") == subjects(identity="name of key:1") == ["5", "3", "1"]
    first = store.access.audit(limit=4)
    assert subjects(before=first[-1].number) == ["1", "0"]


def test_retention_lets_old_records_and_counts_go(store: Store) -> None:
    old = NOW - timedelta(days=50)
    store.access.charge(Charge(record=recorded(at=old)))
    store.access.charge(Charge(record=recorded()))
    forgotten = store.retain(RetentionPolicy(audit_days=40), NOW)
    assert forgotten.audit == 1
    assert len(store.access.audit()) == 1
    assert store.access.used("key:1", old.date()) == 0
    assert store.access.used("key:1", NOW.date()) == 1
    assert store.retain(RetentionPolicy(audit_days=None), NOW + timedelta(days=9999)).audit == 0


def test_the_tables_come_and_go_with_their_revision(url: str, open_store: Callable[[str], Store]) -> None:
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    tables = {"api_keys", "sessions", "quota_use", "audit"}
    with engine.begin() as connection:
        command.upgrade(alembic_config(connection), "0004")
        connection.exec_driver_sql(
            "INSERT INTO plans (id, snapshot_id, job, outcome, created_at) VALUES ('p', 's', '{}', '{}', 0)"
        )
        command.upgrade(alembic_config(connection), "0005")
        assert tables <= set(sa.inspect(connection).get_table_names())
        command.downgrade(alembic_config(connection), "0004")
        assert not tables & set(sa.inspect(connection).get_table_names())
    engine.dispose()
    store = open_store(url)
    assert store.plan("p").snapshot_id == "s"
    store.access.add_key(key(), recorded("key.create"))
    assert store.access.key("k").name == "ci"
