"""Estimated time and memory of a job: `estimate` for many machine rows at once, `estimate_on` for one configuration."""

from gpuplan.planner.performance.configuration_on_request import On
from gpuplan.planner.performance.fastest_layout import estimate
from gpuplan.planner.performance.single_configuration import assumptions, estimate_on

__all__ = ["On", "assumptions", "estimate", "estimate_on"]
