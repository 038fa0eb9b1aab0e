"""Varied jobs for the benchmarks, from a seed; not representative of real use."""

import random
from datetime import UTC, datetime

from gpuplan.planner.model.job import Constraints, DataSource, Explicit, Preset, Training, TrainingJob

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
#: Preset, unit, and a range of sizes from a fine-tune to a pre-training run.
MODELS = (
    ("llama-3-8b", "tokens", 1e8, 3e11),
    ("llama-3-70b", "tokens", 1e8, 3e10),
    ("mistral-7b", "tokens", 1e8, 1e11),
    ("mixtral-8x7b", "tokens", 1e8, 3e10),
    ("gpt2", "tokens", 1e8, 1e11),
    ("gpt3-175b", "tokens", 1e8, 1e10),
    ("qwen2.5-7b", "tokens", 1e8, 1e11),
    ("bert-large", "tokens", 1e9, 1e11),
    ("vit-b-16", "samples", 1e6, 4e8),
    ("resnet-50", "samples", 1e6, 2e8),
    ("stable-diffusion-1.5", "samples", 1e5, 1e8),
)


def varied_jobs(count: int, seed: int) -> list[TrainingJob]:
    """`count` jobs that differ in model, size, method, deadline, confidence, places and kinds."""
    return [_job(random.Random(f"{seed}/{i}"), i) for i in range(count)]


def _job(draw: random.Random, number: int) -> TrainingJob:
    workload = _workload(draw)
    adapts = isinstance(workload, Preset) and workload.tokens is not None
    return TrainingJob(
        name=f"job-{number}",
        workload=workload,
        training=Training(method=draw.choice(("full", "full", "lora", "qlora")) if adapts else "full"),
        start=START,
        deadline_hours=draw.choice((None, 12.0, 72.0, 168.0, 336.0, 720.0)),
        budget_usd=draw.choice((None, None, 1e4, 1e6)),
        confidence=draw.choice((0.5, 0.9, 0.95)),
        constraints=_constraints(draw),
        data=draw.choice((DataSource(), DataSource(location="aws:us-east-1", dataset_gb=draw.uniform(10, 5e3)))),
    )


def _workload(draw: random.Random) -> Preset | Explicit:
    if draw.random() < 0.1:
        return Explicit(total_flops=10 ** draw.uniform(18, 23), memory_gib=draw.uniform(4, 400))
    model, unit, least, most = draw.choice(MODELS)
    amount = least * (most / least) ** draw.random()
    return Preset(
        model=model, tokens=amount if unit == "tokens" else None, samples=amount if unit == "samples" else None
    )


def _constraints(draw: random.Random) -> Constraints:
    return Constraints(
        providers=draw.choice(((), (), ("aws",), ("gcp", "azure"))),
        geography=draw.choice(((), (), ("us",), ("us", "eu"))),
        price_kinds=draw.choice(((), (), ("on_demand",))),
        max_nodes=draw.choice((8, 32, 32, 64)),
    )
