"""Every number of an answer, changed one at a time by a forger who also gives the answer an id to match."""

import random
from dataclasses import replace

import pytest

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Constraints, DataSource, Preset, TrainingJob
from gpuplan.planner.model.settings import Credit, Discount, PlannerSettings
from gpuplan.planner.model.verification import Verification
from tests.planner.small_catalogues import START
from tests.planner.verify.answers import (
    Document,
    Path,
    answer_of,
    changed,
    checked,
    figure,
    names,
    numbers,
    part_of,
    small_columns,
    snapshot_columns,
    tampered,
    with_id,
)

#: What was asked: changed, it is another question, to which the answer may be right; the id tells.
ASKED = ("job", "settings", "learned")
COLUMNS = small_columns(random.Random(21), types=1, offers=14)
JOB = TrainingJob(
    name="forged",
    workload=Preset(model="gpt2", tokens=2e9),
    start=START,
    deadline_hours=120.0,
    budget_usd=50_000.0,
    constraints=Constraints(max_nodes=3),
    data=DataSource(location="aws:us-east-1", dataset_gb=300.0),
)
SETTINGS = PlannerSettings(
    discounts=(Discount(provider="aws", percent=11.0),),
    credits=(Credit(provider="aws", usd=3.0), Credit(provider="gcp", usd=5.0)),
)
PLANNED = answer_of(JOB, COLUMNS, settings=SETTINGS)
IMPOSSIBLE = replace(JOB, deadline_hours=0.6, budget_usd=1.0)
INFEASIBLE = answer_of(IMPOSSIBLE, COLUMNS, settings=SETTINGS)


def judged(answer: Document) -> Verification:
    job = JOB if part_of(answer) == "plan" else IMPOSSIBLE
    return checked(answer, job, COLUMNS, settings=SETTINGS)


def answered(answer: Document) -> list[tuple[Path, object]]:
    """Every number that is part of the answer, not of the question."""
    return [(path, value) for path, value in numbers(answer[part_of(answer)]) if path[0] not in ASKED]


def test_the_answers_hold_before_they_are_tampered_with() -> None:
    assert judged(PLANNED).wrong == ()
    assert judged(INFEASIBLE).wrong == ()
    assert len(answered(PLANNED)) > 100
    assert len(answered(INFEASIBLE)) > 15


@pytest.mark.slow(reason="long cases")
@pytest.mark.parametrize("answer", [PLANNED, INFEASIBLE], ids=["planned", "infeasible"])
def test_every_number_of_an_answer_is_named_when_it_is_changed(answer: Document) -> None:
    missed = []
    for path, value in answered(answer):
        verification = judged(tampered(answer, path, changed(value)))
        wrong = names(verification)
        # What names an offer (how many nodes) makes another offer of it, and all that follows is wrong.
        named = figure(path) in wrong or (path[-1] == "nodes" and bool(wrong))
        if not named:
            missed.append((figure(path), sorted(wrong)))
    assert missed == []


@pytest.mark.slow(reason="long cases")
@pytest.mark.parametrize("answer", [PLANNED, INFEASIBLE], ids=["planned", "infeasible"])
def test_every_sum_is_named_when_it_is_one_micro_dollar_off(answer: Document) -> None:
    # What is proven to so many digits alone, by a solver or a model.
    proven = ("certificate", "fallback", "sensitivity")
    sums = [(path, value) for path, value in answered(answer) if isinstance(value, str) and path[0] not in proven]
    assert len(sums) >= 2
    for path, value in sums:
        assert isinstance(value, str)
        wrong = names(judged(tampered(answer, path, f"{float(value) + 1e-6:.6f}")))
        assert any(figure(path).startswith(name) or name.startswith(figure(path)) for name in wrong), (path, value)


@pytest.mark.parametrize("path", [("certificate", "solver"), ("assumptions",), ("warnings",)])
def test_a_part_that_was_cut_out_is_missed_even_where_what_it_says_is_believed(path: Path) -> None:
    body = {name: dict(item) if isinstance(item, dict) else item for name, item in PLANNED["plan"].items()}
    parent = body if len(path) == 1 else body[path[0]]
    del parent[path[-1]]
    with pytest.raises(UnusableInput, match="is missing"):
        judged(with_id(PLANNED | {"plan": body}))


@pytest.mark.parametrize("answer", [PLANNED, INFEASIBLE], ids=["planned", "infeasible"])
def test_every_number_of_the_question_is_told_by_the_id(answer: Document) -> None:
    body = answer[part_of(answer)]
    asked = [(path, value) for path, value in numbers(body) if path[0] in ASKED]
    assert len(asked) > 10
    for path, value in asked:
        forged = tampered(answer, path, changed(value))
        forged[part_of(answer)]["id"] = body["id"]
        assert "id" in names(judged(forged)), path


def test_meta_is_no_part_of_what_is_claimed() -> None:
    answer = PLANNED | {"meta": {"milliseconds": -1.0, "created_at": "yesterday"}}
    assert not judged(answer).wrong_count


@pytest.mark.parametrize(
    "path",
    [
        ("phases", 0, "provider"),
        ("phases", 0, "region"),
        ("phases", 0, "instance_type"),
        ("phases", 0, "price_kind"),
        ("phases", 0, "zone"),
        ("phases", 0, "accelerator"),
        ("phases", 0, "precision"),
        ("phases", 0, "price_source"),
        ("phases", 0, "price_observed_at"),
        ("phases", 0, "layout", "checkpointing"),
        ("phases", 0, "throughput", "unit"),
        ("snapshot_id",),
        ("start",),
        ("finishes_at",),
        ("currency",),
        ("alternatives", 0, "label"),
        ("certificate", "enumeration", "node_counts"),
    ],
)
def test_every_name_of_an_answer_is_caught_when_it_is_changed(path: Path) -> None:
    assert judged(tampered(PLANNED, path, "elsewhere")).wrong_count


def test_a_figure_that_no_plan_has_is_named() -> None:
    forged = with_id(PLANNED | {"plan": PLANNED["plan"] | {"discount_usd": "12.00"}})
    assert names(judged(forged)) == {"discount_usd"}


def test_an_alternative_that_stands_there_twice_is_named() -> None:
    given = PLANNED["plan"]["alternatives"]
    forged = with_id(PLANNED | {"plan": PLANNED["plan"] | {"alternatives": [*given, given[0]]}})
    assert names(judged(forged)) == {f"alternatives[{len(given)}].label"}


def test_a_conflict_that_is_none_or_stands_there_twice_is_named_where_it_stands() -> None:
    given = INFEASIBLE["infeasible"]["conflicts"]
    for other in (given[0], ["budget_usd", "constraints.max_nodes"]):
        forged = with_id(INFEASIBLE | {"infeasible": INFEASIBLE["infeasible"] | {"conflicts": [*given, other]}})
        assert names(judged(forged)) == {f"conflicts[{len(given)}]"}


def test_an_alternative_that_is_left_out_is_missed() -> None:
    forged = with_id(PLANNED | {"plan": PLANNED["plan"] | {"alternatives": PLANNED["plan"]["alternatives"][1:]}})
    assert "alternatives" in names(judged(forged))


def test_a_bound_above_a_cheaper_offer_is_refuted_by_that_offer() -> None:
    best = answer_of(JOB, COLUMNS)["plan"]["phases"][0]["instance_type"]
    others = [offer for offer in COLUMNS.offers if offer.instance_type != best]
    answer = answer_of(JOB, snapshot_columns(list(COLUMNS.instance_types), others))
    forged = with_id(answer | {"plan": answer["plan"] | {"snapshot_id": COLUMNS.snapshot_id}})
    wrong = [finding for finding in checked(forged, JOB, COLUMNS).wrong if finding.check == "bound"]
    assert {finding.figure for finding in wrong} >= {"certificate.objective_usd", "certificate.bound_usd"}
    assert any(best in finding.why for finding in wrong)


def test_a_plan_that_is_said_not_to_exist_is_shown() -> None:
    nothing = [offer for offer in COLUMNS.offers if offer.price_kind not in ("on_demand", "spot")]
    answer = answer_of(JOB, snapshot_columns(list(COLUMNS.instance_types), nothing))
    assert answer["outcome"] == "infeasible"
    forged = with_id(answer | {"infeasible": answer["infeasible"] | {"snapshot_id": COLUMNS.snapshot_id}})
    wrong = checked(forged, JOB, COLUMNS).wrong
    assert any("meets every requirement" in finding.why for finding in wrong)


def test_a_cheaper_price_than_the_snapshots_is_named_even_where_all_else_follows_from_it() -> None:
    cheaper = [
        replace(offer, usd_micros_per_hour=offer.usd_micros_per_hour // 2)
        if offer.instance_type == PLANNED["plan"]["phases"][0]["instance_type"]
        else offer
        for offer in COLUMNS.offers
    ]
    answer = answer_of(JOB, snapshot_columns(list(COLUMNS.instance_types), cheaper), settings=SETTINGS)
    forged = with_id(answer | {"plan": answer["plan"] | {"snapshot_id": COLUMNS.snapshot_id}})
    verification = judged(forged)
    assert "phases[0].usd_per_node_hour" in {
        finding.figure for finding in verification.wrong if finding.check == "prices"
    }


def test_a_memory_that_does_not_fit_is_named_by_a_check_of_its_own() -> None:
    peak = ("phases", 0, "memory_gib_per_accelerator")
    capacity = PLANNED["plan"]["phases"][0]["capacity_gib_per_accelerator"]
    verification = judged(tampered(PLANNED, peak, capacity * 1.01))
    assert figure(peak) in {finding.figure for finding in verification.wrong if finding.check == "memory"}
    verification = judged(tampered(PLANNED, peak, 0.01))
    assert figure(peak) in {finding.figure for finding in verification.wrong if finding.check == "memory"}
