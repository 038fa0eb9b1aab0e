"""Many jobs on the page, as a client without a browser meets them: sent, refused at their line, followed, ended."""

import html
import json
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import yaml

from tests import patience
from tests.api.http.test_portfolios import TUNING, hard

HOSTILE = ("</title><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "=cmd|' /C calc'!A0", "x" * 200)


def document(*names: str, **changes: object) -> str:
    jobs: list[dict[str, Any]] = [TUNING | {"name": name, "deadline": "48h"} for name in names]
    return written({"start": "2026-11-21T12:00Z", "slot": "2h", "jobs": jobs} | changes)


def written(given: dict[str, Any]) -> str:
    """The document as YAML, without anchors for what stands in it twice."""
    text: str = yaml.safe_dump(json.loads(json.dumps(given)), sort_keys=False)
    return text


def sent(client: httpx.Client, text: str, *, seconds: str = "60") -> httpx.Response:
    return client.post("/portfolio", data={"document": text, "time_limit": seconds})


def until(client: httpx.Client, path: str, wanted: Callable[[str], bool]) -> str:
    def address_of_answer() -> str | None:
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text if wanted(answer.text) else None

    return patience.until(address_of_answer)


def words(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_jobs_are_planned_and_drawn_with_a_line_for_each(client: httpx.Client) -> None:
    begun = sent(client, document("first", "second", name="pair", budget_usd=1000))
    assert begun.status_code == 303, begun.text
    page = until(client, begun.headers["location"], lambda page: "Searching for the cheapest plan" not in page)
    text = words(page)
    assert "pair" in page.split("</title>")[0]
    for phrase in ("2 of 2", "of a budget of $1,000.00", "proven the cheapest", "Optimality", "Assumptions"):
        assert phrase in text, phrase
    assert "2026-11-23 12:00" in text
    for number in (0, 1):
        assert page.count(f'href="#job-{number}"') == 2
        assert page.count(f'id="job-{number}"') == 1
    assert "http-equiv" not in page
    assert "hx-trigger" not in page


def test_jobs_that_are_sent_twice_from_one_form_are_planned_once(client: httpx.Client) -> None:
    field = re.search(r'name="once" value="([0-9a-f]{32})"', client.get("/portfolio").text)
    assert field is not None

    def begun(text: str) -> str:
        data = {"document": text, "time_limit": "60", "once": field[1]}
        path: str = client.post("/portfolio", data=data).headers["location"]
        return path

    assert begun(document("a")) == begun(document("a"))
    assert begun(document("a")) != begun(document("b"))


def test_an_evenly_indented_document_is_read_as_it_stands(client: httpx.Client) -> None:
    text = "\n\n" + "".join(f"    {line}\n" for line in document("a").splitlines())
    assert sent(client, text).status_code == 303
    answer = sent(client, text.replace("deadline: 48h", "deadline: whenever"))
    assert f"line {text.splitlines().index('      deadline: 48h') + 1}" in words(answer.text)
    textarea = re.search(r"<textarea[^>]*>(.*?)</textarea>", answer.text, re.DOTALL)
    assert textarea is not None
    # A browser drops the line's end that follows the tag.
    assert html.unescape(textarea[1]).replace("whenever", "48h") == "\n" + text


def test_names_that_are_markup_stay_names(client: httpx.Client) -> None:
    begun = sent(client, document(*HOSTILE, name=HOSTILE[0]))
    page = until(client, begun.headers["location"], lambda page: "Searching for the cheapest plan" not in page)
    assert "<script>alert" not in page
    assert "<img" not in page
    for name in HOSTILE[:3]:
        assert name in html.unescape(page)


def test_a_search_is_followed_without_scripts_and_ended_with_its_best(client: httpx.Client) -> None:
    path = sent(client, written(hard()), seconds="300").headers["location"]
    page = until(client, path, lambda page: "Best plan and lower bound over the search" in page)
    assert '<noscript><meta http-equiv="refresh"' in page
    assert f'hx-get="{path}"' in page
    assert "of 30" in words(page)
    ended = client.post(f"{path}/cancel")
    assert (ended.status_code, ended.headers["location"]) == (303, path)
    page = until(client, path, lambda page: "Searching for the cheapest plan" not in page)
    assert "was stopped early" in page
    assert "Schedule of the jobs" in page
    assert "after best plan lower bound gap" in words(page)
    # Once more changes nothing.
    assert client.post(f"{path}/cancel").status_code == 303


@pytest.mark.parametrize(
    ("text", "seconds", "message"),
    [
        ("", "5", "paste a document here"),
        ("jobs: [", "5", "not valid YAML"),
        ("- a list", "5", "its top level must be a mapping"),
        ("jobs: []", "5", "jobs"),
        ("colour: red\njobs: [{}]", "5", "line 1"),
        (document("a").replace("deadline: 48h", "deadline: whenever"), "5", "Job 1, deadline, line"),
        (document("a").replace("tokens: 200M", "tokens: 8"), "5", "Job 1, workload.tokens"),
        (document("a"), "soon", "write seconds, up to 3600"),
        (document("a"), "inf", "write seconds, up to 3600"),
        (document("a"), "-3", "write seconds, up to 3600"),
        ("a: &x 1\nb: *x", "5", "anchor"),
    ],
)
def test_what_cannot_be_planned_comes_back_with_what_to_mend(
    client: httpx.Client, text: str, seconds: str, message: str
) -> None:
    answer = sent(client, text, seconds=seconds)
    assert answer.status_code == 422
    assert message in words(answer.text)
    assert 'aria-invalid="true"' in answer.text
    textarea = re.search(r"<textarea[^>]*>(.*?)</textarea>", answer.text, re.DOTALL)
    assert textarea is not None
    assert html.unescape(textarea[1]).strip() == text.strip()


def test_the_line_at_fault_is_shown(client: httpx.Client) -> None:
    answer = sent(client, document("a", "b").replace("name: b", "nmae: b"))
    line = document("a", "b").splitlines().index("  name: b") + 1
    assert f"line {line}" in words(answer.text)
    assert f"{line}: nmae: b" in words(answer.text)


def test_a_file_counts_before_what_is_pasted(client: httpx.Client) -> None:
    files = {"file": ("<b>.yaml", b"jobs: [")}
    answer = client.post("/portfolio", data={"document": document("a")}, files=files)
    assert answer.status_code == 422
    assert "<b>.yaml line 2" in words(answer.text)
    assert "<b>.yaml" not in answer.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Origin": "https://elsewhere.example"}, 403), ({"Sec-Fetch-Site": "cross-site"}, 403)],
)
def test_a_page_elsewhere_can_neither_begin_nor_end_a_search(
    client: httpx.Client, headers: dict[str, str], status: int
) -> None:
    assert client.post("/portfolio", data={"document": document("a")}, headers=headers).status_code == status
    assert client.post("/portfolio/any/cancel", headers=headers).status_code == status


def test_what_is_no_portfolio_has_no_page(client: httpx.Client) -> None:
    for path in ("/portfolio/none", "/portfolio/%0a", f"/portfolio/{'x' * 300}"):
        assert client.get(path).status_code in {404, 422}
    assert client.post("/portfolio/none/cancel").status_code == 404
    assert client.post("/portfolio", json={"jobs": []}).status_code == 415


def test_the_example_can_be_planned(client: httpx.Client) -> None:
    page = client.get("/portfolio?example=true").text
    text = re.search(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL)
    assert text is not None
    begun = sent(client, html.unescape(text[1]), seconds="5")
    assert begun.status_code == 303, begun.text
    page = until(client, begun.headers["location"], lambda page: "Searching for the cheapest plan" not in page)
    assert "4 of 4" in words(page)
