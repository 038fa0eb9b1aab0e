"""What is kept of a snapshot is found again, and goes with it."""

import gc
import weakref

import pytest

from planner.kept import MOST_SNAPSHOTS, kept_per_snapshot, kept_within


class Rows:
    """Stands for a snapshot: compared by identity, and nothing but its age tells it from others."""


def test_an_answer_is_worked_out_once_per_snapshot_and_question() -> None:
    asked: list[tuple[Rows, int]] = []

    @kept_per_snapshot(64)
    def answer(rows: Rows, question: int) -> int:
        asked.append((rows, question))
        return question + 1

    first, second = Rows(), Rows()
    assert [answer(first, 1), answer(first, 1), answer(second, 1), answer(first, question=2)] == [2, 2, 2, 3]
    assert asked == [(first, 1), (second, 1), (first, 2)]


def test_old_snapshots_are_let_go_however_many_answers_could_be_kept() -> None:
    @kept_per_snapshot(1_000_000)
    def answer(rows: Rows) -> int:
        return id(rows)

    nights = [Rows() for _ in range(3 * MOST_SNAPSHOTS)]
    alive = [weakref.ref(each) for each in nights]
    for each in nights:
        answer(each)
    del nights, each
    gc.collect()
    assert [each() is None for each in alive] == [True] * 2 * MOST_SNAPSHOTS + [False] * MOST_SNAPSHOTS


def test_answers_whose_size_is_up_to_who_asks_are_bounded_in_bytes() -> None:
    asked: list[int] = []

    @kept_within(most=100, most_bytes=10, bytes_of=len)
    def answer(size: int, *, letter: str = "a") -> str:
        asked.append(size)
        return letter * size

    assert [answer(4), answer(5), answer(4), answer(3)] == ["aaaa", "aaaaa", "aaaa", "aaa"]
    assert asked == [4, 5, 3]  # 4 + 5 + 3 are too many; 4 was asked after 5
    assert [answer(4), answer(3), answer(5)] == ["aaaa", "aaa", "aaaaa"]
    assert asked == [4, 5, 3, 5]
    assert answer(5, letter="b") == "bbbbb"


def test_an_answer_that_is_too_large_to_keep_drives_no_other_out() -> None:
    asked: list[int] = []

    @kept_within(most=2, most_bytes=10, bytes_of=len)
    def answer(size: int) -> str:
        asked.append(size)
        return "a" * size

    assert [len(answer(each)) for each in (4, 11, 11, 4)] == [4, 11, 11, 4]
    assert asked == [4, 11, 11]
    assert [len(answer(each)) for each in (1, 2, 4)] == [1, 2, 4]
    assert asked == [4, 11, 11, 1, 2, 4]  # two at most, whatever their size


def test_an_answer_that_fails_is_not_kept() -> None:
    failing = [True]

    @kept_within(most=2, most_bytes=10, bytes_of=len)
    def answer() -> str:
        if failing.pop():
            raise LookupError
        return "found"

    with pytest.raises(LookupError):
        answer()
    failing.append(False)
    assert [answer(), answer()] == ["found", "found"]
