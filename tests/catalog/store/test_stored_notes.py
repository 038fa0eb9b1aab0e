"""Notes on plans in every database: one per identity, changed on the newest version only, and gone with their plan."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from gpuplan.catalog.store.plan_store import PlanNote
from gpuplan.catalog.store.retention import RetentionPolicy
from gpuplan.catalog.store.store import Store

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
NOTE = PlanNote(plan_id="plan-1", identity="key:ann", note="é", version=1, changed_at=NOW)


def test_a_note_builds_on_the_newest_version_and_goes_with_its_plan(
    url: str, open_store: Callable[[str], Store]
) -> None:
    store = open_store(url)
    store.save_plan("plan-1", "snapshot", {}, {"outcome": "planned"}, NOW)
    assert store.note("plan-1", "key:ann") is None
    assert store.save_note(NOTE)
    assert not store.save_note(replace(NOTE, note="of another tab"))
    assert store.save_note(replace(NOTE, note="second", version=2))
    assert not store.save_note(replace(NOTE, note="of another tab", version=2))
    assert store.save_note(replace(NOTE, identity="", note="")), "of another identity"
    assert store.note("plan-1", "key:ann") == replace(NOTE, note="second", version=2)
    assert store.noted_plans("key:ann") == {"plan-1": "second"}
    assert store.noted_plans("") == {}
    store.retain(RetentionPolicy(plans_days=1), NOW + timedelta(days=2))
    assert store.note("plan-1", "key:ann") is None
