"""A clock that is set makes no run of a living process look dead, and no dead one alive for ever."""

from datetime import timedelta

import pytest

from gpuplan.catalog.runtime.monotonic_clocks import ForwardClock, SteadyClock
from gpuplan.catalog.store.run_store import SILENCE, Run, queued_run
from gpuplan.catalog.store.store import Store
from tests.catalog.snapshots_for_tests import NIGHT


class Clocks:
    """The wall clock and the monotonic one, set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.steady = NIGHT.timestamp(), 1000.0
        monkeypatch.setattr("gpuplan.catalog.runtime.monotonic_clocks.time.time", lambda: self.wall)
        monkeypatch.setattr("gpuplan.catalog.runtime.monotonic_clocks.time.monotonic", lambda: self.steady)

    def passes(self, span: timedelta) -> None:
        self.wall += span.total_seconds()
        self.steady += span.total_seconds()

    def is_set(self, span: timedelta) -> None:
        self.wall += span.total_seconds()


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


@pytest.mark.parametrize("hours", [1, -1, 10_000])
def test_it_is_unsettled_for_a_while_after_the_clock_was_set(clocks: Clocks, hours: int) -> None:
    clock = SteadyClock()
    assert clock.settled(SILENCE)
    clocks.is_set(timedelta(hours=hours))
    assert not clock.settled(SILENCE)
    clocks.passes(SILENCE - timedelta(seconds=1))
    assert not clock.settled(SILENCE)
    clocks.passes(timedelta(seconds=2))
    assert clock.settled(SILENCE)


def test_time_that_passes_evenly_leaves_it_settled(clocks: Clocks) -> None:
    clock = SteadyClock()
    for _ in range(5):
        clocks.passes(timedelta(days=1))
        clocks.is_set(timedelta(seconds=0.4))  # as a clock that is kept by the network drifts
        assert clock.settled(SILENCE)


def test_a_clock_that_is_set_forward_gives_up_no_run_whose_process_lives(clocks: Clocks, store: Store) -> None:
    run = Run(id="r", kind="portfolio", status="running", request={}, created_at=NIGHT, beat_at=NIGHT)
    store.runs.add(run)
    assert store.runs.one("r", NIGHT).status == "running"
    clocks.is_set(timedelta(hours=1))
    later = NIGHT + timedelta(hours=1)
    assert store.runs.one("r", later).status == "running"
    store.runs.beat("r", {}, later)
    clocks.passes(SILENCE / 2)
    assert store.runs.one("r", later + SILENCE / 2).status == "running"
    clocks.passes(SILENCE)
    assert store.runs.one("r", later + SILENCE * 1.5).status == "failed"


def test_a_forward_clock_follows_the_wall_clock_but_never_back_behind_its_start(clocks: Clocks) -> None:
    clock = ForwardClock()
    clocks.passes(timedelta(hours=1))
    assert clock.now() == NIGHT + timedelta(hours=1)
    clocks.is_set(timedelta(days=2))
    assert clock.now() == NIGHT + timedelta(days=2, hours=1)
    clocks.is_set(timedelta(days=-2))  # the mistake is mended
    assert clock.now() == NIGHT + timedelta(hours=1)
    clocks.is_set(timedelta(days=-2))
    clocks.passes(timedelta(hours=1))
    assert clock.now() == NIGHT + timedelta(hours=2)


def test_a_run_of_a_queue_is_given_up_by_no_reader_however_late_it_is(store: Store) -> None:
    run = Run(id="r", kind="portfolio", status="queued", request={}, created_at=NIGHT, beat_at=NIGHT)
    store.runs.add(queued_run(run))
    assert store.runs.one("r", NIGHT + timedelta(days=365)).status == "queued"


def test_only_the_last_attempt_at_a_run_counts(store: Store) -> None:
    run = Run(id="r", kind="portfolio", status="queued", request={}, created_at=NIGHT, beat_at=NIGHT)
    store.runs.add(queued_run(run))
    assert [store.runs.take("r", NIGHT), store.runs.take("r", NIGHT)] == [1, 2]
    assert store.runs.beat("r", {"by": 1}, NIGHT, 1) == "given up"
    assert store.runs.beat("r", {"by": 2}, NIGHT, 2) == "go on"
    assert not store.runs.put_back("r", 1, NIGHT)
    assert not store.runs.end("r", "done", NIGHT, progress={}, answer={"by": 1}, attempt=1)
    assert store.runs.put_back("r", 2, NIGHT)
    assert store.runs.one("r", NIGHT).status == "queued"
    assert store.runs.take("r", NIGHT) == 3
    assert store.runs.end("r", "done", NIGHT, progress={}, answer={"by": 3}, attempt=3)
    assert store.runs.take("r", NIGHT) is None
    assert store.runs.one("r", NIGHT).answer == {"by": 3}
