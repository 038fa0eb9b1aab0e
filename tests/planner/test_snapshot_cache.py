"""What is kept of a snapshot is found again, and goes with it."""

import gc
import weakref

from gpuplan.planner.snapshot_cache import MOST_SNAPSHOTS, cached_per_snapshot


class Rows:
    """Stands for a snapshot: compared by identity, and nothing but its age tells it from others."""


def test_an_answer_is_worked_out_once_per_snapshot_and_question() -> None:
    asked: list[tuple[Rows, int]] = []

    @cached_per_snapshot(64)
    def answer(rows: Rows, question: int) -> int:
        asked.append((rows, question))
        return question + 1

    first, second = Rows(), Rows()
    assert [answer(first, 1), answer(first, 1), answer(second, 1), answer(first, question=2)] == [2, 2, 2, 3]
    assert asked == [(first, 1), (second, 1), (first, 2)]


def test_old_snapshots_are_let_go_however_many_answers_could_be_kept() -> None:
    @cached_per_snapshot(1_000_000)
    def answer(rows: Rows) -> int:
        return id(rows)

    nights = [Rows() for _ in range(3 * MOST_SNAPSHOTS)]
    alive = [weakref.ref(night) for night in nights]
    for night in nights:
        answer(night)
    del nights, night
    gc.collect()
    assert [reference() is None for reference in alive] == [True] * 2 * MOST_SNAPSHOTS + [False] * MOST_SNAPSHOTS
