"""Sections of the command line as a page shows them: nothing of what is said there may be lost."""

import httpx
from rich.console import Group

from api.render.estimate import render_estimate
from api.render.infeasible import render_infeasible
from api.render.plan import render_plan
from api.render.tables import bullets, cell, facts, heading, listing
from api.web.told import sections, titled


def test_facts_tables_bullets_and_sentences_keep_their_text() -> None:
    parts = Group(
        cell("a sentence"),
        heading("First"),
        facts([("name", 1), ("none", None)]),
        *bullets(["one", "two"]),
        heading("Second"),
        listing(("what", "USD"), [("[b]x[/b]", "$1")], right=(1,)),
        heading("Empty"),
        facts([]),
    )
    found = sections(parts)
    assert [each.title for each in found] == ["", "First", "Second"]
    assert found[0].blocks[0].rows == (("a sentence",),)
    assert [(each.kind, each.rows) for each in found[1].blocks] == [
        ("facts", (("name", "1"),)),
        ("bullets", (("one",), ("two",))),
    ]
    table = found[2].blocks[0]
    assert (table.columns, table.rows) == ((("what", False), ("USD", True)), (("[b]x[/b]", "$1"),))
    assert titled(found, "Fir", "Zzz") == [found[1]]


def test_every_section_of_every_kind_of_answer_can_be_shown(
    client: httpx.Client, planned: str, unplanned: str, question: dict[str, object]
) -> None:
    answer = client.get(f"/v1{planned}").json()
    assert len(sections(render_plan(answer["plan"], answer["meta"]))) > 8
    assert len(sections(render_infeasible(client.get(f"/v1{unplanned}").json()["infeasible"]))) > 2
    assert len(sections(render_estimate(client.post("/v1/estimates", json=question).json()))) > 2
