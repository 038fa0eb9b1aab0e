"""Sections of the command line as a page shows them: nothing of what is said there may be lost."""

import httpx
from pydantic import TypeAdapter

from gpuplan.api.presentation.estimate import render_estimate
from gpuplan.api.presentation.plan import render_answer
from gpuplan.api.presentation.sections import sections_of
from gpuplan.api.presentation.text_tables import bullets, cell, facts, heading, listing
from gpuplan.api.schemas.answers import read_answer
from gpuplan.api.web.text_sections import keyed, sections
from gpuplan.planner.model.estimate import Estimate


def test_facts_tables_bullets_and_sentences_keep_their_text() -> None:
    parts = sections_of(
        cell("a sentence"),
        heading("First", "one"),
        facts([("name", 1), ("none", None)]),
        *bullets(["one", "two"]),
        heading("Second"),
        listing(("what", "USD"), [("[b]x[/b]", "$1")], right=(1,)),
        heading("Empty"),
        facts([]),
    )
    titled = sections(parts)
    assert [section.title for section in titled] == ["", "First", "Second"]
    assert titled[0].blocks[0].rows == (("a sentence",),)
    assert [(block.kind, block.rows) for block in titled[1].blocks] == [
        ("facts", (("name", "1"),)),
        ("bullets", (("one",), ("two",))),
    ]
    table = titled[2].blocks[0]
    assert (table.columns, table.rows) == ((("what", False), ("USD", True)), (("[b]x[/b]", "$1"),))
    assert keyed(titled, "one", "none") == [titled[1]]


def test_every_section_of_every_kind_of_answer_can_be_shown(
    client: httpx.Client, planned: str, unplanned: str, question: dict[str, object]
) -> None:
    answer = client.get(f"/v1{planned}").json()
    assert len(sections(render_answer(read_answer(answer)))) > 8
    assert len(sections(render_answer(read_answer(client.get(f"/v1{unplanned}").json())))) > 2
    estimate = TypeAdapter(Estimate).validate_json(client.post("/v1/estimates", json=question).text)
    assert len(sections(render_estimate(estimate))) > 2
