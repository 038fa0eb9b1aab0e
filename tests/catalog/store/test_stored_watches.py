"""What was last told and what tells it move together, on either database; a message has one sender at a time."""

from dataclasses import replace
from datetime import timedelta

import pytest

from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.catalog.store.store import Store
from gpuplan.catalog.store.watch_store import Notification, Watch
from tests.catalog.snapshots_for_tests import NIGHT

WATCH = Watch(
    id="watch-1",
    name="nächtlich",
    job={"name": "j", "deadline": 36.0},
    channels=("ops", "team"),
    threshold_percent=12.5,
    created_at=NIGHT,
    last_told={"outcome": "planned", "cost_usd": "3.79"},
)
NOTE = Notification(
    id="note-1",
    watch_id="watch-1",
    telling=1,
    snapshot_id="s",
    channel="ops",
    event="cheaper",
    payload={"data": {"summary": "cheaper"}},
    created_at=NIGHT,
)
NOW = {"outcome": "planned", "cost_usd": "2.00"}


def test_a_watch_comes_back_as_it_was_given_and_is_kept_once(store: Store) -> None:
    watching = store.watching
    assert watching.save(WATCH) == WATCH
    assert watching.save(replace(WATCH, created_at=NIGHT + timedelta(hours=1))) == WATCH
    earlier = watching.save(replace(WATCH, id="watch-0", created_at=NIGHT - timedelta(hours=1)))
    assert watching.every() == (earlier, WATCH)
    assert watching.count() == 2
    assert watching.one("watch-1") == (WATCH, ())


def test_what_was_told_moves_with_its_notifications_and_only_once(store: Store) -> None:
    watching = store.watching
    watching.save(WATCH)
    both = (NOTE, replace(NOTE, id="note-2", channel="team"))
    assert watching.tell(WATCH, NOW, both) is True
    assert watching.tell(WATCH, {"outcome": "infeasible"}, [replace(NOTE, id="note-3", channel="x")]) is False
    moved, message = watching.one("watch-1")
    assert (moved.last_told, moved.tellings, moved.ended_at) == (NOW, 1, None)
    assert message == both
    assert watching.waiting() == both


def test_a_watch_that_was_removed_or_saved_anew_is_not_told_of(store: Store) -> None:
    watching = store.watching
    watching.save(WATCH)
    watching.forget("watch-1")
    assert watching.tell(WATCH, NOW, [NOTE]) is False
    anew = watching.save(replace(WATCH, created_at=NIGHT + timedelta(seconds=1)))
    assert watching.tell(WATCH, NOW, [NOTE]) is False
    assert watching.one("watch-1") == (anew, ())


def test_a_watch_that_is_over_says_since_when(store: Store) -> None:
    store.watching.save(WATCH)
    store.watching.tell(WATCH, NOW, [], ended_at=NIGHT)
    assert store.watching.one("watch-1")[0].ended_at == NIGHT


def test_every_watch_remembers_its_last_check_and_its_problem(store: Store) -> None:
    watching = store.watching
    watching.save(WATCH)
    watching.save(replace(WATCH, id="watch-2"))
    watching.mark_checked([("watch-1", ""), ("watch-2", "no such region")], NIGHT)
    watching.mark_checked([], NIGHT + timedelta(days=1))
    assert [(item.checked_at, item.problem) for item in watching.every()] == [(NIGHT, ""), (NIGHT, "no such region")]


def test_a_message_is_held_by_one_sender_until_it_lets_go_or_its_time_is_over(store: Store) -> None:
    watching = store.watching
    watching.save(WATCH)
    watching.tell(WATCH, NOW, [NOTE])
    later = NIGHT + timedelta(minutes=5)
    assert watching.hold("note-1", NIGHT, later) is True
    assert watching.hold("note-1", NIGHT + timedelta(minutes=4), later) is False
    assert watching.hold("note-1", later, later + timedelta(minutes=5)) is True
    watching.settle("note-1", attempts=3, error="HTTP 500")
    assert watching.hold("note-1", NIGHT, later) is True
    watching.settle("note-1", attempts=1, delivered_at=later)
    assert watching.hold("note-1", later, later) is False
    [note] = watching.one("watch-1")[1]
    assert (note.attempts, note.delivered_at, note.last_error, note.held_until) == (4, later, "", None)
    assert watching.waiting() == ()


def test_a_note_on_a_message_changes_none_that_is_held_delivered_or_given_up(store: Store) -> None:
    watching = store.watching
    watching.save(WATCH)
    notes = [replace(NOTE, id=f"note-{i}", channel=f"c{i}") for i in range(4)]
    watching.tell(WATCH, NOW, notes)
    watching.hold("note-1", NIGHT, NIGHT + timedelta(minutes=5))
    watching.settle("note-2", attempts=1, delivered_at=NIGHT)
    watching.settle("note-3", attempts=1, error="HTTP 404", given_up_at=NIGHT)
    for note in notes:
        watching.note(note.id, "down")
    message = {item.id: item.last_error for item in watching.one("watch-1")[1]}
    assert message == {"note-0": "down", "note-1": "", "note-2": "", "note-3": "HTTP 404"}
    assert [item.id for item in watching.waiting()] == ["note-0", "note-1"]


def test_a_removed_watch_is_gone_with_all_it_had_to_say(store: Store) -> None:
    watching = store.watching
    watching.save(WATCH)
    watching.tell(WATCH, NOW, [NOTE])
    watching.forget("watch-1")
    assert (watching.every(), watching.waiting()) == ((), ())
    for act in (watching.forget, watching.one):
        with pytest.raises(NotStored, match="no watch 'watch-1' is stored here"):
            act("watch-1")
