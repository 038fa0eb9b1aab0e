"""The list of retired names finds what the glossary retires, and nothing that is ordinary English or fixed on the wire."""

import ast
from pathlib import Path

import pytest

from tools.retired_names import ALLOWED, RETIRED, WHOLE_ONLY, main, names_in, retired_names, retired_word, words_of


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("kept_rows", ["kept", "rows"]),
        ("KeptHighs", ["kept", "highs"]),
        ("_told", ["told"]),
        ("APIKey", ["api", "key"]),
    ],
)
def test_names_are_split_into_words(name: str, words: list[str]) -> None:
    assert words_of(name) == words


@pytest.mark.parametrize(
    "name", ["kept_rows", "Netted", "net_search", "shelves", "each", "found", "_whatever_the_hours", "own_machines"]
)
def test_retired_words_are_named_with_what_to_write_instead(name: str) -> None:
    word = retired_word(name)
    assert word is not None
    assert word[1]


@pytest.mark.parametrize(
    "name", ["network", "outstanding", "u_net", "not_found", "NotFound", "usd_per_node", "building", "once_more"]
)
def test_ordinary_words_and_terms_of_the_field_stay(name: str) -> None:
    assert retired_word(name) is None


def test_only_the_words_that_are_asked_for_are_looked_for() -> None:
    assert retired_word("kept", only=frozenset({"told"})) is None
    assert retired_word("told", only=frozenset({"told"})) is not None


def test_every_kind_of_name_is_read_from_a_module() -> None:
    tree = ast.parse(
        "class Lot:\n    kept: int\n"
        "def told(said, *, held=1):\n    pulse = {'gate': [each for each in said]}\n    return lambda kin: pulse\n"
        "try:\n    pass\nexcept ValueError as claim:\n    pass\n"
    )
    assert {(kind, name) for _, kind, name in names_in(tree)} >= {
        ("class", "Lot"),
        ("field", "kept"),
        ("function", "told"),
        ("parameter", "said"),
        ("parameter", "held"),
        ("variable", "pulse"),
        ("key", "gate"),
        ("variable", "each"),
        ("parameter", "kin"),
        ("variable", "claim"),
    }


def test_packages_and_modules_are_listed_with_their_place(tmp_path: Path) -> None:
    (tmp_path / "planner" / "nets").mkdir(parents=True)
    (tmp_path / "planner" / "nets" / "course.py").write_text("told = 1\n", encoding="utf-8")
    names = list(retired_names(tmp_path, ["planner/nets/course.py"]))
    assert [(name.kind, name.name, name.line) for name in names] == [
        ("package", "nets", 1),
        ("module", "course", 1),
        ("variable", "told", 1),
    ]
    assert "use schedule" in str(names[1])


def test_a_sentence_may_use_ordinary_words_but_no_metaphor(tmp_path: Path) -> None:
    text = "def test_a_key_is_told_once(): ...\ndef test_a_net_is_priced(): ...\n"
    (tmp_path / "test_rows.py").write_text(text, encoding="utf-8")
    assert [name.name for name in retired_names(tmp_path, ["test_rows.py"])] == ["test_a_net_is_priced"]


def test_a_clean_tree_exits_with_zero(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools/retired_names.py"]) == 0
    assert "0 retired names in 1 modules" in capsys.readouterr().err


def test_a_word_that_nobody_retired_is_refused() -> None:
    with pytest.raises(SystemExit):
        main(["--words", "offer"])


def test_every_allowed_name_says_why_it_stays() -> None:
    assert [name for name, reason in ALLOWED.items() if not reason] == []


def test_no_retired_word_is_recommended_instead_of_another() -> None:
    assert [
        word
        for word, instead in RETIRED.items()
        if not instead or (RETIRED.keys() - WHOLE_ONLY) & set(words_of(instead))
    ] == []
