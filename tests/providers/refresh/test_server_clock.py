"""Rows are dated rightly on a machine whose clock is wrong."""

from datetime import UTC, datetime, timedelta

import pytest

from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.refresh.server_clock import clocks, server_time, true_time
from tests.clouds.server import CloudServer, Reply

NOW = datetime(2026, 11, 21, 3, tzinfo=UTC)
BEFORE = NOW - timedelta(days=1)


@pytest.mark.parametrize("off", [timedelta(days=1), -timedelta(days=1), timedelta(minutes=6)])
def test_a_clock_that_is_off_by_more_than_five_minutes_gives_way_to_the_servers(off: timedelta) -> None:
    at, warning = true_time(NOW + off, (NOW, "https://prices.example"), BEFORE)
    assert at == NOW
    assert "clock is off by" in warning
    assert "https://prices.example says 2026-11-21 03:00 UTC" in warning


def test_a_clock_that_is_nearly_right_counts() -> None:
    clock = NOW + timedelta(minutes=4)
    assert true_time(clock, (NOW, "https://prices.example"), BEFORE) == (clock, "")


def test_a_clock_that_jumped_back_never_dates_rows_before_the_last_snapshot() -> None:
    at, warning = true_time(BEFORE - timedelta(days=400), None, BEFORE)
    assert at == BEFORE
    assert "behind the last snapshot" in warning


def test_a_server_may_say_that_the_last_snapshot_was_dated_wrongly() -> None:
    assert true_time(NOW, (NOW, "https://prices.example"), NOW + timedelta(days=365)) == (NOW, "")


def test_the_time_is_taken_from_any_answer_even_a_refusal() -> None:
    with CloudServer(lambda _: Reply(status=403)).running() as server:
        result = server_time(["http://127.0.0.1:1/nobody", server.url])
    assert result is not None
    assert abs(result[0] - datetime.now(UTC)) < timedelta(minutes=1)
    assert result[1].startswith(server.url)


def test_no_answer_is_no_time() -> None:
    assert server_time(["http://127.0.0.1:1/nobody", "http://["]) is None


def test_only_the_clouds_that_are_asked_anyway_are_asked_for_the_time() -> None:
    sources = Sources(aws_price_files_url="http://127.0.0.1:9/files")
    assert clocks(sources, ["aws"]) == ("http://127.0.0.1:9/files",)
    assert clocks(sources, ["oracle"]) == ()
