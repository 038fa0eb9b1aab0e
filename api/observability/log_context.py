"""Context fields of log records: a request's id, a run's id. Imports nothing of gpuplan, so every module may import it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

Fields = Mapping[str, object]

_NOTHING: Fields = MappingProxyType({})
_bound: ContextVar[Fields] = ContextVar("gpuplan_log_fields", default=_NOTHING)


def bound() -> Fields:
    """The current fields; worker threads started by an event loop inherit them."""
    return _bound.get()


def bind(**fields: object) -> Fields:
    """Add fields to later records; returns the previous ones for `restore`."""
    before = _bound.get()
    _bound.set({**before, **fields})
    return before


def restore(before: Fields) -> None:
    """Restore the fields that `bind` returned."""
    _bound.set(before)


@contextmanager
def carrying(**fields: object) -> Iterator[None]:
    """Add fields to records within the context."""
    before = bind(**fields)
    try:
        yield
    finally:
        restore(before)
