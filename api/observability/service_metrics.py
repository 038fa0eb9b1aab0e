"""Prometheus metrics of events: requests, plans, their stages and proofs.

No label contains user input: routes are templates, methods and outcomes are few. With `PROMETHEUS_MULTIPROC_DIR` (an
empty directory) several processes of one service are counted together.
"""

import os
import platform
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cache

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from gpuplan.api.observability.telemetry_settings import MULTIPROCESS
from gpuplan.api.observability.version import gpuplan_version
from gpuplan.planner.model.plan import PlanAnswer, PlannedAnswer

REGISTRY = CollectorRegistry()
# The creation time of a metric is useless, and would be one line in fifteen of each scrape.
disable_created_metrics()  # type: ignore[no-untyped-call]

#: From a cached page to the longest acceptable plan.
_REQUEST_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 5.12, 30.0)
_STAGE_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_COUNT_BUCKETS = (1, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000)
#: A proven plan is in the first bucket.
_GAP_BUCKETS = (0.0, 1e-9, 1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.2, 1.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_REQUESTS = Histogram(
    "gpuplan_http_request_seconds",
    "Time from a request's first byte to its answer's last",
    ("method", "route", "status"),
    registry=REGISTRY,
    buckets=_REQUEST_BUCKETS,
)
IN_FLIGHT = Gauge(
    "gpuplan_http_requests_in_flight", "Requests being answered", registry=REGISTRY, multiprocess_mode="livesum"
)
_PLANS = Counter("gpuplan_plans", "Answers to plans", ("outcome",), registry=REGISTRY)
_PLAN = Histogram("gpuplan_plan_seconds", "Time for one plan", registry=REGISTRY, buckets=_REQUEST_BUCKETS)
_STAGE = Histogram(
    "gpuplan_plan_stage_seconds", "Time in one stage of a plan", ("stage",), registry=REGISTRY, buckets=_STAGE_BUCKETS
)
_SOLVER = Histogram("gpuplan_solver_seconds", "Time in the solver per plan", registry=REGISTRY, buckets=_STAGE_BUCKETS)
_GAP = Histogram(
    "gpuplan_plan_gap", "How far a plan may be from the best, relatively", registry=REGISTRY, buckets=_GAP_BUCKETS
)
_CANDIDATES = Histogram(
    "gpuplan_plan_candidates", "Configurations considered per plan", registry=REGISTRY, buckets=_COUNT_BUCKETS
)


def request_answered(method: str, route: str, status: int, seconds: float) -> None:
    """Count one answered request; `route` is a template such as `/v1/plans/{plan_id}`, status 0 means that the client
    left before.
    """
    status_class = f"{status // 100}xx" if status else "none"
    _request_child(method if method in METHODS else "other", route, status_class).observe(seconds)


@cache
def _request_child(method: str, route: str, status: str) -> Histogram:
    """Cached: the look-up costs as much as counting."""
    return _REQUESTS.labels(method, route, status)


def plan_answered(answer: PlanAnswer) -> None:
    """Count one plan or infeasible answer."""
    _PLANS.labels(answer.outcome).inc()
    _PLAN.observe(answer.meta.milliseconds / 1e3)
    if answer.meta.solver_milliseconds is not None:
        _SOLVER.observe(answer.meta.solver_milliseconds / 1e3)
    if isinstance(answer, PlannedAnswer):
        _GAP.observe(answer.plan.certificate.gap)
        _CANDIDATES.observe(answer.plan.certificate.configurations_considered)


def stage_timed(name: str) -> AbstractContextManager[object]:
    """Time one stage, also if it fails."""
    return _stage_child(name).time()


def stage_timed_elsewhere(name: str, seconds: float) -> None:
    """Record one stage that another process timed."""
    _stage_child(name).observe(seconds)


@cache
def _stage_child(name: str) -> Histogram:
    return _STAGE.labels(name)


class _Build(Collector):
    """The release, as a metric."""

    def collect(self) -> Iterator[Metric]:
        """One metric with the constant value 1."""
        labels = {"version": gpuplan_version(), "python": platform.python_version()}
        yield InfoMetricFamily("gpuplan_build", "Which release answers", value=labels)


def exposition(*scraped: Collector) -> bytes:
    """The text of all counters, summed over the processes if they share them, and of the metrics that `scraped` reads
    now.
    """
    registry = CollectorRegistry()
    if os.environ.get(MULTIPROCESS):
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    else:
        registry.register(REGISTRY)
        ProcessCollector(registry=registry)
    for collector in (_Build(), *scraped):
        registry.register(collector)
    return generate_latest(registry)


def process_ends() -> None:
    """The process stops answering: its requests in flight no longer count."""
    if os.environ.get(MULTIPROCESS):
        mark_process_dead(os.getpid())  # type: ignore[no-untyped-call]
