"""YAML comes by libyaml, three times as quickly, and is byte for byte what PyYAML writes."""

from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpuplan.api.exports import yaml_text
from tests.api.exports.test_hostile_names import ANY_NAME, TRICKS
from tests.api.exports.test_schemas import documents, made

pytestmark = pytest.mark.slow(reason="writes many documents")

#: Characters that emitters tell apart, and lengths at which they would fold lines or give up short keys.
ODD = st.text("a 0:-#'\"\\\t\n\r\x00\x7f\x85\xa0\u2028\ufeff\ud800\ue000\uffff\U0001f600\U0010ffff", max_size=200)
VALUE = st.recursive(
    st.one_of(ANY_NAME, ODD, st.sampled_from([*TRICKS, "true", "1e5", "2026-12-01"]), st.integers(), st.booleans()),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "x/y.z", "on"]), inner, max_size=3)
    ),
    max_leaves=8,
)


class Slow(yaml.SafeDumper):
    """PyYAML's own, with several lines as a block."""


def represent(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Slow.add_representer(str, represent)


def by_pyyaml(documents: list[Any]) -> str:
    text: str = yaml.dump_all(
        documents, Dumper=Slow, sort_keys=False, allow_unicode=True, width=10_000, explicit_start=len(documents) > 1
    )
    return text


@pytest.mark.parametrize("to", ["skypilot", "dstack", "kubernetes", "jobset"])
def test_every_file_is_the_one_that_pyyaml_writes(to: str) -> None:
    """Of each machine and kind that is cut differently: PyYAML takes its time."""
    for text in made(to)[::7]:
        comments = "".join(line for line in text.splitlines(keepends=True) if line.startswith("# "))
        assert text == comments + by_pyyaml(documents(text))


@given(st.lists(st.fixed_dictionaries({"metadata": VALUE, "spec": VALUE}), min_size=1, max_size=2))
@settings(max_examples=80, deadline=None)
@example([{"metadata": "\U0001f680 up", "spec": 1}])
@example([{"metadata": "\n", "spec": {"run": "a\n\n"}}])
@example([{"metadata": "\n\u2028", "spec": ""}])
@example([{"metadata": "", "spec": "a\n\u2029"}])
@example([{"metadata": ["\x85"], "spec": "\ud800"}])
@example([{"metadata": "x" * 1100, "spec": "y " * 6000}])
def test_whatever_a_text_says_it_is_written_as_pyyaml_writes_it(documents: list[Any]) -> None:
    assert yaml_text.yaml_text(documents, ["plan-1"]) == "# plan-1\n" + by_pyyaml(documents)


def test_libyaml_is_what_writes_wherever_it_is_there() -> None:
    assert yaml.__with_libyaml__
    assert issubclass(yaml_text._QUICK, yaml.CSafeDumper)
