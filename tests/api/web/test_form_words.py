"""Fields of a job in the words of the form that it was described in."""

import html
import re

import httpx
import pytest

from gpuplan.api.web.form_words import in_form_words, sections_in_form_words
from gpuplan.api.web.text_sections import Block, Section


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("budget_usd: nothing meets it", "Budget in US dollars: nothing meets it"),
        ("not among constraints.max_nodes", "not among “Most nodes”"),
        ("on_demand, owned, spot", "on demand, owned, spot"),
        ("reserved_1y_convertible", "reserved 1y convertible"),
        ("it could if budget_usd were $22.65", "it could if “Budget in US dollars” were $22.65"),
        # What the form has no field for keeps the name that a job file takes it by.
        ("opt in with constraints.partitions", "opt in with constraints.partitions"),
        ("my_budget_usd and max_nodes_of_mine", "my_budget_usd and max_nodes_of_mine"),
        ("a deadline of 3 d", "a deadline of 3 d"),
    ],
)
def test_names_of_fields_become_labels(text: str, expected: str) -> None:
    assert in_form_words(text) == expected


def test_a_table_of_requirements_calls_all_of_them_by_their_labels() -> None:
    def labelled(first: str) -> list[str]:
        columns = ((first, False), ("asked", False))
        rows = (("deadline", "a deadline of 3 d"), ("training.framework", "any"))
        block = Block(kind="listing", columns=columns, rows=rows)
        [shown] = sections_in_form_words([Section(title="What binds", blocks=[block])])
        return [row[0] for row in shown.blocks[0].rows]

    assert labelled("requirement") == labelled("relax") == ["Deadline", "Framework"]
    assert labelled("part") == ["deadline", "Framework"]


def test_no_page_of_an_answer_calls_a_field_of_the_form_by_its_name_in_a_file(client: httpx.Client) -> None:
    names = re.compile(r"budget_usd|max_nodes|price_kinds|on_demand|constraints\.(?:providers|regions|geography)")
    job = {"model": "resnet-50", "samples": "115M", "deadline": "36h", "providers": "aws", "max_nodes": "8"}
    jobs = job | {"price_kinds": "on_demand", "budget_usd": "1000"}, job | {"budget_usd": "1"}
    planned, unplanned = (client.post("/plans", data=stated).headers["location"] for stated in jobs)
    assert (planned.startswith("/plans/plan-"), unplanned.startswith("/plans/none-")) == (True, True)
    for path in (planned, unplanned):
        for suffix in ("", "/why", "/why?name=H100", "/why?name=aws"):
            page = client.get(path + suffix).text
            shown = html.unescape(re.sub(r"<[^>]+>", " ", page))
            assert names.findall(shown) == [], suffix
    assert "Most nodes" in client.get(f"{unplanned}/why").text
