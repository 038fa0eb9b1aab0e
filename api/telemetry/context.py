"""What each log record of a piece of work carries: a request's id, a run's id. Imports nothing, so that anybody may."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

Fields = Mapping[str, object]

_NOTHING: Fields = MappingProxyType({})
_bound: ContextVar[Fields] = ContextVar("gpuplan_log_fields", default=_NOTHING)


def bound() -> Fields:
    """What records carry here; worker threads that an event loop starts carry it on."""
    return _bound.get()


def bind(**fields: object) -> Fields:
    """Records carry these too from now on; gives what they carried before, for `restore`."""
    before = _bound.get()
    _bound.set({**before, **fields})
    return before


def restore(before: Fields) -> None:
    """Records carry what `bind` gave."""
    _bound.set(before)


@contextmanager
def carrying(**fields: object) -> Iterator[None]:
    """Records carry these too inside `with`."""
    before = bind(**fields)
    try:
        yield
    finally:
        restore(before)
