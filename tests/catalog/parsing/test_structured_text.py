import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.catalog.parsing.structured_text import MAX_BYTES, read_document
from gpuplan.catalog.runtime.errors import UnusableInput


def read(text: bytes | str, name: str = "job.yaml") -> dict[str, Any]:
    return read_document(text, name=name)


def test_plain_scalars_are_numbers_booleans_null_or_text_without_surprises() -> None:
    document = read(
        "numbers: [4e6, 1.2e21, 300, -3, .5, 4.]\n"
        "text: [2026-12-01, 1:30, no, yes, on, 007, 0x1F, 1_000, 7d, '4']\n"
        "rest: [true, false, null, ~, ]\n"
        "nothing:\n"
    )
    assert document["numbers"] == [4e6, 1.2e21, 300, -3, 0.5, 4.0]
    assert document["text"] == ["2026-12-01", "1:30", "no", "yes", "on", "007", "0x1F", "1_000", "7d", "4"]
    assert document["rest"] == [True, False, None, None]
    assert document["nothing"] is None


def test_a_key_is_text_whatever_it_looks_like() -> None:
    assert read("no: 1\n2: 3\n") == {"no": 1, "2": 3}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "empty"),
        ("# only a comment\n", "top level must be a mapping"),
        (b"\xff\xfe\x00\x01", "not UTF-8"),
        (b"\x7fELF\x02\x01", "binary"),
        ("a: 1\x00", "binary"),
        ("- 1\n", "a list; its top level must be a mapping"),
        ("just words", "text; its top level must be a mapping"),
        ("a: &x 1\nb: *x\n", "line 1, column 4: the anchor &x is not accepted"),
        ("b: *x\n", "line 1, column 4: the alias *x is not accepted"),
        ("&x a: 1\n", "the anchor &x"),
        ("a: !!python/object:os.system 1\n", "line 1, column 4: the tag"),
        ("a: 1\nb: 2\na: 3\n", "line 3, column 1: the key 'a' is given twice"),
        ('{"a": 1, "a": 2}', "the key 'a' is given twice"),
        ("a: [1,\n", "line 2, column 1: not valid YAML"),
        ("a:\n\t- b\n", "line 2, column 1: not valid YAML"),
        ("a: b: c\n", "line 1, column 5: not valid YAML"),
        ("? [a]\n: 1\n", "a key must be text"),
        ("a: 1\n---\nb: 2\n", "a second document starts here"),
        ('{"a": "\\ud800"}', "surrogate"),
        ("a: " + "[" * 33 + "]" * 33, "more than 32 levels"),
        ('{"a":' * 40 + "1" + "}" * 40, "more than 32 levels"),
        ('{"a":' + "[" * 100_000, "more than 32 levels"),
        ("{" * 1000, "job.yaml"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(text: bytes | str, reason: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        read(text)
    message = str(refused.value)
    assert reason in message
    assert "job.yaml" in message
    assert "\n" not in message


def test_thirty_levels_are_not_too_deep() -> None:
    assert read("a: " + "[" * 30 + "]" * 30)


def test_a_file_of_ten_megabytes_is_refused_by_its_size_before_it_is_parsed() -> None:
    with pytest.raises(UnusableInput, match="larger than 1,048,576 bytes"):
        read(b"[" * 10_000_000)  # whose levels would be refused first


def test_a_bomb_of_aliases_is_refused_at_its_first_anchor() -> None:
    bomb = "a: &a [x,x]\n" + "".join(f"{b}: &{b} [*{a},*{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    with pytest.raises(UnusableInput, match="anchor &a"):
        read(bomb)


def test_the_largest_document_is_read() -> None:
    count = (MAX_BYTES - 10) // 2
    assert read("a: [" + "1," * count + "]") == {"a": [1] * count}


def test_a_json_file_that_is_not_json_is_told_so_with_its_line() -> None:
    with pytest.raises(UnusableInput, match=r"job\.json line 2, column 1: not valid JSON"):
        read('{"a": 1,\n}', name="job.json")


def test_yaml_in_braces_is_still_yaml() -> None:
    assert read("{name: x, deadline: 7d}") == {"name": "x", "deadline": "7d"}


def test_numbers_too_long_for_python_become_floats_for_the_fields_to_refuse() -> None:
    assert read('{"a": ' + "9" * 5000 + "}") == {"a": float("inf")}
    assert read("a: " + "9" * 50) == {"a": 1e50}


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False)
    | st.text("abc:{}[]#&*! é", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text("abc: ", max_size=5), values, max_size=4))
def test_any_json_mapping_reads_back_as_itself(document: dict[str, Any]) -> None:
    assert read(json.dumps(document)) == document


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_any_text_gives_a_mapping_or_unusable_input(text: bytes | str) -> None:
    try:
        answer: object = read(text)
    except UnusableInput as refused:
        answer = {} if "\n" not in str(refused) else refused
    assert isinstance(answer, dict)
