"""What the proof of a plan is of."""

from gpuplan.planner.model.outcome import Planned


def least_cost(planned: Planned) -> int:
    """The cost of the cheapest plan if its machines are obtained, in micro-dollars: what the proof is of."""
    ladder = planned.ladder
    if ladder is not None and ladder.cheapest is not None:
        return ladder.cheapest.choice.cost.expected
    changing = None if ladder is None else ladder.changing_machines
    return (planned if changing is None else changing).cost.expected
