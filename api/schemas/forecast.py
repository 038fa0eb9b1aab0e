"""The forecast document: future jobs, machines that may be bought, and limits of space, power and money."""

from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue

from gpuplan.api.schemas.forecast_rates import Rates, change, rates, share, share_or_none
from gpuplan.api.schemas.job import COST_ALONE, JOB_EXAMPLE, parse_job
from gpuplan.api.schemas.procurement_prices import PriceDocument, PurchaseRules, machine_life, machines_of
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.parsing.document_fields import (
    Document,
    Label,
    Listed,
    Reads,
    YesNo,
    choice,
    quantity,
    read_as,
    whole_number,
)
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.place_names import price_kind_name, vendor_name
from gpuplan.catalog.parsing.quantities import count, moment, usd
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.procurement.forecast import Forecast, ForecastJob, Limits
from gpuplan.planner.procurement.present_value import HOURS_PER_YEAR
from gpuplan.planner.workload import work_of

#: Longest horizon in years; machines and prices cannot be forecast beyond it.
MAX_HORIZON_YEARS = 15.0
MAX_JOBS = 50
MAX_SCENARIOS = 20
MAX_RUNS_PER_YEAR = 1e6
#: Most runs per year after growth.
MAX_GROWN_RUNS_PER_YEAR = 1e8
#: P10, P50 and P90 of a forecast weigh 30, 40 and 30 % (Swanson's rule; Hurst, Brown and Swanson 2000, AAPG Bulletin).
THREE_POINTS = {"low": 0.3, "expected": 0.4, "high": 0.3}
HOSTS = ("buy", "have")

Vendors = Annotated[tuple[Annotated[str, Reads(vendor_name, {"type": "string"})], ...], Listed()]
Kinds = Annotated[tuple[Annotated[str, Reads(price_kind_name, {"type": "string"})], ...], Listed()]
_Years = quantity(machine_life, "years", 4)
_Horizon = quantity(lambda value: count(value, top=MAX_HORIZON_YEARS), "years", 3)
_PerKwh = quantity(lambda value: usd(value, top=10), "US dollars per kWh", 0.32)
_Watts = quantity(lambda value: count(value, top=1e8), "watts", 3000)
_Upfront = quantity(lambda value: usd(value, top=1e10), "US dollars", 20_000)
_Rates = Reads(
    lambda value: rates(value, most=MAX_RUNS_PER_YEAR),
    {
        "description": "runs: a number, or one for low, expected and high",
        "examples": [4, {"low": 2, "expected": 4, "high": 8}],
    },
)


def _pue(value: object) -> float:
    ratio = count(value, top=5)
    if ratio < 1:
        raise ValueError(f"{value!r} is below 1; write total power divided by computing power, 1.0 (no cooling) to 5")
    return ratio


class LimitsDocument(Document):
    """Limits of space, power, cooling and money."""

    slots: Annotated[int, whole_number(0, 10_000, "free slots for cards in your machines")] | None = None
    power_watts: Annotated[float, _Watts] | None = None
    cooling_watts: Annotated[float, _Watts] | None = None
    upfront_usd: Annotated[float, _Upfront] | None = None
    machines: Annotated[int, whole_number(0, 100_000)] | None = None
    ecc: Annotated[bool, YesNo] = False
    vendors: Vendors = ()


class ForecastJobDocument(Document):
    """A job and its number of runs: `per_month` or `per_year`."""

    job: dict[str, JsonValue]
    per_month: Annotated[Rates, _Rates] | None = None
    per_year: Annotated[Rates, _Rates] | None = None
    growth_per_year: Annotated[float, quantity(change, "yearly change of the number of runs", "20%", 0)] = 0.0


_EXAMPLE: JsonValue = {
    "name": "lab",
    "horizon_years": 3,
    "electricity_usd_per_kwh": 0.32,
    "limits": {"upfront_usd": 20000},
    "machines": ["RTX 4090"],
    "jobs": [{"job": JOB_EXAMPLE, "per_month": {"low": 2, "expected": 4, "high": 8}}],
}


class ForecastDocument(Document):
    """A forecast of jobs, with the machines and commitments that may serve it."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    name: Annotated[str, Label] = "forecast"
    start: Annotated[datetime, Reads(moment, {"type": "string", "format": "date-time"})] | None = None
    horizon_years: Annotated[float, _Horizon] = 3.0
    discount_rate: Annotated[float, quantity(share, "yearly, 0 to 1", "5%")] | None = None
    electricity_usd_per_kwh: Annotated[float, _PerKwh] | None = None
    pue: Annotated[float, quantity(_pue, "total power divided by computing power", 1.1)] | None = None
    life_years: Annotated[float, _Years] | None = None
    residual_share: (
        Annotated[float, quantity(share, "share of the purchase price at the end of life", "10%")] | None
    ) = None
    host: Annotated[str, choice(HOSTS)] | None = None
    host_usd: Annotated[float, _Upfront] | None = None
    limits: LimitsDocument = Field(default_factory=LimitsDocument)
    machines: Annotated[tuple[Annotated[str, Label], ...], Listed()] | None = None
    prices: Annotated[tuple[PriceDocument, ...], Listed()] = ()
    commitments: Kinds | None = None
    held_until: Annotated[datetime, Reads(moment, {"type": "string", "format": "date-time"})] | None = None
    jobs_wait: Annotated[bool, YesNo] = False
    scenarios: dict[str, Annotated[float, quantity(share_or_none, "probability", "30%")]] | None = None
    jobs: Annotated[
        tuple[ForecastJobDocument, ...],
        Listed(MAX_JOBS),
        Field(json_schema_extra={"minItems": 1}),
    ]


def parse_forecast(document: JsonObject, *, now: datetime) -> Forecast:
    """Read the forecast, with `start` at `now` unless given. Raises `UnusableInput` with all faults."""
    given = read_as(ForecastDocument, document)
    start = given.start or now
    faults: list[Fault] = []
    scenarios = _scenarios(given, faults)
    jobs = _jobs(given, start, tuple(scenarios), faults)
    kinds = _commitments(given, faults)
    existing_years = _commitment_years(given, start, faults)
    notes: list[str] = []
    rules = _rules(given, notes, faults)
    machines, turned_down = machines_of(rules, given.prices, given.machines, faults, notes)
    if faults:
        raise UnusableInput(*faults)
    if given.discount_rate is None:
        notes.append(f"discount_rate was not given: {DEFAULT_DISCOUNT_RATE:.0%} per year")
    return Forecast(
        name=given.name,
        start=start,
        horizon_years=given.horizon_years,
        discount_rate=DEFAULT_DISCOUNT_RATE if given.discount_rate is None else given.discount_rate,
        electricity_usd_per_kwh=rules.electricity_usd_per_kwh,
        jobs=jobs,
        scenarios=tuple(scenarios.items()),
        machines=machines,
        commitments=kinds,
        limits=Limits(**given.limits.model_dump(exclude={"ecc", "vendors"})),
        jobs_wait=given.jobs_wait,
        turned_down=turned_down,
        assumptions=tuple(notes),
        existing_years=existing_years,
    )


def _commitment_years(given: ForecastDocument, start: datetime, faults: list[Fault]) -> float | None:
    """Years until existing commitments end; None if not within the horizon."""
    if given.held_until is None:
        return None
    years = (given.held_until - start).total_seconds() / 3600 / HOURS_PER_YEAR
    if years <= 0:
        message = (
            "is not after the start of the forecast; give the day on which existing commitments end, or leave it out"
        )
        faults.append(Fault(("held_until",), message))
    return years if years < given.horizon_years else None


#: Nominal cost of capital of a laboratory or a company of average risk; an assumption without a source.
DEFAULT_DISCOUNT_RATE = 0.05
DEFAULT_LIFE_YEARS = 4.0
DEFAULT_RESIDUAL_SHARE = 0.1


def _rules(given: ForecastDocument, notes: list[str], faults: list[Fault]) -> PurchaseRules:
    """The rules for every machine; adds a note for every default."""
    limits = given.limits
    host = given.host or ("have" if limits.slots is not None else "buy")
    if host == "have" and limits.slots is None:
        faults.append(
            Fault(("limits", "slots"), "is missing, and required with host: have; give the number of free slots")
        )
    if host == "buy" and limits.slots is not None:
        message = "buy contradicts limits.slots, which counts slots in your machines; write have, or leave slots out"
        faults.append(Fault(("host",), message))
    if host == "have" and given.host_usd is not None:
        faults.append(Fault(("host_usd",), "contradicts host: have; leave one of the two out"))
    buys = given.machines is None or len(given.machines) > 0
    if given.electricity_usd_per_kwh is None and buys:
        message = "is missing, and required if machines may be bought: US dollars per kWh, such as 0.32 (machines: [] buys none)"
        faults.append(Fault(("electricity_usd_per_kwh",), message))
    for name, value, assumed in (
        ("pue", given.pue, "1, no power for cooling"),
        ("life_years", given.life_years, f"{DEFAULT_LIFE_YEARS:g} years"),
        ("residual_share", given.residual_share, f"{DEFAULT_RESIDUAL_SHARE:.0%} of the price at the end of life"),
    ):
        if value is None and buys:
            notes.append(f"{name} was not given: {assumed}")
    return PurchaseRules(
        electricity_usd_per_kwh=given.electricity_usd_per_kwh or 0.0,
        pue=given.pue or 1.0,
        life_years=given.life_years or DEFAULT_LIFE_YEARS,
        residual_share=DEFAULT_RESIDUAL_SHARE if given.residual_share is None else given.residual_share,
        has_host=host == "have",
        host_usd=given.host_usd,
        **limits.model_dump(exclude={"machines"}),
    )


def _scenarios(given: ForecastDocument, faults: list[Fault]) -> dict[str, float]:
    """Probability by scenario: as given; else low, expected and high if a job uses them; else a single scenario."""
    if given.scenarios is not None:
        chances = given.scenarios
        if not 1 <= len(chances) <= MAX_SCENARIOS:
            faults.append(Fault(("scenarios",), f"has {len(chances)} entries; name 1 to {MAX_SCENARIOS}"))
        elif abs(sum(chances.values()) - 1.0) > 1e-6:
            total = sum(chances.values())
            faults.append(Fault(("scenarios",), f"adds up to {total:.4g}; the probabilities must add up to 1 (100 %)"))
        return chances
    varies_by_scenario = any(isinstance(job.per_month or job.per_year, Mapping) for job in given.jobs)
    return THREE_POINTS if varies_by_scenario else {"expected": 1.0}


def _jobs(
    given: ForecastDocument, start: datetime, scenarios: tuple[str, ...], faults: list[Fault]
) -> tuple[ForecastJob, ...]:
    forecast_jobs = []
    if not given.jobs:
        faults.append(Fault(("jobs",), "is empty; list at least one job with job and per_month or per_year"))
    for i, job_document in enumerate(given.jobs):
        if (job_document.per_month is None) == (job_document.per_year is None):
            what = "is missing" if job_document.per_month is None else "is given beside per_year"
            faults.append(Fault(("jobs", i, "per_month"), f"{what}; give either per_month or per_year"))
            continue
        if job_document.job.get("start") is not None:
            faults.append(Fault(("jobs", i, "job", "start"), "is set by the forecast; leave it out here"))
        field, per_year = ("per_month", 12.0) if job_document.per_month is not None else ("per_year", 1.0)
        value = job_document.per_month if job_document.per_month is not None else job_document.per_year
        runs = _by_scenario(value, scenarios, ("jobs", i, field), faults)
        _check_growth(per_year * max(runs, default=0.0), given, i, faults)
        try:
            job = parse_job({**job_document.job, "start": start.isoformat()}, now=start)
            work_of(job.workload, job.training)  # reports a job whose work cannot be counted
        except UnusableInput as error:
            faults.extend(error.under("jobs", i, "job").faults)
            continue
        if job.objective != "cost":
            message = f"{job.objective} is only for a single job; {COST_ALONE}"
            faults.append(Fault(("jobs", i, "job", "objective"), message))
        forecast_jobs.append(
            ForecastJob(
                job=job, runs_per_year=tuple(per_year * run for run in runs), growth=job_document.growth_per_year
            )
        )
    return tuple(forecast_jobs)


def _check_growth(runs_per_year: float, given: ForecastDocument, i: int, faults: list[Fault]) -> None:
    """Refuse growth to an implausible number of runs."""
    growth = given.jobs[i].growth_per_year
    grown = runs_per_year * (1 + growth) ** given.horizon_years
    if grown > MAX_GROWN_RUNS_PER_YEAR:
        message = (
            f"{growth:.0%} per year leads to {grown:.2g} runs per year at the end of the horizon; "
            f"at most {MAX_GROWN_RUNS_PER_YEAR:.0e} are accepted; give less growth, fewer runs or a shorter horizon"
        )
        faults.append(Fault(("jobs", i, "growth_per_year"), message))


def _by_scenario(
    value: Rates | None, scenarios: tuple[str, ...], path: tuple[str | int, ...], faults: list[Fault]
) -> tuple[float, ...]:
    if not isinstance(value, Mapping):
        return (value or 0.0,) * len(scenarios)
    known = ", ".join(scenarios)
    faults.extend(Fault((*path, name), f"is not a scenario; name {known}") for name in value if name not in scenarios)
    missing = [name for name in scenarios if name not in value]
    if missing:
        faults.append(Fault((*path, missing[0]), "is missing; give a number for every scenario, or one for all"))
    if set(THREE_POINTS) <= set(value):
        for low, high in pairwise(THREE_POINTS):
            if value[low] > value[high]:
                message = (
                    f"{value[low]:g} is more than {high} ({value[high]:g}); give low, expected and high in that order"
                )
                faults.append(Fault((*path, low), message))
    return tuple(value.get(name, 0.0) for name in scenarios)


def _commitments(given: ForecastDocument, faults: list[Fault]) -> tuple[str, ...]:
    """Price kinds with a term; all of them by default."""
    terms = tuple(name for name, kind in price_kinds().items() if kind.term_hours)
    if given.commitments is None:
        return terms
    for i, name in enumerate(given.commitments):
        if name not in terms:
            faults.append(
                Fault(("commitments", i), f"{name} has no term; accepted: {', '.join(terms)}, or [] for none")
            )
    return tuple(dict.fromkeys(given.commitments))
