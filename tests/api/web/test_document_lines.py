"""Where a field stands in what a user pasted."""

import json

import pytest

from gpuplan.api.web.document_lines import line_of

TEXT = """\
name: two
jobs:
  - name: first
    workload:
      kind: preset
  # a remark
  - {name: second,
     deadline: whenever}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("name",), 1),
        (("jobs",), 2),
        (("jobs", 0), 3),
        (("jobs", 0, "workload", "kind"), 5),
        (("jobs", 1), 7),
        (("jobs", 1, "deadline"), 8),
        # The part around what is missing.
        (("jobs", 0, "deadline"), 3),
        (("jobs", 7), 2),
        (("quotas", 0), None),
        ((), None),
    ],
)
def test_a_field_is_found_at_its_line_or_what_lies_around_it(path: tuple[str | int, ...], line: int | None) -> None:
    assert line_of(TEXT, path) == line


def test_json_has_lines_too() -> None:
    assert line_of(json.dumps({"jobs": [{"name": "x", "deadline": "y"}]}, indent=1), ("jobs", 0, "deadline")) == 5


def test_what_cannot_be_read_has_no_lines() -> None:
    assert line_of("a: [", ("a",)) is None
