"""Named stages of the work on one question, for whoever measures where time goes; nobody does unless asked to."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

Watcher = Callable[[str], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """A stage that is over, and was timed in another process: when it began by the clock, and how long it took."""

    name: str
    began_unix_ns: int
    seconds: float


TookWatcher = Callable[[Took], None]

_UNWATCHED: AbstractContextManager[object] = nullcontext()
_watchers: list[Watcher] = []
_took_watchers: list[TookWatcher] = []


def stage(name: str) -> AbstractContextManager[object]:
    """Around one stage; costs a tenth of a microsecond where nobody watches."""
    return _watchers[-1](name) if _watchers else _UNWATCHED


def watch_stages(watcher: Watcher) -> Callable[[], None]:
    """Lets `watcher` make a context manager around each stage from now on, in place of whoever did; ends it when called."""
    _watchers.append(watcher)

    def end() -> None:
        _watchers.remove(watcher)

    return end


def stage_took(took: Took) -> None:
    """Tells whoever watches of a stage of another process."""
    if _took_watchers:
        _took_watchers[-1](took)


def watch_stages_elsewhere(watcher: TookWatcher) -> Callable[[], None]:
    """Lets `watcher` hear of each stage of another process from now on; ends it when called."""
    _took_watchers.append(watcher)

    def end() -> None:
        _took_watchers.remove(watcher)

    return end
