"""A pace lets a burst through, holds back what comes after, and costs no thread."""

import threading
import time

from gpuplan.providers.rate_limit import RateLimit


def test_a_burst_goes_through_and_the_next_call_waits_its_turn() -> None:
    rate_limit = RateLimit(20, burst=3)
    began = time.monotonic()
    for _ in range(5):
        rate_limit.wait()
    assert time.monotonic() - began >= 2 / 20 * 0.9


def test_a_service_that_refreshes_for_years_gathers_no_threads() -> None:
    before = set(threading.enumerate())  # some of those may end meanwhile
    for _ in range(50):
        RateLimit(100).wait()
    assert not set(threading.enumerate()) - before
