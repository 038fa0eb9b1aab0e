"""Asking every cloud at the same time, each region by itself, within a time that is kept whatever hangs."""

import logging
import queue
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from catalog.errors import ProviderFailure, UnusableInput
from providers.contract import Provider, Rows
from providers.said import said

log = logging.getLogger("gpuplan.refresh")

MakeProvider = Callable[[], Provider]
_THREADS = "refresh of "


class Progress(Protocol):
    """Is told of each step: `done` of `total` regions of a provider; `total` is None until it has listed them."""

    def __call__(self, provider: str, done: int, total: int | None) -> None:
        """One more region has answered or failed."""
        ...


def no_progress(provider: str, done: int, total: int | None) -> None:
    """For runs that nobody watches."""


@dataclass(slots=True, kw_only=True)
class Gathered:
    """What one provider gave: `rows` by region, and why the others gave none in `failed`.

    `listed` is None where the provider could not be asked at all; `failure` then says why.
    """

    provider: str
    listed: tuple[str, ...] | None = None
    failure: str = ""
    rows: dict[str, Rows] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """Whether nothing more is to come."""
        answered = len(self.rows) + len(self.failed)
        return bool(self.failure) or (self.listed is not None and answered == len(self.listed))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heard:
    """One step of one provider: its list of regions, one region's rows, or why there is none (or no list)."""

    provider: str
    listed: tuple[str, ...] | None = None
    region: str = ""
    rows: Rows | None = None
    failure: str = ""


_Heards = queue.SimpleQueue[_Heard]


def gather(
    clouds: Mapping[str, MakeProvider], *, limit_seconds: float, progress: Progress = no_progress
) -> dict[str, Gathered]:
    """What every cloud gives by name: all side by side, each asked for `parallel` regions at once.

    A region that is not read within `limit_seconds` has failed. Its thread is left behind as a daemon,
    since a call that hangs cannot be ended from outside (`left_behind`).
    """
    give_up_at = time.monotonic() + limit_seconds
    found = {name: Gathered(provider=name) for name in clouds}
    heard: _Heards = queue.SimpleQueue()
    stop = threading.Event()
    for name, make in clouds.items():
        _start(f"{_THREADS}{name}", partial(_ask, name, make, heard, stop))
    try:
        while not all(each.done for each in found.values()):
            try:
                step = heard.get(timeout=max(0.0, give_up_at - time.monotonic()))
            except queue.Empty:
                break
            _note(found[step.provider], step)
            _tell(progress, found[step.provider])
    finally:
        stop.set()
    for each in found.values():
        late(each, limit_seconds)
    return found


def left_behind() -> bool:
    """Whether any call of an earlier `gather` still hangs in this process."""
    return any(each.name.startswith(_THREADS) for each in threading.enumerate())


def _start(name: str, work: Callable[[], None]) -> None:
    threading.Thread(target=work, name=name, daemon=True).start()


def _ask(name: str, make: MakeProvider, heard: _Heards, stop: threading.Event) -> None:
    """List the regions of a provider and set its threads to work on them."""
    try:
        provider = make()
        listed = tuple(dict.fromkeys(provider.regions()))
        parallel = max(1, min(provider.parallel, len(listed)))
    except Exception as error:  # noqa: BLE001 (whatever one cloud's code does, the others go on)
        heard.put(_Heard(provider=name, failure=why(error)))
        return
    if not listed:
        heard.put(_Heard(provider=name, failure="the provider lists no regions"))
        return
    heard.put(_Heard(provider=name, listed=listed))
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for region in listed:
        waiting.put(region)
    for number in range(parallel):
        _start(f"{_THREADS}{name} {number}", partial(_fetch_all, provider, name, waiting, heard, stop))


def _fetch_all(
    provider: Provider, name: str, waiting: queue.SimpleQueue[str], heard: _Heards, stop: threading.Event
) -> None:
    while not stop.is_set():
        try:
            region = waiting.get_nowait()
        except queue.Empty:
            return
        try:
            rows = provider.fetch(region)
        except Exception as error:  # noqa: BLE001 (one region's bug must not lose the others)
            heard.put(_Heard(provider=name, region=region, failure=why(error)))
        else:
            heard.put(_Heard(provider=name, region=region, rows=rows))


def why(error: Exception) -> str:
    """The failure as one line; what is no failure of the provider is a bug of ours and says so."""
    if isinstance(error, (ProviderFailure, UnusableInput)):
        return said(error)
    # Without the exception itself: its text is only shown with secrets masked.
    frames = "".join(traceback.format_tb(error.__traceback__))
    log.debug("unexpected %s: %s\n%s", type(error).__name__, said(error), frames)
    return f"unexpected {type(error).__name__}: {said(error)} (please report)"


def _note(found: Gathered, step: _Heard) -> None:
    if step.listed is not None:
        found.listed = step.listed
    elif not step.region:
        found.failure = step.failure
    elif step.rows is None:
        found.failed[step.region] = step.failure
    else:
        found.rows[step.region] = step.rows


def _tell(progress: Progress, found: Gathered) -> None:
    total = None if found.listed is None else len(found.listed)
    progress(found.provider, len(found.rows) + len(found.failed), total)


def late(found: Gathered, limit_seconds: float) -> None:
    """What has not answered by now has failed."""
    if found.done:
        return
    reason = f"not read within {_span(limit_seconds)}"
    if found.listed is None:
        found.failure = f"the regions were {reason}"
        return
    for region in found.listed:
        if region not in found.rows and region not in found.failed:
            found.failed[region] = reason


def _span(seconds: float) -> str:
    return f"{seconds / 60:g} minutes" if seconds >= 120 else f"{seconds:g} seconds"
