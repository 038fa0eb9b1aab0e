"""An explanation on a terminal: readable at any width, harmless whatever the names hold, complete either way."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from gpuplan.api.cli.sections import print_sections
from gpuplan.api.presentation.explanation import render_why
from gpuplan.api.presentation.text_formatting import additional_hours, difference_text, usd_per_hour
from gpuplan.api.services.composition import Services
from gpuplan.planner.model.explanation import WhyAnswer
from gpuplan.planner.model.shared import ObjectiveName
from gpuplan.planner.model.wire import wire
from tests.partial_answers import answer_of

JOB: dict[str, Any] = {
    "name": "night shift",
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "200M", "sequence_length": 4096},
    "training": {"method": "lora", "precision": "bf16"},
    "start": "2026-11-21T12:00Z",
    "deadline": "12h",
    "constraints": {"max_nodes": 8},
}


@pytest.fixture(scope="module")
def answers(gpuplan: Services) -> dict[str, WhyAnswer]:
    return {
        "worse": gpuplan.explanations.why({"job": JOB, "not": "A100"}),
        "chosen": gpuplan.explanations.why({"job": JOB, "with": "spot"}),
        "alone": gpuplan.explanations.why({"job": JOB}),
        "ruled out": gpuplan.explanations.why({"job": JOB, "not": "reserved_3y"}),
        "no plan": gpuplan.explanations.why({"job": JOB | {"deadline": "1h", "budget_usd": 1}, "not": "H100"}),
        "carbon": gpuplan.explanations.why({"job": JOB | {"objective": "carbon"}, "with": "azure"}),
        "absent": gpuplan.explanations.why({"job": JOB, "not": "owned"}),
    }


def shown(answer: WhyAnswer, *, width: int = 120) -> str:
    out = StringIO()
    console = Console(file=out, width=width, markup=False, highlight=False, emoji=False, color_system=None)
    print_sections(render_why(answer), on=console)
    return out.getvalue()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_every_answer_is_shown_at_every_width(answers: dict[str, WhyAnswer], width: int) -> None:
    for answer in answers.values():
        text = shown(answer, width=width)
        assert "night shift" in " ".join(text.split())
        assert all(len(line) <= width for line in text.splitlines())


def test_sentences_come_first_and_say_the_answer(answers: dict[str, WhyAnswer]) -> None:
    for name, phrase in (
        ("worse", "could run the job and costs"),
        ("ruled out", "cannot run the job with its requirements: constraints.price_kinds"),
        ("no plan", "the job has no plan at all"),
        ("absent", "neither the snapshot nor the owned machines include it"),
        ("chosen", "the plan runs on"),
    ):
        text = " ".join(shown(answers[name]).split())
        assert phrase in text, name
        assert text.index(phrase) < 400, name


def test_why_there_is_no_plan_shows_how_far_each_requirement_is_missed(answers: dict[str, WhyAnswer]) -> None:
    text = shown(answers["no plan"])
    assert "Why there is no plan" in text
    assert "short by" in text


def test_what_carbon_decides_is_told_in_kg(answers: dict[str, WhyAnswer]) -> None:
    why = answers["carbon"].why
    assert why.objective == ObjectiveName(of="carbon", unit="kg CO2e")
    assert all(requirement.gain.unit == "kg CO2e" for requirement in why.requirements)
    assert why.about is not None
    assert why.about.wins_at is None


def test_names_that_a_stranger_chose_stay_text(answers: dict[str, WhyAnswer]) -> None:
    hostile = "[red]x[/red]\x1b[2J\u202e"
    answer = wire(answers["worse"])
    answer["why"]["job"] = {"name": hostile}
    answer["why"]["about"]["named"] |= {"text": hostile, "names": [hostile]}
    answer["why"]["about"]["best"]["plan"]["phases"][0]["region"] = hostile
    answer["why"]["summary"] = [hostile]
    text = shown(answer_of(WhyAnswer, answer))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[red]x[/red]" in text


def test_hours_and_money_are_told_in_one_way_each(answers: dict[str, WhyAnswer]) -> None:
    answer = wire(answers["worse"])
    why = answer["why"]
    why["about"]["best"]["extra"]["hours_confident"] = -0.00669
    change = why["steps"]["changes"][0]
    change |= {"possible": True, "extra_usd": "-4.742", "extra_hours": -112.0, "extra_carbon_kg": -3.21}
    change |= {"phases": [why["about"]["best"]["plan"]["phases"][0]]}
    text = " ".join(shown(answer_of(WhyAnswer, answer), width=300).split())
    assert "-24.1 s" in text
    assert "$4.74 less, 4 d 16 h less, 3.21 kg CO2e less" in text
    for explanation in answers.values():
        text = " ".join(shown(explanation, width=300).split())
        assert "e-0" not in text
        assert " USD per node-hour" not in text
        # What every door is told is what is shown, word for word.
        assert all(" ".join(sentence.split()) in text for sentence in explanation.why.summary)
    worse = wire(answers["worse"])["why"]
    won = next(sentence for sentence in worse["summary"] if sentence.startswith("it would win at "))
    assert won.startswith(
        f"it would win at {usd_per_hour(worse['about']['wins_at']['usd_per_node_hour'])} per node-hour"
    )
    longer = worse["about"]["best"]["extra"]["hours_confident"]
    assert f"takes {difference_text(additional_hours(longer))}" in worse["summary"][0]
