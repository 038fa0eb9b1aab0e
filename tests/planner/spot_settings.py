"""Settings of tests whose expected figures count no waits for preempted machines and take nodes to be lost one by one."""

from typing import Any

from gpuplan.planner.model.settings import PlannerSettings


def replaced_at_once(**changes: Any) -> PlannerSettings:
    """The default settings, with these changes, where machines are replaced at once and nodes are lost independently."""
    values: dict[str, Any] = {"spot_wait_hours": 0.0, "node_loss_exponent": 1.0}
    return PlannerSettings(**values | changes)
