"""Stages of a question: timed by whoever watches last, and by nobody otherwise."""

from collections.abc import Iterator
from contextlib import contextmanager

from gpuplan.catalog.runtime.stage_timing import Watcher, stage, watch_stages


def test_stages_are_told_to_who_watches_until_they_end() -> None:
    reported: list[str] = []

    def watcher(by: str) -> Watcher:
        @contextmanager
        def watch(name: str) -> Iterator[None]:
            reported.append(f"{by} begins {name}")
            try:
                yield
            finally:
                reported.append(f"{by} ends {name}")

        return watch

    def solve() -> None:
        with stage("solve"):
            reported.append("solving")

    solve()
    first, second = watch_stages(watcher("one")), watch_stages(watcher("two"))
    solve()
    first()
    solve()
    second()
    solve()
    two = ["two begins solve", "solving", "two ends solve"]
    assert reported == ["solving", *two, *two, "solving"]
