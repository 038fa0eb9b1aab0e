"""What the proof of a plan is of."""

from gpuplan.planner.model.outcome import Planned


def least_cost(planned: Planned) -> int:
    """The cost of the cheapest plan if its machines are obtained, in micro-dollars."""
    cheapest = None if planned.ladder is None else planned.ladder.cheapest
    return planned.cost.expected if cheapest is None else cheapest.choice.cost.expected
