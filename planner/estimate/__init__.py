"""Time and memory of a job on machines: `estimate` for many rows at once, `estimate_on` for one configuration."""

from planner.estimate.fastest import estimate

__all__ = ["estimate"]
