"""Who is told of each answered plan: whoever counts them, in a service. Imports nothing, so that any door may."""

from collections.abc import Callable
from typing import Any

Told = Callable[[dict[str, Any]], None]

_told: list[Told] = []


def plan_made(answer: dict[str, Any]) -> None:
    """An answer of `plan` was made."""
    for tell in _told:
        tell(answer)


def watch_plans(tell: Told) -> Callable[[], None]:
    """Lets `tell` hear of each plan from now on, until the result is called."""
    _told.append(tell)

    def end() -> None:
        _told.remove(tell)

    return end
