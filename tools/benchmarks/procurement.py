"""How long own, commit or rent takes: hourly demand over ten years and 100 scenarios, and whole forecasts.

The first table is the load-duration curve and its model against the closed form (asked: at most 1 s together). The
second answers forecasts on the embedded catalogue with everything that `gpuplan buy` shows.
"""

import time
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuplan.api.schemas.forecast import parse_forecast
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.offer_columns import columns_of
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.procurement.capacity_expansion import expand
from gpuplan.planner.procurement.expansion_model import Expansion
from gpuplan.planner.procurement.load_duration import busy_hours, duration_levels
from gpuplan.planner.procurement.procurement_decision import decide
from gpuplan.planner.procurement.procurement_model import model_of
from gpuplan.planner.procurement.procurement_plan import Decided
from gpuplan.planner.procurement.served_jobs import served
from gpuplan.providers.owned.owned_machines import read_inventory

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def screened(fixed_usd: Floats, usd_per_hour: Floats, busy: Floats) -> tuple[Ints, float]:
    """The cheapest source of each machine (`busy` hours of the i-th, falling) and the sum of the costs in USD.

    The first of equally cheap sources is taken.
    """
    costs = fixed_usd[None, :] + busy[:, None] * usd_per_hour[None, :]
    chosen = costs.argmin(axis=1)
    return chosen.astype(np.int64), float(costs[np.arange(len(busy)), chosen].sum())


YEARS, SCENARIOS = 10, 100
NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


def demand(machines: float, seed: int) -> NDArray[np.int16]:
    """Hourly demand with days, weeks, growth and a level of its own in each scenario, in whole machines."""
    rng = np.random.default_rng(seed)
    hour = np.arange(YEARS * 8760)
    shape = 1 + 0.3 * np.sin(2 * np.pi * hour / 24) + 0.2 * np.sin(2 * np.pi * hour / 168) + hour / hour[-1]
    level = machines * rng.lognormal(0, 0.2, SCENARIOS)
    hourly: NDArray[np.int16] = rng.poisson(shape[:, None] * level[None, :] / 1.5).astype(np.int16)
    return hourly


def _curve() -> None:
    print(f"{'machines':>9} {'levels':>7} {'points':>11} {'curve s':>8} {'model s':>8} {'relative difference':>20}")
    fixed, running, rent = np.array([250_000.0, 130_000.0, 60_000.0]), np.array([0.8, 3.0, 5.5]), 8.0
    for machines in (3.0, 30.0, 300.0):
        hourly = demand(machines, seed=1)
        began = time.perf_counter()
        levels, hours = duration_levels(hourly)
        curve = time.perf_counter() - began
        began = time.perf_counter()
        result = expand(
            Expansion(
                fixed_usd=fixed,
                most_units=np.full(3, np.inf),
                machine_hours=np.ones((3, 1)),
                running_usd=running[:, None],
                rent_usd=np.array([rent]),
                hours=hours,
                runs_per_hour=levels[:, None].astype(np.float64),
                lasts=np.ones((3, len(levels)), np.bool_),
                uses=np.zeros((0, 3)),
                available=np.zeros(0),
            )
        )
        model = time.perf_counter() - began
        assert result is not None
        _, cost = screened(np.append(fixed, 0.0), np.append(running, rent), busy_hours(levels, hours))
        apart = abs(result.objective_usd / cost - 1)
        print(f"{machines:>9.0f} {len(levels):>7} {hourly.size:>11,} {curve:>8.2f} {model:>8.2f} {apart:>20.1e}")


def _job(model: str, size: dict[str, str], rate: dict[str, Any], **extra: Any) -> dict[str, Any]:
    return {"job": {"workload": {"kind": "preset", "model": model} | size, "deadline": "10d"} | extra} | rate


def forecasts() -> list[dict[str, Any]]:
    """A home, a lab and a company."""
    plain = {"constraints": {"price_kinds": ["on_demand"]}}
    home = [_job("resnet-50", {"samples": "115M"}, {"per_month": 8}, **plain)]
    lab = [
        _job("resnet-50", {"samples": "115M"}, {"per_month": {"low": 4, "expected": 10, "high": 20}}),
        _job("bert-large", {"tokens": "20B"}, {"per_month": 6}),
        _job("qwen2.5-7b", {"tokens": "200M"}, {"per_month": 20}, **plain),
    ]
    company = [
        _job("llama-3-8b", {"tokens": "20B"}, {"per_month": {"low": 20, "expected": 30, "high": 60}}, **plain),
        _job("llama-3-70b", {"tokens": "1B"}, {"per_month": 6}, training={"method": "lora"}, **plain),
        _job("bert-large", {"tokens": "20B"}, {"per_year": 500, "growth_per_year": "20%"}, **plain),
        _job("mixtral-8x7b", {"tokens": "2B"}, {"per_year": 100}, training={"method": "qlora"}, **plain),
    ]
    return [
        {"name": "home", "electricity_usd_per_kwh": 0.35, "limits": {"slots": 2, "power_watts": 1500}, "jobs": home},
        {"name": "lab", "electricity_usd_per_kwh": 0.2, "limits": {"upfront_usd": 60_000}, "jobs": lab},
        {"name": "company", "electricity_usd_per_kwh": 0.12, "pue": 1.3, "horizon_years": 5, "jobs": company},
    ]


def owned_machines() -> tuple[OwnedMachine, ...]:
    """What the lab has already."""
    rig = {"name": "rig", "accelerator": "RTX 3090", "count": 4, "machines": 2, "usd_per_hour": 0, "power_watts": 1900}
    return read_inventory({"electricity_usd_per_kwh": 0.2, "machines": [rig]})


def _forecasts() -> None:
    print(f"\n{'forecast':>9} {'jobs':>5} {'variables':>10} {'estimates s':>12} {'model s':>8} {'all s':>7} {'gap':>8}")
    snapshot = embedded_snapshot()
    columns = columns_of(snapshot.id, snapshot.observed_at, snapshot.instance_types, snapshot.offers)
    home, lab, company = forecasts()
    for document, owned in ((home, ()), (lab, ()), (lab | {"name": "lab+own"}, owned_machines()), (company, ())):
        forecast = parse_forecast(document, now=NOW)
        began = time.perf_counter()
        given = served(forecast, columns, PlannerSettings(), owned)
        estimates = time.perf_counter() - began
        began = time.perf_counter()
        expand(model_of(forecast, given).expansion)
        model = time.perf_counter() - began
        began = time.perf_counter()
        result = decide(forecast, columns, PlannerSettings(), owned)
        whole = time.perf_counter() - began
        assert isinstance(result, Decided)
        size = f"{len(forecast.jobs):>5} {result.proof.variables:>10,}"
        print(f"{forecast.name:>9} {size} {estimates:>12.2f} {model:>8.2f} {whole:>7.1f} {result.proof.gap:>8.1e}")
        priced_configurations = [f"{item.units} x {item.machine.name}" for item in result.buy]
        terms = [
            f"{commit.units} x {commit.offer.instance_type} ({commit.offer.price_kind})" for commit in result.commit
        ]
        rented = [f"{rent.share:.0%}" for rent in result.rent]
        print(
            f"{'':>9} {', '.join(priced_configurations + terms) or 'nothing bought'}; rented of each job: {', '.join(rented)}"
        )


def main() -> None:
    """Print both tables."""
    _curve()
    _forecasts()


if __name__ == "__main__":
    main()
