"""Plans at expected prices: old spot prices move before offers are compared, and everything else stays."""

from datetime import timedelta
from fractions import Fraction

import numpy as np
import pytest

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.cost.planned_prices import planned_prices
from gpuplan.planner.model.job import Constraints, Explicit, TrainingJob
from gpuplan.planner.model.settings import Discount, PlannerSettings
from tests.planner.small_catalogues import START
from tests.planner.spot_settings import replaced_at_once
from tests.planner.verify.answers import answer_of, checked, snapshot_columns, tampered

AS_OBSERVED = replaced_at_once(prices="as-observed")
P5 = InstanceType(
    provider="aws",
    name="p5.48xlarge",
    accelerator="H100-80GB-SXM",
    accelerator_count=Fraction(8),
    ram_gib=2000.0,
    clusters=True,
    network_gbps=3200.0,
    intranode_gbs=450.0,
)


def offer(kind: str, usd: float, *, days: int = 0, zone: str = "") -> Offer:
    return Offer(
        provider="aws",
        region="us-east-1",
        zone=zone,
        instance_type=P5.name,
        price_kind=kind,
        usd_micros_per_hour=round(usd * 1e6),
        observed_at=START - timedelta(days=days),
        source="made up",
    )


def columns(*offers: Offer) -> Columns:
    return snapshot_columns([P5], list(offers))


def usd_of(priced: Columns, kind: str, zone: str = "") -> float:
    rows = [priced.offer(i) for i in range(len(priced))]
    return next(row.usd_micros_per_hour / 1e6 for row in rows if (row.price_kind, row.zone) == (kind, zone))


def test_only_prices_of_some_age_move() -> None:
    rows = columns(
        offer("spot", 8.0, days=120, zone="use1-az1"),
        offer("spot", 8.0, zone="use1-az2"),
        offer("on_demand", 55.04, days=120),
        offer("reserved_1y", 30.0, days=700),
    )
    priced = planned_prices(rows, replaced_at_once(), START)
    assert usd_of(priced, "spot", "use1-az1") > 9.0
    assert usd_of(priced, "spot", "use1-az2") == 8.0
    assert (usd_of(priced, "on_demand"), usd_of(priced, "reserved_1y")) == (55.04, 30.0)


def test_as_observed_prices_are_the_rows_themselves() -> None:
    rows = columns(offer("spot", 8.0, days=120), offer("on_demand", 55.04))
    assert planned_prices(rows, AS_OBSERVED, START) is rows


def test_the_age_counts_from_the_start_of_the_job_and_not_from_the_clock() -> None:
    rows = columns(offer("spot", 8.0, days=120), offer("on_demand", 55.04))
    ages = (-121, -120, -60, 0, 60)
    prices = [usd_of(planned_prices(rows, replaced_at_once(), START + timedelta(days=days)), "spot") for days in ages]
    assert prices[:2] == [8.0, 8.0]
    assert prices == sorted(prices)
    assert prices[-1] > prices[1]


def test_arrays_and_rows_have_the_same_price_to_the_micro_dollar() -> None:
    rows = columns(
        *(offer("spot", 3.3333 + n, days=31 * n + 1, zone=f"z{n}") for n in range(9)), offer("on_demand", 55.0)
    )
    priced = planned_prices(rows, replaced_at_once(), START)
    for number in range(len(priced)):
        assert priced.offer(number).usd_micros_per_hour == round(float(priced.usd_per_hour[number]) * 1e6)


def test_a_percentage_is_off_the_expected_price_and_a_price_in_dollars_is_fixed() -> None:
    rows = columns(offer("spot", 8.0, days=120), offer("on_demand", 55.04))
    expected = usd_of(planned_prices(rows, replaced_at_once(), START), "spot")
    percent = replaced_at_once(discounts=(Discount(provider="aws", price_kind="spot", percent=10),))
    agreed = replaced_at_once(discounts=(Discount(provider="aws", price_kind="spot", usd_per_hour=5.0),))
    off, fixed = (planned_prices(rows, chosen, START) for chosen in (percent, agreed))
    assert usd_of(off, "spot") == pytest.approx(0.9 * expected, abs=2e-6)
    assert usd_of(fixed, "spot") == 5.0
    estimates = {
        name: next(row.price_estimate for row in priced.offers if row.price_kind == "spot")
        for name, priced in (("off", off), ("fixed", fixed))
    }
    assert estimates["fixed"] is None
    assert estimates["off"] is not None
    assert estimates["off"].observed_usd_micros_per_hour == 7_200_000


def test_leaving_offers_out_changes_no_expected_price() -> None:
    rows = columns(offer("spot", 8.0, days=120), offer("on_demand", 55.04))
    at = np.flatnonzero([row.price_kind == "spot" for row in rows.offers])
    alone = rows.subset(at, [rows.offer(int(i)) for i in at])
    assert usd_of(planned_prices(alone, replaced_at_once(), START), "spot") == usd_of(
        planned_prices(rows, replaced_at_once(), START), "spot"
    )


JOB = TrainingJob(
    name="old prices",
    workload=Explicit(total_flops=3e20, memory_gib=200.0, steps=1000.0),
    start=START,
    constraints=Constraints(max_nodes=2, max_phases=1),
)
#: The cheaper of two zones was read long ago, the other one lately.
ROWS = columns(
    offer("spot", 9.0, days=150, zone="use1-az1"),
    offer("spot", 9.5, days=20, zone="use1-az2"),
    offer("on_demand", 55.04, days=20),
)
SETTINGS = replaced_at_once()


def test_a_plan_shows_the_observed_price_and_the_band_in_its_cost() -> None:
    plan = answer_of(JOB, ROWS)["plan"]
    phase, estimate = plan["phases"][0], plan["phases"][0]["price_estimate"]
    assert phase["zone"] == "use1-az2"
    assert estimate["observed_usd_per_node_hour"] == "9.50"
    assert estimate["age_days"] == 20
    usd = [
        float(value)
        for value in (
            estimate["low_usd_per_node_hour"],
            phase["usd_per_node_hour"],
            estimate["high_usd_per_node_hour"],
        )
    ]
    assert usd == sorted(usd)
    costs = [float(plan["cost_usd"][name]) for name in ("price_low", "expected", "price_high")]
    assert costs == sorted(costs)
    assert costs[0] < costs[2]


def test_an_old_low_price_does_not_beat_a_fresh_one_that_is_slightly_higher() -> None:
    as_observed = answer_of(JOB, ROWS, settings=AS_OBSERVED)["plan"]
    assert as_observed["phases"][0]["zone"] == "use1-az1"
    assert "price_estimate" not in as_observed["phases"][0]
    assert "price_low" not in as_observed["cost_usd"]


@pytest.mark.parametrize("settings", [SETTINGS, AS_OBSERVED])
def test_verify_recomputes_the_prices_of_a_plan(settings: PlannerSettings) -> None:
    assert checked(answer_of(JOB, ROWS, settings=settings), JOB, ROWS, settings=settings).wrong == ()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("phases", 0, "usd_per_node_hour"), "9.50"),
        (("phases", 0, "price_estimate", "observed_usd_per_node_hour"), "8.00"),
        (("phases", 0, "price_estimate", "low_usd_per_node_hour"), "1.00"),
        (("phases", 0, "price_estimate", "high_usd_per_node_hour"), "10.00"),
        (("phases", 0, "price_estimate", "age_days"), 3),
        (("cost_usd", "price_low"), "1.00"),
        (("cost_usd", "price_high"), "100000.00"),
    ],
)
def test_verify_finds_a_tampered_price(path: tuple[str | int, ...], value: object) -> None:
    assert checked(tampered(answer_of(JOB, ROWS), path, value), JOB, ROWS).wrong


def test_verify_finds_a_plan_that_was_made_at_observed_prices() -> None:
    answer = answer_of(JOB, ROWS, settings=AS_OBSERVED)
    assert any(wrong.check == "prices" for wrong in checked(answer, JOB, ROWS).wrong)


@pytest.mark.parametrize("settings", [SETTINGS, AS_OBSERVED])
def test_one_more_offer_never_makes_a_plan_dearer(settings: PlannerSettings) -> None:
    fewer = columns(*(row for row in ROWS.offers if row.zone != "use1-az2"))
    costs = [float(answer_of(JOB, rows, settings=settings)["plan"]["cost_usd"]["expected"]) for rows in (fewer, ROWS)]
    assert costs[1] <= costs[0]
