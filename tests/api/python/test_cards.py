"""The cards that a notebook shows: everything of the short text, self-contained, and harmless whatever a job is called."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import gpuplan
from gpuplan.api.presentation.sections import Bar, Chart, section
from gpuplan.api.python.cards import card
from tests.api.python.test_functions import RESNET, infeasible, planned


class Words(HTMLParser):
    """The text of a document without its style sheet."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.inside.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.inside:
            self.words += data.split()


def words(text: str) -> set[str]:
    return set(text.replace("  - ", " ").split())


def test_a_plans_card_says_all_that_its_short_text_says() -> None:
    plan = planned()
    assert words(str(plan)) <= set(Words(plan._repr_html_()).words)


def test_an_infeasible_card_says_all_that_its_short_text_says() -> None:
    answer = infeasible()
    assert words(str(answer)) <= set(Words(answer._repr_html_()).words)
    assert "<svg" not in answer._repr_html_()


def test_the_chart_marks_the_plan_among_the_best_trades_and_leads_nowhere() -> None:
    html = planned()._repr_html_()
    drawings = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert len(drawings) == 2
    for drawing in map(ET.fromstring, drawings):
        titles = [chart.text or "" for chart in drawing.iter("title")]
        assert sum(title.startswith("this plan: $") for title in titles) == 1
        assert len(titles) > 3
    assert "<a " not in html
    assert "<svg" not in planned(frontier=False)._repr_html_()


@pytest.mark.parametrize("of", ["plan", "infeasible", "estimate", "why", "offers"])
def test_a_card_needs_nothing_from_elsewhere_and_runs_nothing(of: str) -> None:
    answers: dict[str, Callable[[], Any]] = {
        "plan": planned,
        "infeasible": infeasible,
        "estimate": lambda: gpuplan.estimate(RESNET, on="A100", gpus=8),
        "why": lambda: gpuplan.why(RESNET, not_="H100"),
        "offers": lambda: gpuplan.offers(provider="gcp"),
    }
    html = answers[of]()._repr_html_()
    assert not re.search(r"<script|https?://|url\(|@import|\bon\w+=|<link|<img", html)
    assert 'class="gpuplan-card' in html
    assert Words(html).inside == []


def test_a_card_follows_the_theme_of_the_notebook_and_of_the_reader() -> None:
    html = planned()._repr_html_()
    assert "color-scheme: light dark" in html
    assert re.search(r'\[data-jp-theme-light="false"\] \.gpuplan-card[^}]*color-scheme: dark', html)


def test_a_jobs_name_is_shown_as_text_whatever_it_holds() -> None:
    html = planned({**RESNET, "name": "<script>alert(1)</script>"})._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)" in html


def test_bars_are_as_long_as_their_values() -> None:
    bars = tuple(Bar(label=text, value=value, text=text) for text, value in (("a", 1.0), ("b", 4.0)))
    html = card([section("key", "Title", Chart(bars=bars))])
    assert re.findall(r"width:([\d.]+)px", html) == ["40.0", "160.0"]
