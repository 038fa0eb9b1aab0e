"""What later questions read from the settings that a saved plan repeats."""

from dataclasses import dataclass

from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.model.plan import Plan
from gpuplan.planner.model.shared import Machines, Phase


@dataclass(frozen=True, slots=True)
class StatedSettings:
    """The settings of a saved plan; plans of older releases lack some, and state for all phases what phases state now."""

    fields: JsonObject

    @property
    def setup_hours(self) -> float | None:
        """Hours before the first step; None where the planner models them."""
        return _or_none(self.fields["setup_hours"])

    @property
    def restart_hours(self) -> float:
        """Hours from a preemption's end to the next step."""
        return float(self.fields["restart_hours"])

    @property
    def spot_wait_hours(self) -> float | None:
        """Hours without machines after a preemption; None where the planner models them."""
        return _or_none(self.fields.get("spot_wait_hours"))

    @property
    def default_interruptions_per_hour(self) -> float:
        """Preemptions per node-hour of offers without a rate of their own."""
        return float(self.fields["default_interruptions_per_hour"])

    @property
    def checkpoint_gbs(self) -> float:
        """Speed at which a node writes a checkpoint, in GB/s."""
        return float(self.fields["checkpoint_gbs"])

    @property
    def move_gbs(self) -> float:
        """Speed of a checkpoint between regions, in GB/s."""
        return float(self.fields["move_gbs"])

    def nodes_lost(self, machines: Machines) -> float:
        """How many times as often all nodes together are preempted as one; earlier plans took nodes to be lost independently."""
        return float(machines.nodes ** float(self.fields.get("node_loss_exponent", 1.0)))

    def setup_hours_of(self, phase: Phase) -> float:
        """Paid hours before the first step of a phase."""
        return float(self.fields["setup_hours"]) if phase.setup_hours is None else phase.setup_hours

    def preempted_per_hour(self, phase: Phase) -> float:
        """Preemptions per hour of all nodes of a phase."""
        return phase.interruptions_per_node_hour * self.nodes_lost(phase)

    def wait_hours_of(self, phase: Phase) -> float:
        """Hours without machines after a preemption of a phase."""
        return phase.preemption_wait_hours or self.spot_wait_hours or 0.0

    def write_hours_of(self, phase: Phase) -> float:
        """What writing a checkpoint takes, out of the plan's best interval: d = lambda tau^2 / 2 (Young 1974)."""
        interval = phase.checkpoint_interval_hours
        if not interval or not phase.interruptions_per_node_hour:
            return 0.0
        return self.preempted_per_hour(phase) * interval**2 / 2


def stated_settings(plan: Plan) -> StatedSettings:
    """The settings of a saved plan."""
    return StatedSettings(plan.settings)


def _or_none(value: float | None) -> float | None:
    return None if value is None else float(value)
