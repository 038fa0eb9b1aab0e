"""Fetch all clouds concurrently, each region separately, within a hard time limit."""

import logging
import queue
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.providers.contract import Provider, Rows
from gpuplan.providers.error_redaction import redacted_text

log = logging.getLogger("gpuplan.refresh")

MakeProvider = Callable[[], Provider]
_THREADS = "refresh of "


class Progress(Protocol):
    """Receives each step: `done` of `total` regions of a provider; `total` is None until it has listed them."""

    def __call__(self, provider: str, done: int, total: int | None) -> None:
        """One more region has answered or failed."""
        ...


def no_progress(provider: str, done: int, total: int | None) -> None:
    """For runs without an observer."""


@dataclass(slots=True, kw_only=True)
class Gathered:
    """The results of one provider: `rows` by region, and the failures by region in `failed`.

    `listed` is None if the provider could not be reached at all; `failure` then says why.
    """

    provider: str
    listed: tuple[str, ...] | None = None
    failure: str = ""
    rows: dict[str, Rows] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """Whether all regions have answered or failed."""
        answered = len(self.rows) + len(self.failed)
        return bool(self.failure) or (self.listed is not None and answered == len(self.listed))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heard:
    """One step of one provider: its list of regions, or one region's rows, or a failure of either."""

    provider: str
    listed: tuple[str, ...] | None = None
    region: str = ""
    rows: Rows | None = None
    failure: str = ""


_Heards = queue.SimpleQueue[_Heard]


def gather(
    clouds: Mapping[str, MakeProvider], *, limit_seconds: float, progress: Progress = no_progress
) -> dict[str, Gathered]:
    """The results of every cloud by name: all concurrent, each with up to `parallel` regions at once.

    A region that is not read within `limit_seconds` has failed. Its thread continues as a daemon, since a hanging call
    cannot be stopped from outside (`left_behind`).
    """
    give_up_at = time.monotonic() + limit_seconds
    gathered = {name: Gathered(provider=name) for name in clouds}
    heard: _Heards = queue.SimpleQueue()
    stop = threading.Event()
    for name, make in clouds.items():
        _start(f"{_THREADS}{name}", partial(_ask, name, make, heard, stop))
    try:
        while not all(cloud.done for cloud in gathered.values()):
            try:
                step = heard.get(timeout=max(0.0, give_up_at - time.monotonic()))
            except queue.Empty:
                break
            _note(gathered[step.provider], step)
            _tell(progress, gathered[step.provider])
    finally:
        stop.set()
    for cloud in gathered.values():
        late(cloud, limit_seconds)
    return gathered


def left_behind() -> bool:
    """Whether any call of an earlier `gather` still hangs in this process."""
    return any(thread.name.startswith(_THREADS) for thread in threading.enumerate())


def _start(name: str, work: Callable[[], None]) -> None:
    threading.Thread(target=work, name=name, daemon=True).start()


def _ask(name: str, make: MakeProvider, heard: _Heards, stop: threading.Event) -> None:
    """List the regions of a provider and set its threads to work on them."""
    try:
        provider = make()
        listed = tuple(dict.fromkeys(provider.regions()))
        parallel = max(1, min(provider.parallel, len(listed)))
    except Exception as error:  # noqa: BLE001 (a bug in one cloud's code must not stop the others)
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
    """The failure as one line; an unexpected exception is reported as a bug in gpuplan."""
    if isinstance(error, (ProviderFailure, UnusableInput)):
        return redacted_text(error)
    # Without the exception itself: its text may only be shown with secrets masked.
    frames = "".join(traceback.format_tb(error.__traceback__))
    log.debug("unexpected %s: %s\n%s", type(error).__name__, redacted_text(error), frames)
    return f"unexpected {type(error).__name__}: {redacted_text(error)} (please report)"


def _note(gathered: Gathered, step: _Heard) -> None:
    if step.listed is not None:
        gathered.listed = step.listed
    elif not step.region:
        gathered.failure = step.failure
    elif step.rows is None:
        gathered.failed[step.region] = step.failure
    else:
        gathered.rows[step.region] = step.rows


def _tell(progress: Progress, gathered: Gathered) -> None:
    total = None if gathered.listed is None else len(gathered.listed)
    progress(gathered.provider, len(gathered.rows) + len(gathered.failed), total)


def late(gathered: Gathered, limit_seconds: float) -> None:
    """Mark everything without an answer as failed."""
    if gathered.done:
        return
    reason = f"not read within {_span(limit_seconds)}"
    if gathered.listed is None:
        gathered.failure = f"the regions were {reason}"
        return
    for region in gathered.listed:
        if region not in gathered.rows and region not in gathered.failed:
            gathered.failed[region] = reason


def _span(seconds: float) -> str:
    return f"{seconds / 60:g} minutes" if seconds >= 120 else f"{seconds:g} seconds"
