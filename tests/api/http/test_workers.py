"""Calls in threads: short ones follow each other, long ones stand in nobody's way, and what waits is bounded."""

import asyncio
import threading

import pytest

from api.http.problems import Refused
from api.http.workers import Workers


class Calls:
    """Calls that say when they begin, and end when they are told to."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self._counting = threading.Lock()
        self.now = self.most = 0

    def long(self) -> str:
        self._begin()
        self.may_end.wait(30)
        return self._end("long")

    def short(self) -> str:
        self._begin()
        return self._end("short")

    def _begin(self) -> None:
        with self._counting:
            self.now += 1
            self.most = max(self.most, self.now)

    def _end(self, said: str) -> str:
        with self._counting:
            self.now -= 1
        return said


def test_short_calls_are_made_one_after_the_other() -> None:
    calls = Calls()

    async def all_of_them() -> list[str]:
        workers = Workers()
        return await asyncio.gather(*(workers.run(calls.short) for _ in range(50)))

    assert asyncio.run(all_of_them()) == ["short"] * 50
    assert calls.most == 1


def test_long_calls_hold_up_no_short_one_behind_them() -> None:
    calls = Calls()

    async def behind_them() -> list[str]:
        workers = Workers(most_long=3)
        begun = [asyncio.create_task(workers.run(calls.long)) for _ in range(3)]
        found = [await asyncio.wait_for(workers.run(calls.short), 30) for _ in range(5)]
        assert not any(each.done() for each in begun)
        calls.may_end.set()
        return found + await asyncio.gather(*begun)

    assert asyncio.run(behind_them()) == ["short"] * 5 + ["long"] * 3
    assert calls.most == 4


def test_what_waits_is_bounded_however_long_calls_take() -> None:
    calls = Calls()

    async def too_many() -> list[str]:
        workers = Workers(most_long=0, most_waiting=2)
        begun = [asyncio.create_task(workers.run(calls.long)) for _ in range(3)]
        await asyncio.sleep(0.3)  # those that wait have their turn by now, and no thread
        with pytest.raises(Refused, match="too many"):
            await workers.run(calls.short)
        calls.may_end.set()
        return [*await asyncio.gather(*begun), await workers.run(calls.short)]

    assert asyncio.run(too_many()) == ["long"] * 3 + ["short"]
    assert calls.most == 1


def test_a_call_that_fails_gives_its_turn_back() -> None:
    async def fails_and_goes_on() -> str:
        workers = Workers(most_long=0)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await workers.run(lambda: 1 / 0)
        return await asyncio.wait_for(workers.run(str, "still there"), 30)

    assert asyncio.run(fails_and_goes_on()) == "still there"
