"""Small random catalogues and jobs, and a second, plain way to price them: loops instead of arrays."""

import math
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from statistics import NormalDist

import numpy as np

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.egress_rates import egress_tiers
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.model.storage_rates import storage_usd_per_gb_month
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.planner.candidates.machine_shapes import shapes_of
from gpuplan.planner.cost.preemption_and_checkpoint_interval import checkpoint_gb
from gpuplan.planner.model.job import Constraints, DataSource, Explicit, Preset, Training, TrainingJob, Workload
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.performance import estimate
from gpuplan.planner.performance.estimator_request import Machines
from gpuplan.planner.verify.billed_hours import expected_billed
from gpuplan.planner.workload import work_of
from gpuplan.planner.workload.step_work import Work
from tests.planner.plain_setup import plain_setup_hours

START = datetime(2026, 11, 21, tzinfo=UTC)
#: On the day of the start: exactness is that of prices as they are. Prices of some age are tested by themselves.
OBSERVED = START
DEVICES = ("H100-80GB-SXM", "A100-40GB-SXM", "L4", "T4", "V100-16GB", "A10G")
#: One table for all estimates: what the constants make of a table is worked out once, and takes longer than an estimate.
CHIPS = tuple(accelerators().values())
PLACES = (
    ("aws", "us-east-1"),
    ("aws", "eu-west-1"),
    ("gcp", "us-central1"),
    ("gcp", "europe-west4"),
    ("azure", "eastus"),
)


def random_types(draw: random.Random, count: int) -> list[InstanceType]:
    """Machines of one, four or eight devices, some of which cluster."""
    return [
        InstanceType(
            provider=provider,
            name=f"{provider}-type-{i}",
            accelerator=draw.choice(DEVICES),
            accelerator_count=Fraction(draw.choice((1, 4, 8))),
            vcpus=float(draw.choice((8, 96))),
            intranode_gbs=draw.choice((None, 31.5, 300.0)),
            scaleup_domain=8,
            network_gbps=draw.choice((None, 50.0, 400.0)),
            clusters=draw.random() < 0.7,
            source="drawn",
        )
        for provider in ("aws", "gcp", "azure")
        for i in range(count)
    ]


def random_offers(draw: random.Random, types: list[InstanceType], count: int) -> list[Offer]:
    """Prices around a common rate per device, in the provider's own regions."""
    drawn: dict[tuple[str, ...], Offer] = {}
    for _ in range(count):
        instance_type = draw.choice(types)
        region = draw.choice([region for provider, region in PLACES if provider == instance_type.provider])
        kind = draw.choice(("on_demand", "on_demand", "spot", "reserved_1y"))
        usd = float(instance_type.accelerator_count) * draw.uniform(0.2, 6.0)
        rate = draw.choice((None, 0.001, 0.02, 0.2)) if kind == "spot" else None
        zone = draw.choice(("", "z1", "z2"))
        offer = Offer(
            provider=instance_type.provider,
            region=region,
            zone=zone,
            instance_type=instance_type.name,
            price_kind=kind,
            usd_micros_per_hour=round(usd * 1e6),
            interruptions_per_hour=rate,
            observed_at=OBSERVED,
            source="drawn",
        )
        drawn[offer.key] = offer
    return list(drawn.values())


def random_columns(draw: random.Random, *, types: int = 2, offers: int = 12) -> Columns:
    """A catalogue of a few machines at a dozen prices."""
    machines = random_types(draw, types)
    return columns_of("drawn", OBSERVED, machines, random_offers(draw, machines, offers))


def random_job(draw: random.Random) -> TrainingJob:
    """A job of hours to days on such machines, with the requirements that bind."""
    explicit = Explicit(total_flops=0.66 * 10 ** draw.uniform(18, 21.5), memory_gib=draw.uniform(2, 300), steps=1000.0)
    preset = Preset(model=draw.choice(("gpt2", "bert-large", "llama-3-8b")), tokens=10 ** draw.uniform(7.5, 9.5))
    return TrainingJob(
        name="drawn",
        workload=draw.choice((explicit, preset)),
        start=START,
        deadline_hours=draw.choice((None, 10 ** draw.uniform(0, 3))),
        budget_usd=draw.choice((None, None, 10 ** draw.uniform(1, 5))),
        confidence=draw.choice((0.5, 0.9, 0.99)),
        constraints=Constraints(
            max_nodes=draw.choice((1, 4, 9)), price_kinds=draw.choice(((), ("spot",), ("on_demand", "reserved_1y")))
        ),
        data=draw.choice((DataSource(), DataSource(location="aws:us-east-1", dataset_gb=draw.uniform(1, 2000)))),
    )


@dataclass(frozen=True)
class Priced:
    """One (offer, node count), priced the plain way."""

    offer: Offer
    nodes: int
    usd: float
    hours_at_confidence: float
    run_hours: float


def every_configuration(job: TrainingJob, columns: Columns, settings: PlannerSettings) -> list[Priced]:
    """Every offer of the asked kinds at every node count that can run the job; no pruning, no arrays of prices."""
    work = work_of(job.workload, job.training)
    kinds = job.constraints.price_kinds or tuple(name for name, kind in price_kinds().items() if kind.in_default)
    configurations = []
    for offer in columns.offers:
        if offer.price_kind not in kinds:
            continue
        instance_type = next(
            t for t in columns.instance_types if (t.provider, t.name) == (offer.provider, offer.instance_type)
        )
        for nodes in range(1, job.constraints.max_nodes + 1):
            if nodes == 1 or instance_type.clusters:
                priced = _priced(job, work, offer, instance_type, nodes, settings)
                if priced is not None:
                    configurations.append(priced)
    return configurations


@cache
def estimated(
    workload: Workload, training: Training, instance_type: InstanceType, nodes: int, goodput: float
) -> tuple[float, float, str] | None:
    """Hours with goodput, log_sigma and precision of one machine estimated on its own; None where it cannot run."""
    shapes = shapes_of((instance_type,))
    assert shapes.accelerators == CHIPS
    machines = Machines(
        accelerators=CHIPS,
        accelerator=shapes.accelerator.astype(np.int64),
        devices=shapes.devices.astype(np.int64),
        fraction=shapes.fraction,
        device_memory_mib=shapes.device_memory_mib,
        intranode_gbs=shapes.intranode_gbs,
        scaleup_domain=shapes.scaleup_domain.astype(np.int64),
        internode_gbps=shapes.internode_gbps,
        clusters=shapes.clusters,
        nodes=np.array([nodes]),
    )
    result = estimate(work_of(workload, training), training, machines, goodput=goodput)
    if result.reason[0]:
        return None
    precision = result.precisions[int(result.precision[0])]
    return float(result.hours_with_goodput[0]), float(result.log_sigma[0]), precision


def _priced(
    job: TrainingJob, work: Work, offer: Offer, instance_type: InstanceType, nodes: int, settings: PlannerSettings
) -> Priced | None:
    estimate = estimated(job.workload, job.training, instance_type, nodes, settings.goodput)
    if estimate is None:
        return None
    hours, log_sigma, _ = estimate
    kind = price_kinds()[offer.price_kind]
    run, noise = hours, 0.0
    if kind.interruptible:
        rate = offer.interruptions_per_hour
        cluster_rate = nodes * (settings.default_interruptions_per_hour if rate is None else rate)
        d = checkpoint_gb(work, job.training) / (settings.checkpoint_gbs * nodes) / 3600
        tau = min(max(math.sqrt(2 * d / cluster_rate), 1e-9), hours)
        if cluster_rate * (tau + d + settings.restart_hours) > 700:
            return None
        run = (
            hours
            / tau
            * math.exp(cluster_rate * settings.restart_hours)
            * math.expm1(cluster_rate * (tau + d))
            / cluster_rate
        )
        lost = settings.restart_hours
        noise = math.sqrt(cluster_rate * run * (lost**2 + lost * (tau + d) + (tau + d) ** 2 / 3)) / run
    sigma = math.sqrt(log_sigma**2 + math.log1p(noise**2))
    expected_run = run * math.exp(log_sigma**2 / 2)
    setup = plain_setup_hours(offer.provider, instance_type.accelerator, offer.price_kind, nodes, settings)
    wall = setup + expected_run
    hours_at_confidence = setup + run * math.exp(NormalDist().inv_cdf(job.confidence) * sigma)
    step, least = kind.billing_step_seconds / 3600, kind.billing_minimum_seconds / 3600
    if kind.term_hours:
        step, least = float(kind.term_hours), 0.0
    billed = expected_billed(setup, run, log_sigma, step, least)
    usd = nodes * billed * offer.usd_micros_per_hour / 1e6 + _place_usd(job, work, offer, wall, settings)
    return Priced(offer, nodes, usd, hours_at_confidence, expected_run) if math.isfinite(hours_at_confidence) else None


def _place_usd(job: TrainingJob, work: Work, offer: Offer, wall: float, settings: PlannerSettings) -> float:
    is_beside_data = (offer.provider, offer.region) == (job.data.provider, job.data.region)
    gb = 0.0 if is_beside_data else job.data.dataset_gb
    rates = storage_usd_per_gb_month(offer.provider, offer.region)
    checkpoints_gb = settings.checkpoints_kept * checkpoint_gb(work, job.training)
    monthly = rates.block_usd_per_gb_month * gb + rates.object_usd_per_gb_month * checkpoints_gb
    moved = 0.0
    if gb and job.data.provider:
        moved = egress_tiers(job.data.provider, job.data.region, offer.provider, offer.region).egress_usd(gb)
    return monthly / 730.5 * wall + moved


def allowed(priced: Priced, job: TrainingJob) -> bool:
    """Whether deadline and budget are met."""
    in_time = job.deadline_hours is None or priced.hours_at_confidence <= job.deadline_hours
    return in_time and (job.budget_usd is None or priced.usd <= job.budget_usd)
