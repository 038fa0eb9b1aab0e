"""The short answer as a reader sees it: one screen, the figures of the JSON, and what has to be done."""

import io
import random
import re
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console
from rich.text import Text

from gpuplan.api.cli.sections import SHORT_LINES, SHORT_WIDTH, draw, print_short
from gpuplan.api.presentation.sections import Sentence, facts, notes, section
from gpuplan.api.presentation.short import short_answer
from gpuplan.api.presentation.short_plan import (
    MOST_ACTIONS,
    MOST_ALTERNATIVES,
    average_with_refusals,
    different_alternatives,
    ladder_lines,
    shown_choices,
)
from gpuplan.api.presentation.text_formatting import chance, duration, number, percent, usd
from gpuplan.api.schemas.answers import read_answer
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import Services, open_services
from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.plan import InfeasibleAnswer, Plan, PlanAnswer, PlannedAnswer
from gpuplan.planner.model.wire import wire
from tests.api.presentation.test_plan import CHOICE, PLAN
from tests.partial_answers import answer_of

FILES = Path(__file__).resolve().parents[3] / "examples"
EXAMPLES = sorted(path for path in FILES.glob("*.yaml") if path.name != "inventory.yaml")
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
REST = "plan-3bfcac363a56549fc306; full answer: add --details"


def drawn_job(seed: int) -> dict[str, Any]:
    """A job of any class, with or without deadline, budget and constraints; some have no plan."""
    draw = random.Random(seed)
    models: list[tuple[str, dict[str, float]]] = [
        ("llama-3-8b", {"tokens": draw.choice([2e8, 1e10, 1e12])}),
        ("llama-3-70b", {"tokens": draw.choice([1e8, 3e10])}),
        ("resnet-50", {"samples": draw.choice([1e6, 1e8])}),
        ("bert-large", {"tokens": draw.choice([1e8, 1e11])}),
        ("stable-diffusion-1.5", {"samples": 400_000}),
    ]
    model, amount = draw.choice(models)
    job: dict[str, Any] = {
        "name": "a job with a name that is longer than a line of a terminal " * draw.randint(0, 2) or "job",
        "workload": {"kind": "preset", "model": model, **amount},
        "constraints": {"max_nodes": draw.choice([1, 4, 64])},
        "objective": draw.choice(["cost", "cost", "time"]),
    }
    if draw.random() < 0.8:
        job["deadline"] = f"{draw.choice([2, 24, 300])}h"
    if draw.random() < 0.3:
        job["budget_usd"] = draw.choice([5, 500, 50_000])
    if draw.random() < 0.3:
        job["constraints"]["vendors"] = ["NVIDIA"]
    if draw.random() < 0.3:
        job["constraints"]["price_kinds"] = ["on_demand"]
    return job


#: Every example file that is shipped: it has a plan.
PLANNED = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in EXAMPLES]
JOBS = [pytest.param(job, id=path.stem) for job, path in zip(PLANNED, EXAMPLES, strict=True)] + [
    pytest.param(drawn_job(seed), id=f"drawn-{seed}") for seed in range(32)
]
JOBS.append(
    pytest.param(
        {"workload": {"kind": "preset", "model": "whisper-large-v3", "samples": 1e6}, "deadline": "120h"},
        id="one-machine-in-two-zones",
    )
)
CHEAPER_WITH_A_STANDBY: dict[str, Any] = {
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": 5e8, "sequence_length": 4096},
    "training": {"method": "lora", "precision": "bf16"},
    "deadline": "4h",
    "start": "2026-11-20T00:00:00Z",
    "constraints": {"max_nodes": 8},
}
JOBS.append(pytest.param(CHEAPER_WITH_A_STANDBY, id="cheaper-with-a-standby"))


def shown(answer: PlanAnswer, *, coloured: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=200, markup=False, highlight=False, force_terminal=coloured, no_color=False)
    print_short(short_answer(answer), rest=REST, on=console)
    return out.getvalue()


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("job", JOBS)
def test_a_short_answer_fits_a_screen_and_has_the_figures_of_the_json(gpuplan: Services, job: dict[str, Any]) -> None:
    answer = gpuplan.plans.plan(job, now=NOW, save=False)
    text = shown(answer)
    lines = [line.rstrip() for line in text.splitlines()]
    assert len(lines) <= SHORT_LINES
    assert max(map(len, lines)) <= SHORT_WIDTH
    assert lines[-1] == REST
    assert read_answer(wire(answer)) == answer
    if isinstance(answer, PlannedAnswer):
        says_the_plan(words(text), answer.plan, is_full=len(lines) >= SHORT_LINES - 2)
    else:
        assert job not in PLANNED
        says_the_way_out(words(text), answer)


@pytest.mark.parametrize("width", [24, 26, 31, 37, 40, 43, 52])
@pytest.mark.parametrize(
    "sentence", ["met with a probability of 90 % in 2 d 7 h, 80 GiB of 1,792 GB at 400 W", "90 % of 30 d"]
)
def test_no_line_ends_between_a_number_and_its_unit(sentence: str, width: int) -> None:
    out = io.StringIO()
    for part in draw(section("s", sentence, Sentence(text=sentence), facts(("time", sentence)), notes([sentence]))):
        Console(file=out, width=width, markup=False, highlight=False).print(part)
    lines = [line.strip() for line in out.getvalue().splitlines()]
    assert not any(
        line.startswith(("% ", "d ", "h ", "h,", "GiB", "GB", "W")) or line in ("%", "d", "h") for line in lines
    )
    assert " ".join(lines).replace("time ", "").replace("- ", "").split() == 4 * sentence.split()


def place_of(provider: str, region: str) -> str:
    return f"{provider} {'(place not stated)' if region == 'unknown' else region}"


def says_the_plan(text: str, plan: Plan, *, is_full: bool) -> None:
    for phase in plan.phases:
        assert f"x {phase.instance_type}" in text or phase.instance_type in text
        assert place_of(phase.provider, phase.region) in text
    assert f"{usd(plan.cost_usd.expected)} expected" in text
    assert f"within {usd(plan.cost_usd.p95)}" in text
    waits = any(phase.preemption_wait_hours for phase in plan.phases)
    far = " without rare outages" if waits and plan.hours.p95 > 2 * plan.hours.expected else ""
    assert f"{duration(plan.hours.expected)} expected{far}, 95 % of runs within {duration(plan.hours.p95)}" in text
    assert ("if refusals lead to the choices below" in text) == (average_with_refusals(plan) is not None)
    parts = plan.cost_usd.breakdown.parts()
    del parts["compute"]
    for name, amount in parts.items():
        assert (f"expected, {usd(amount)} of it {name.replace('setup', 'set-up')};" in text) == (
            amount == max(parts.values()) and amount >= max(plan.cost_usd.expected / 10, Decimal("0.01"))
        )
    if plan.deadline_probability is not None:
        on_spot = any(price_kinds()[phase.price_kind].interruptible for phase in plan.phases if not phase.is_standby)
        likely = chance(plan.deadline_probability)
        waits = on_spot and plan.settings["spot_wait_hours"] == 0
        on_a_line = likely.replace("more than ", ">").replace("less than ", "<")
        assert (
            f"{on_a_line} likely if spot is replaced at once" if waits else f"met with a probability of {likely}"
        ) in text
        assert "If it falls behind" in text
    for _, alternative in different_alternatives(plan):
        assert usd(alternative.extra_usd) in text
        assert alternative.cost_usd - plan.cost_usd.expected == alternative.extra_usd
    for choice in shown_choices(plan):
        place = place_of(choice.provider, choice.region)
        bf16 = "bf16" in {phase.precision for phase in plan.phases} and choice.accelerator.startswith(
            ("V100", "T4", "P100")
        )
        kind = choice.price_kind.replace("_", " ") + (", without bf16" if bf16 else "")
        rest = f", {kind}: {usd(choice.cost_usd)}, chance "
        alike = [
            other
            for other in (*plan.phases, *shown_choices(plan))
            if (other.nodes, other.instance_type, other.provider, other.region, other.price_kind)
            == (choice.nodes, choice.instance_type, choice.provider, choice.region, choice.price_kind)
        ]
        assert (f"{choice.zone}{rest}" if len(alike) > 1 and choice.zone else f"{place}{rest}") in text
    # An answer that fills the screen leaves out actions, the last first.
    all_shown = [words(action) in text for action in (plan.actions or ())[:MOST_ACTIONS]]
    assert all(all_shown[:1] if is_full else all_shown)
    assert text.count("days old") <= 1


def says_the_way_out(text: str, answer: InfeasibleAnswer) -> None:
    infeasible = answer.infeasible
    assert "No plan meets" in text
    assert all(name in text for names in infeasible.conflicts for name in names)
    if infeasible.relaxations:
        least = min(infeasible.relaxations, key=lambda relaxation: relaxation.cost_usd)
        assert usd(least.cost_usd) in text
        assert all(part in text for part in least.to.split("; "))
        for hours in re.findall(r"set deadline to ([\d.]+) h, which is", text):
            assert float(hours) >= 72
            assert f"set deadline to {hours} h, which is {number(float(hours) / 24)} d (now" in text
        late = any("deadline" in names for names in infeasible.conflicts)
        assert (f"or set max_nodes to more than {infeasible.searched_nodes:,}" in text) == late


def test_a_coloured_answer_has_the_same_lines(gpuplan: Services, job: dict[str, Any]) -> None:
    answer = gpuplan.plans.plan(job, save=False)
    plain = [line.rstrip() for line in Text.from_ansi(shown(answer, coloured=True)).plain.splitlines()]
    assert plain == [line.rstrip() for line in shown(answer).splitlines()]
    assert "\x1b[" in shown(answer, coloured=True)


def test_the_cheapest_if_obtained_is_not_named_again_after_the_next_choices() -> None:
    choice = CHOICE | {"cost_usd": "1400.00", "chance": 0.2, "chance_when_tried": 0.2, "after_minutes": 0.0}
    other, tried = (
        choice | {"nodes": 3, "after_minutes": 20.0},
        choice | {"after_minutes": 40.0, "chance_when_tried": 0.1},
    )
    for next_choices, lines in (([other], 1 + 2), ([other, tried], 2)):
        ladder = {"chance": 0.5, "cheapest_if_obtained": choice, "next_choices": next_choices}
        assert ladder_lines(answer_of(Plan, PLAN["plan"] | {"capacity_ladder": ladder})) == lines


def test_a_cheaper_plan_with_a_standby_that_is_hard_to_obtain_stays_visible(gpuplan: Services) -> None:
    answer = gpuplan.plans.plan(CHEAPER_WITH_A_STANDBY, now=NOW, save=False)
    assert isinstance(answer, PlannedAnswer)
    ladder = answer.plan.capacity_ladder
    assert len(answer.plan.phases) == 1
    assert ladder is not None
    assert ladder.changing_machines is not None
    assert ladder.changing_machines.cost_usd.expected == answer.plan.certificate.objective_usd
    text = words(shown(answer))
    assert "least average cost" in text
    cost = usd(ladder.changing_machines.cost_usd.expected)
    assert f"on demand standing by: {cost}, chance {percent(ladder.changing_machines.chance)}" in text


def test_alternatives_differ_in_kind_and_keep_the_requirements(gpuplan: Services) -> None:
    job = yaml.safe_load((FILES / "llama-3-8b.yaml").read_text(encoding="utf-8"))
    job["training"]["framework"] = "any"
    job["deadline"] = "10d"
    answer = gpuplan.plans.plan(job, now=NOW, save=False)
    assert isinstance(answer, PlannedAnswer)
    beside = list(different_alternatives(answer.plan))
    assert answer.plan.capacity_ladder is not None
    assert len(beside) == MOST_ALTERNATIVES - ladder_lines(answer.plan) // 2
    shown_ones = list(different_alternatives(replace(answer.plan, capacity_ladder=None)))
    assert len(shown_ones) == MOST_ALTERNATIVES
    alternatives = {kind: alternative for kinds, alternative in shown_ones for kind in kinds.split(", ")}
    assert accelerators()[answer.plan.phases[0].accelerator].stack != "cuda"
    assert accelerators()[alternatives["on NVIDIA"].accelerator].vendor == "NVIDIA"
    assert price_kinds()[alternatives["on demand"].price_kind].is_plain
    alone = alternatives.get("no standby")
    in_time = [alternative.cost_usd for alternative in answer.plan.alternatives if alternative.meets_deadline]
    assert alone is None or alone.cost_usd == min(in_time)
    assert all(alternative.meets_deadline and alternative.meets_budget for alternative in alternatives.values())


def test_the_best_of_each_vendor_is_the_cheapest_of_what_runs_on_it(gpuplan: Services, job: dict[str, Any]) -> None:
    free = wire(gpuplan.plans.plan(job, save=False))["plan"]
    labels = {alternative["label"]: alternative for alternative in free["alternatives"]}
    on_nvidia = labels["best on NVIDIA accelerators"]
    alone = wire(
        gpuplan.plans.plan(
            job | {"constraints": job["constraints"] | {"vendors": ["NVIDIA"], "max_phases": 1}}, save=False
        )
    )["plan"]
    assert Decimal(on_nvidia["cost_usd"]) == Decimal(alone["cost_usd"]["expected"])


def test_owned_machines_are_used_and_not_rented(database_url: str) -> None:
    with_machines = open_services(Environment(database_url=database_url, inventory=FILES / "inventory.yaml"))
    job = {
        "workload": {"kind": "preset", "model": "bert-large", "tokens": "1B"},
        "deadline": "2d",
        "constraints": {"providers": ["local"]},
    }
    text = words(shown(with_machines.plans.plan(job, now=NOW, save=False)))
    assert " use 1 x workstation-4090" in text
    assert "your own" in text
    assert "quota" not in text
    assert "days old" not in text


def test_an_answer_of_another_release_is_refused_with_the_way_to_see_it(gpuplan: Services, job: dict[str, Any]) -> None:
    answer = wire(gpuplan.plans.plan(job, save=False))
    del answer["plan"]["hours"]["p95"]
    with pytest.raises(UnusableInput, match="--json"):
        read_answer(answer)
