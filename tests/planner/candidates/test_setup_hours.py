"""Set-up is modelled by provider, kind of machine and node count unless the user states it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.snapshots.offer_columns import columns_of
from gpuplan.planner.candidates.setup_hours import setup_hours_of
from gpuplan.planner.model.outcome import Planned
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.planning import plan
from tests.planner.plain_setup import plain_setup_hours
from tests.planner.test_what_may_be_chosen import BOX, JOB, START, market, offer


def test_every_row_has_a_source_a_date_and_a_value_inside_its_band() -> None:
    rows = data_table("setup_times.csv")
    for row in rows:
        assert float(row["low"]) <= float(row["value"]) <= float(row["high"]), row
        assert row["basis"] in {"measured", "reported", "assumption", "definition"}, row
        assert all(row[name] for name in ("source", "as_of", "meaning")), row
        assert ("https://" in row["source"]) or row["basis"] in {"assumption", "definition"}, row
    assert len({(row["part"], row["provider"], row["machine"]) for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("provider", "accelerator", "price_kind"),
    [
        ("aws", "H100-80GB-SXM", "on_demand"),
        ("aws", "H100-80GB-SXM", "capacity_block"),
        ("gcp", "TPU-v5e", "spot"),
        ("runpod", "H100-80GB-SXM", "on_demand"),
        ("oci", "H100-80GB-SXM", "on_demand"),
        ("local", "H100-80GB-SXM", "owned"),
    ],
)
def test_hours_follow_from_provider_kind_of_machine_and_nodes(provider: str, accelerator: str, price_kind: str) -> None:
    machine = replace(BOX, provider=provider, accelerator=accelerator)
    columns = columns_of("made-up", START, (machine,), (offer(price_kind, provider=provider),))
    nodes, type_ = np.array([1, 2, 300]), np.zeros(3, np.intp)
    kind = np.full(3, columns.kind_index[0], np.intp)
    modelled = setup_hours_of(columns, type_, kind, nodes, None)
    by_hand = [
        plain_setup_hours(provider, accelerator, price_kind, count, PlannerSettings()) for count in nodes.tolist()
    ]
    assert modelled == pytest.approx(by_hand, rel=1e-12)
    assert setup_hours_of(columns, type_, kind, nodes, 0.4).tolist() == [0.4] * 3


def planned(settings: PlannerSettings) -> Planned:
    answer = plan(replace(JOB, confidence=0.9), market(offer("on_demand", 8.0)), settings=settings)
    assert isinstance(answer, Planned)
    return answer


def test_a_phase_states_the_set_up_of_its_machines_and_a_plan_pays_for_it() -> None:
    phase = planned(PlannerSettings()).phases[0]
    choice = phase.choice
    by_hand = plain_setup_hours(
        choice.offer.provider, choice.accelerator, choice.offer.price_kind, choice.nodes, PlannerSettings()
    )
    assert phase.setup_hours == pytest.approx(by_hand, rel=1e-12)
    mean = phase.hours_with_goodput * math.exp(phase.log_sigma**2 / 2)
    assert choice.hours.expected == pytest.approx(by_hand + mean)
    usd = choice.nodes * choice.offer.usd_micros_per_hour * by_hand
    assert choice.cost.setup == pytest.approx(usd, rel=1e-6)


def test_a_stated_set_up_wins_and_is_said_without_a_band() -> None:
    modelled, stated = planned(PlannerSettings()), planned(PlannerSettings(setup_hours=0.75))
    assert stated.phases[0].setup_hours == 0.75
    sentences = [
        next(line for line in answer.assumptions if "set-up before the first step" in line)
        for answer in (modelled, stated)
    ]
    assert "modelled (band" in sentences[0]
    assert "https://github.com/skypilot-org" in sentences[0]
    assert sentences[1].startswith("0.75 h of paid set-up")
    assert "band" not in sentences[1]
