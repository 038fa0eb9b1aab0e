"""The machines of a plan, its ladder and its alternatives that are worth asking the clouds about."""

from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.planner.candidates.live_chances import Shape
from gpuplan.planner.model.outcome import Choice, Planned

#: A few dozen: calls per cloud are limited, and the rest can hardly be on the ladder.
MOST_SHAPES = 40


def query_shapes(plan: Planned) -> tuple[Shape, ...]:
    """The shapes of rented choices, those of the plan first, then its ladder, its alternatives and the ladder's other choices."""
    ladder = plan.ladder
    choices = [phase.choice for phase in plan.phases[:1]]
    choices += [step.choice for step in ladder.steps] if ladder is not None else []
    choices += [one.choice for one in plan.alternatives if one.meets_deadline and one.meets_budget]
    shapes = [shape_of(choice) for choice in choices if not price_kinds()[choice.offer.price_kind].owned]
    return tuple(dict.fromkeys([*shapes, *(ladder.shapes if ladder is not None else ())]))[:MOST_SHAPES]


def shape_of(choice: Choice) -> Shape:
    """What a cloud is asked about a choice."""
    offer = choice.offer
    return (offer.provider, offer.region, offer.instance_type, offer.price_kind, choice.nodes)
