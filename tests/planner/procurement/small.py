"""A catalogue with one L4, a forecast of one job, and machines that are owned."""

from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from gpuplan.api.schemas.forecast import parse_forecast
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.procurement.forecast import Forecast
from gpuplan.planner.procurement.procurement_decision import decide
from gpuplan.planner.procurement.procurement_plan import Decided
from gpuplan.providers.owned.owned_machines import read_inventory
from tests.planner.spot_settings import replaced_at_once

NOW = datetime(2026, 11, 21, tzinfo=UTC)
SETTINGS = replaced_at_once(least_saving_of_a_move_percent=0.0)
JOB = {"workload": {"kind": "preset", "model": "resnet-50", "samples": "10M"}}
PLAN_SOURCE = "AWS savings plan price files (EC2 Instance Savings Plan)"


def catalogue(
    place: tuple[str, str] = ("aws", "us-east-1"), name: str = "g6.xlarge", /, **usd_per_hour: float
) -> Columns:
    """One machine with an L4 in one place at these prices by kind; savings plan rates say whose they are."""
    provider, region = place
    machine = InstanceType(provider=provider, name=name, accelerator="L4", accelerator_count=Fraction(1), source="made")
    offers = [
        Offer(
            provider=provider,
            region=region,
            instance_type=machine.name,
            price_kind=kind,
            usd_micros_per_hour=round(usd * 1e6),
            observed_at=NOW,
            source=PLAN_SOURCE if kind.startswith("savings_plan") else "made",
        )
        for kind, usd in usd_per_hour.items()
    ]
    return columns_of("made", NOW, [machine], offers)


def forecast(**changes: Any) -> Forecast:
    """A year of one job with one card to buy, nothing discounted, no residual value."""
    given = {
        "horizon_years": 1,
        "discount_rate": 0,
        "residual_share": 0,
        "life_years": 1,
        "electricity_usd_per_kwh": 0.25,
        "machines": ["L4"],
        "prices": [{"accelerator": "L4", "usd": 1900, "power_watts": 200, "form": "node"}],
        "jobs_wait": True,
        "commitments": [],
        "jobs": [{"job": JOB, "per_year": 400}],
    }
    return parse_forecast(given | changes, now=NOW)


def decided(
    asked: Forecast,
    columns: Columns,
    settings: PlannerSettings = SETTINGS,
    owned: tuple[OwnedMachine, ...] = (),
) -> Decided:
    """The decision, which there must be."""
    decision = decide(asked, columns, settings, owned)
    assert isinstance(decision, Decided)
    return decision


def an_own_l4(**changes: Any) -> tuple[OwnedMachine, ...]:
    """One L4 of the user's own at 0.40 USD per kWh."""
    machine = {"name": "old", "accelerator": "L4", "usd_per_hour": 0, "power_watts": 200} | changes
    return read_inventory({"electricity_usd_per_kwh": 0.4, "machines": [machine]})
