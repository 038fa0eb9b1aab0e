"""Time and memory of a job on machines: `estimate` for many rows at once, `estimate_on` for one configuration."""

from planner.estimate.fastest import estimate
from planner.estimate.single import On, assumptions, estimate_on

__all__ = ["On", "assumptions", "estimate", "estimate_on"]
