"""Messages arrive once, signed, whatever the receiver does; what did not arrive is kept, said, and tried again."""

import json
import logging
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from tenacity import RetryCallState

from gpuplan.api.notifications.retries import Wait
from gpuplan.api.notifications.watch_records import try_out
from gpuplan.api.notifications.webhook_sending import Patience
from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from tests.api.notifications.conftest import QUICK, SECRET, Change, Nights, at
from tests.clouds.server import Reply, Request, answering, reset_after

pytestmark = pytest.mark.slow(reason="delivers to local servers")


@pytest.fixture
def due(nights: Nights) -> Nights:
    """A watch with something to tell to one channel."""
    nights.watch()
    nights.prices(at(49.16))
    return nights


def states(nights: Nights) -> list[tuple[str, str, int]]:
    [watch] = nights.watches
    notifications = nights.one(watch["id"])["notifications"]
    return [
        (notification["channel"], notification["state"], notification["attempts"]) for notification in notifications
    ]


def test_a_message_is_signed_so_that_the_library_of_the_scheme_verifies_it(due: Nights) -> None:
    assert due.check()["deliveries"] == {"sent": 1, "held_elsewhere": 0, "failed": []}
    [request] = due.inbox.server.requests
    assert request.headers["webhook-id"].startswith("note-")
    assert abs(int(request.headers["webhook-timestamp"]) - time.time()) < 300
    assert due.inbox.taken[0]["type"] == "watch.cheaper"  # taken only if its signature holds
    assert states(due) == [("ops", "delivered", 1)]


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_receiver_that_fails_twice_gets_the_same_message_the_third_time(due: Nights, status: int) -> None:
    due.inbox.break_with(answering(status, b"busy"), times=2)
    assert due.check()["deliveries"]["sent"] == 1
    assert len({request.headers["webhook-id"] for request in due.inbox.server.requests}) == 1
    assert len({request.body for request in due.inbox.server.requests}) == 1
    assert states(due) == [("ops", "delivered", 3)]


def vanish(_: Reply) -> Reply:
    """The receiver goes away without a word."""
    raise ConnectionResetError


@pytest.mark.parametrize(
    "change",
    [vanish, answering(502, b"<html><body>bad gateway</body></html>"), answering(500, b"o" * 4_000_000)],
)
def test_a_receiver_that_fails_for_ever_keeps_its_message_for_the_next_run(due: Nights, change: Change) -> None:
    due.inbox.break_with(change)
    sent = due.check()["deliveries"]
    assert (sent["sent"], [failure["final"] for failure in sent["failed"]]) == (0, [False])
    assert len(sent["failed"][0]["error"]) <= 300
    assert states(due) == [("ops", "waiting", 3)]
    due.inbox.faults.clear()
    due.check()
    assert states(due) == [("ops", "delivered", 4)]
    assert due.inbox.events == ["cheaper"]


def test_a_message_is_taken_once_the_status_says_so_even_if_the_rest_of_the_answer_is_cut_off(due: Nights) -> None:
    due.inbox.server.break_with(reset_after(0.5))
    assert due.check()["deliveries"]["sent"] == 1
    assert due.check()["deliveries"]["sent"] == 0


def test_nothing_is_told_twice_to_a_channel_while_another_is_down(nights: Nights) -> None:
    nights.watch(channels=["ops", "team"])
    nights.prices(at(49.16))
    nights.inbox.break_with(answering(500, b""), when=lambda request: request.path == "/slack")
    sent = nights.check()["deliveries"]
    assert (sent["sent"], [failure["channel"] for failure in sent["failed"]]) == (1, ["team"])
    assert states(nights) == [("ops", "delivered", 1), ("team", "waiting", 3)]
    nights.inbox.faults.clear()
    assert nights.check()["deliveries"]["sent"] == 1
    assert len(nights.inbox.taken) == 2


def test_a_channel_that_is_down_is_asked_about_one_message_and_keeps_the_others_in_order(nights: Nights) -> None:
    for name in ("a", "b", "c"):
        nights.watch(name=name)
    nights.prices(at(49.16))
    nights.inbox.break_with(answering(500, b""))
    sent = nights.check()["deliveries"]
    assert len(nights.inbox.server.requests) == QUICK.attempts
    assert [failure["final"] for failure in sent["failed"]] == [False] * 3
    assert "does not answer" in sent["failed"][1]["error"]
    nights.inbox.faults.clear()
    assert nights.check()["deliveries"]["sent"] == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 413])
def test_a_refusal_is_final_and_shown_and_the_next_message_goes_out(nights: Nights, status: int) -> None:
    nights.watch(name="a")
    nights.watch(name="b")
    nights.prices(at(49.16))
    nights.inbox.break_with(answering(status, b"no_service"), times=1)
    sent = nights.check()["deliveries"]
    [failed] = sent["failed"]
    assert (sent["sent"], failed["final"], failed["channel"]) == (1, True, "ops")
    assert f"HTTP {status}" in failed["error"]
    assert "no_service" in failed["error"]
    assert nights.check()["deliveries"] == {"sent": 0, "held_elsewhere": 0, "failed": []}


def test_a_redirect_is_not_followed(due: Nights) -> None:
    elsewhere = f"{due.inbox.server.url}/elsewhere"
    due.inbox.break_with(answering(307, b"", Location=elsewhere))
    [failed] = due.check()["deliveries"]["failed"]
    assert failed["final"] is True
    assert "redirect, which is not followed" in failed["error"]
    assert [request.path for request in due.inbox.server.requests] == ["/hook"]


def test_a_wait_that_the_receiver_asks_for_is_kept(due: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    wait = Wait.__call__

    def note(self: Wait, state: RetryCallState) -> float:
        waits.append(wait(self, state))
        return 0.0

    monkeypatch.setattr(Wait, "__call__", note)
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=25), usegmt=True)
    past = format_datetime(datetime.now(UTC) - timedelta(seconds=25), usegmt=True)
    for status, asked in ((429, "7"), (503, soon), (503, past), (503, "in a while")):
        due.inbox.break_with(answering(status, b"", Retry_After=asked), times=1)
    due.check(patience=replace(QUICK, attempts=5, longest_wait_seconds=30.0))
    number, date, passed, nonsense = waits
    assert number == 7
    assert 15 < date <= 25
    assert passed == 0
    assert 0 < nonsense < 1
    assert states(due) == [("ops", "delivered", 5)]


def test_a_wait_that_is_too_long_is_left_for_the_next_run(due: Nights) -> None:
    due.inbox.break_with(answering(429, b"slow down", Retry_After="3600"), times=1)
    [failed] = due.check()["deliveries"]["failed"]
    assert (failed["final"], len(due.inbox.server.requests)) == (False, 1)
    assert "asks to wait 3600 s" in failed["error"]
    assert due.check()["deliveries"]["sent"] == 1


@contextmanager
def dripping() -> Iterator[str]:
    """A receiver that sends one byte of its headers at a time, and never ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()

        def drip() -> None:
            while not over.is_set():
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    try:
                        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                        while not over.wait(0.02):
                            connection.sendall(b"a")
                    except OSError:
                        continue

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


@pytest.mark.slow(reason="one long case")
def test_a_receiver_that_hangs_or_drips_costs_no_more_than_its_time(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    nights.watch(channels=["ops", "team"])
    nights.prices(at(49.16))
    nights.inbox.server.latency_seconds = 30
    with dripping() as url:
        monkeypatch.setenv("TEAM_SLACK", url)
        failed = nights.check(patience=replace(QUICK, attempt_seconds=1.0))["deliveries"]["failed"]
    assert [failure["error"] for failure in failed] == ["no answer within 1 s"] * 2
    assert [failure["final"] for failure in failed] == [False, False]


def test_after_a_week_a_message_is_given_up_and_said_to_be(due: Nights) -> None:
    due.inbox.break_with(answering(500, b"broken"))
    due.check()
    due.inbox.faults.clear()
    [failed] = due.check(now=due.now + timedelta(days=7, seconds=1))["deliveries"]["failed"]
    assert failed["final"] is True
    assert "not delivered within 7 days; last: HTTP 500" in failed["error"]
    assert states(due)[-1][1] == "given_up"
    assert due.inbox.taken == []


KILLED = """
import sys
from datetime import datetime
from pathlib import Path
from gpuplan.api.services.composition import open_services
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.notifications.watch_check import check_watches
gpuplan = open_services(Environment(database_url=sys.argv[1], settings=Path(sys.argv[2])))
check_watches(gpuplan.context, gpuplan.plans, gpuplan.live_queries, gpuplan.store.current_snapshot_id(), datetime.fromisoformat(sys.argv[3]))
"""


def release(nights: Nights) -> None:
    """As if the time had passed for which the process that died held its message."""
    with closing(sqlite3.connect(nights.url.removeprefix("sqlite:///"))) as raw:
        raw.execute("UPDATE notifications SET held_until = 1 WHERE held_until IS NOT NULL")
        raw.commit()


def test_a_process_killed_between_sending_and_noting_it_causes_one_repeat_under_the_same_id(due: Nights) -> None:
    arrived = threading.Event()

    def never_answer(_: object) -> Reply:
        arrived.set()
        time.sleep(30)
        return Reply()

    due.inbox.server.answer = never_answer
    arguments = [sys.executable, "-c", KILLED, due.url, str(due.settings), due.now.isoformat()]
    with subprocess.Popen(arguments) as process:
        assert arrived.wait(60)
        process.send_signal(signal.SIGKILL)
    due.inbox.server.answer = due.inbox.take
    assert due.check()["deliveries"] == {"sent": 0, "held_elsewhere": 1, "failed": []}
    release(due)
    assert due.check()["deliveries"]["sent"] == 1
    first, second = due.inbox.server.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
    assert due.check()["deliveries"]["sent"] == 0


@pytest.mark.slow(reason="one long case")
def test_killed_again_and_again_every_watch_is_told_and_no_receiver_that_knows_ids_hears_twice(nights: Nights) -> None:
    count = 6
    for number in range(count):
        nights.watch(name=f"watch {number}")
    nights.prices(at(49.16))
    arguments = [sys.executable, "-c", KILLED, nights.url, str(nights.settings), nights.now.isoformat()]
    for enough in (1, 4):
        with subprocess.Popen(arguments) as process:
            while len(nights.inbox.taken) < enough and process.poll() is None:
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
        release(nights)
    # As patient as a refresh is: on a busy machine a receiver that is well may take longer than a quick one is given.
    nights.check(patience=Patience())
    names = [message["data"]["watch"]["name"] for message in nights.inbox.taken]
    assert set(names) == {f"watch {number}" for number in range(count)}
    assert len(set(nights.inbox.ids)) == count
    assert len(names) <= count + 2
    assert nights.gpuplan.store.watching.waiting() == ()


def sent_to(path: str) -> Callable[[Request], bool]:
    return lambda request: request.path == path


def test_no_secret_reaches_errors_logs_or_the_database(
    nights: Nights, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    token = "T0SECRET/B0SECRET/averysecrettoken"
    monkeypatch.setenv("TEAM_SLACK", f"{nights.inbox.server.url}/services/{token}")
    nights.watch(channels=["ops", "team"])
    nights.prices(at(49.16))
    for path, secret in (("/hook", SECRET), (f"/services/{token}", f"/services/{token}")):
        reply = f"nothing of {secret} here".encode()
        nights.inbox.break_with(answering(404, reply), when=sent_to(path))
    for name in ("", "httpx", "httpcore"):
        caplog.set_level(logging.DEBUG, logger=name)
    summary = json.dumps(nights.check())
    with pytest.raises(ProviderFailure) as refused:
        try_out(nights.gpuplan.context, "team", nights.now, patience=QUICK)
    files = Path(nights.url.removeprefix("sqlite:///")).parent.glob("gpuplan.sqlite3*")
    stored = b"".join(path.read_bytes() for path in files)
    for secret in (token, SECRET, SECRET.removeprefix("whsec_")):
        assert secret not in summary
        assert secret not in str(refused.value)
        assert secret not in caplog.text
        assert secret.encode() not in stored
    assert "HTTP 404" in summary


def test_a_part_of_a_secret_address_is_masked_too_and_control_characters_are_shown_as_such(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_SLACK", f"{nights.inbox.server.url}/services/T0/averysecrettoken")
    nights.inbox.break_with(answering(403, b"not averysecrettoken\x00\x1b[31m"))
    with pytest.raises(ProviderFailure) as refused:
        try_out(nights.gpuplan.context, "team", nights.now, patience=QUICK)
    assert str(refused.value) == "channel team: HTTP 403 Forbidden: not ***\ufffd\ufffd[31m"


def test_what_a_receiver_says_of_a_public_address_is_shown_whole(nights: Nights) -> None:
    nights.inbox.break_with(answering(404, b"no /hook here"))
    with pytest.raises(ProviderFailure, match="HTTP 404 Not Found: no /hook here"):
        try_out(nights.gpuplan.context, "ops", nights.now, patience=QUICK)


def test_a_test_message_is_taken_by_either_kind_of_channel(nights: Nights) -> None:
    for channel in ("ops", "team"):
        assert try_out(nights.gpuplan.context, channel, nights.now, patience=QUICK).delivered
    signed, slack = nights.inbox.taken
    assert signed["type"] == "watch.test"
    assert "can tell the channel team" in slack["text"]
    with pytest.raises(UnusableInput, match="no channel 'nobody'"):
        try_out(nights.gpuplan.context, "nobody", nights.now, patience=QUICK)


def test_a_run_ends_in_time_and_says_what_it_left(nights: Nights) -> None:
    nights.watch(name="a")
    nights.watch(name="b")
    nights.prices(at(49.16))
    sent = nights.check(patience=replace(QUICK, channel_seconds=-1.0))["deliveries"]
    assert (sent["sent"], len(sent["failed"])) == (0, 2)
    assert "left for the next run" in sent["failed"][0]["error"]
