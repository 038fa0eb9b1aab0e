"""Calls in threads: so many at once, what waits is bounded, and nobody waits for all that another has sent."""

import asyncio
import threading
from contextlib import AbstractContextManager

import pytest

from gpuplan.api.http.http_service import create_service
from gpuplan.api.http.problem_details import Refused
from gpuplan.api.http.thread_workers import Workers
from gpuplan.api.security.authorization import Requester, acting_as
from gpuplan.api.security.identity import LOCAL, Identity
from gpuplan.api.services.composition import Services


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

    def _end(self, text: str) -> str:
        with self._counting:
            self.now -= 1
        return text


def by(name: str) -> AbstractContextManager[None]:
    """What is asked inside is asked by this identity."""
    identity = Identity(id=name, name=name, scopes=frozenset(), via="key")
    return acting_as(Requester(identity=identity))


def test_as_many_calls_are_made_at_once_as_there_may_be() -> None:
    calls = Calls()

    async def all_of_them() -> list[str]:
        workers = Workers(at_once=4)
        begun = [asyncio.create_task(workers.run(calls.long)) for _ in range(20)]
        while calls.most < 3:
            await asyncio.sleep(0.01)
        calls.may_end.set()
        return await asyncio.gather(*begun)

    assert asyncio.run(all_of_them()) == ["long"] * 20
    # One is left for somebody else.
    assert calls.most == 3


def test_what_one_has_sent_holds_up_nobody_else() -> None:
    calls = Calls()

    async def beside_them() -> list[str]:
        workers = Workers(at_once=3)
        with by("heavy"):
            begun = [asyncio.create_task(workers.run(calls.long)) for _ in range(50)]
        while calls.now < 2:
            await asyncio.sleep(0.01)
        with by("light"):
            results = [await asyncio.wait_for(workers.run(calls.short), 30) for _ in range(5)]
        assert not any(task.done() for task in begun)
        calls.may_end.set()
        return results + await asyncio.gather(*begun)

    assert asyncio.run(beside_them()) == ["short"] * 5 + ["long"] * 50


@pytest.mark.parametrize("cores", [1, 2, 8])
def test_two_long_calls_of_one_hold_up_no_short_one_of_the_same(
    gpuplan: Services, monkeypatch: pytest.MonkeyPatch, cores: int
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(cores), raising=False)
    calls = Calls()

    async def beside_them() -> list[str]:
        workers: Workers = create_service(gpuplan).state.workers
        begun = [asyncio.create_task(workers.run(calls.long)) for _ in range(2)]
        try:
            async with asyncio.timeout(30):
                results = [await workers.run(calls.short) for _ in range(3)]
            assert not any(task.done() for task in begun)
        finally:
            calls.may_end.set()
        return results + await asyncio.gather(*begun)

    assert asyncio.run(beside_them()) == ["short"] * 3 + ["long"] * 2


def test_who_asks_without_a_name_counts_by_address() -> None:
    calls = Calls()

    async def beside_them() -> str:
        workers = Workers(at_once=2)
        with acting_as(Requester(identity=LOCAL, address="10.0.0.1")):
            begun = [asyncio.create_task(workers.run(calls.long)) for _ in range(2)]
        while calls.now < 1:
            await asyncio.sleep(0.01)
        with acting_as(Requester(identity=LOCAL, address="10.0.0.2")):
            result = await asyncio.wait_for(workers.run(calls.short), 30)
        calls.may_end.set()
        await asyncio.gather(*begun)
        return result

    assert asyncio.run(beside_them()) == "short"


def test_what_waits_is_bounded_for_one_and_for_all() -> None:
    calls = Calls()

    async def too_many() -> list[str]:
        workers = Workers(at_once=1, most_waiting=2, most_waiting_of_one=1)
        with by("heavy"):
            begun = [asyncio.create_task(workers.run(calls.long)) for _ in range(2)]
            await asyncio.sleep(0)
            with pytest.raises(Refused, match="too many of your requests"):
                await workers.run(calls.short)
        with by("light"):
            begun.append(asyncio.create_task(workers.run(calls.long)))
            await asyncio.sleep(0)
        with by("third"), pytest.raises(Refused, match="too many requests are waiting"):
            await workers.run(calls.short)
        calls.may_end.set()
        return [*await asyncio.gather(*begun), await workers.run(calls.short)]

    assert asyncio.run(too_many()) == ["long"] * 3 + ["short"]
    assert calls.most == 1


def test_a_call_that_fails_makes_room_for_the_next() -> None:
    async def fails_and_goes_on() -> str:
        workers = Workers(at_once=1, most_waiting=0)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await workers.run(lambda: 1 / 0)
        return await asyncio.wait_for(workers.run(str, "still there"), 30)

    assert asyncio.run(fails_and_goes_on()) == "still there"
