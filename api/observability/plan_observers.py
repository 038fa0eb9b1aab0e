"""Observers of answered plans, such as the metrics of a service. Imports nothing of gpuplan, so every interface may
import it.
"""

from collections.abc import Callable

from gpuplan.catalog.parsing.json_object import JsonObject

Observer = Callable[[JsonObject], None]

_observers: list[Observer] = []


def plan_made(answer: JsonObject) -> None:
    """Notify the observers of an answer of `plan`."""
    for observer in _observers:
        observer(answer)


def watch_plans(observer: Observer) -> Callable[[], None]:
    """Call `observer` for each plan from now on, until the result is called."""
    _observers.append(observer)

    def end() -> None:
        _observers.remove(observer)

    return end
