"""The set-up of a phase of a saved plan."""

from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.model.shared import Phase


def setup_hours_of_phase(phase: Phase, settings: JsonObject) -> float:
    """Paid hours before the first step; plans of older releases state them in their settings alone."""
    return float(settings["setup_hours"]) if phase.setup_hours is None else phase.setup_hours
