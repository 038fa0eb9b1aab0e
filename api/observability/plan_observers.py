"""Observers of answered plans, such as the metrics of a service."""

from collections.abc import Callable

from gpuplan.planner.model.plan import PlanAnswer

Observer = Callable[[PlanAnswer], None]

_observers: list[Observer] = []


def plan_made(answer: PlanAnswer) -> None:
    """Notify the observers of an answer of `plan`."""
    for observer in _observers:
        observer(answer)


def watch_plans(observer: Observer) -> Callable[[], None]:
    """Call `observer` for each plan from now on, until the result is called."""
    _observers.append(observer)

    def end() -> None:
        _observers.remove(observer)

    return end
