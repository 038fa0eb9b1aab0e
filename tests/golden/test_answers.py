"""Every question of the corpus has the answer that was recorded."""

from collections.abc import Iterator

import pytest

from tests.golden.comparison import differences
from tests.golden.corpus import corpus
from tests.golden.interfaces import Interfaces, open_interfaces
from tests.golden.question import Question, ask
from tests.golden.record import recorded

RECORDED = recorded()
#: So many differences are shown of an answer.
SHOWN = 12


@pytest.fixture(scope="module")
def interfaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interfaces]:
    with open_interfaces(tmp_path_factory.mktemp("golden")) as open_ones:
        yield open_ones


@pytest.mark.parametrize("question", corpus(), ids=lambda question: question.key)
def test_an_answer_is_the_recorded_one(question: Question, interfaces: Interfaces) -> None:
    moved = list(differences(RECORDED[question.key], ask(question, interfaces)))
    assert not moved, "\n".join([f"{len(moved)} values differ:", *moved[:SHOWN]])


def test_every_recorded_answer_has_its_question() -> None:
    assert sorted(RECORDED) == sorted(question.key for question in corpus())


def test_a_figure_that_moves_by_more_than_one_in_a_billion_is_seen() -> None:
    before = {"plan": {"cost_usd": "1.000001", "hours": 2.0, "nodes": 3, "frontier": [{"hours": 1.0}]}}
    assert not list(differences(before, before | {"plan": before["plan"] | {"hours": 2.0 * (1 + 5e-10)}}))
    changes: tuple[dict[str, object], ...] = (
        {"hours": 2.0 * (1 + 5e-9)},
        {"cost_usd": "1.000002"},
        {"nodes": True},
        {"frontier": []},
        {"extra": 1},
    )
    for change in changes:
        assert list(differences(before, {"plan": before["plan"] | change}))
    assert list(differences(before, {}))
