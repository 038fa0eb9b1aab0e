"""Structured logs: every logger of the process, ours and the libraries', through one formatter to one stream.

Code logs with the standard library; what a piece of work carries (`api.telemetry.context`) and a record's own
`extra={"fields": {...}}` become fields of the line. Libraries speak from warnings on, whatever the level: what they
say below that may hold credentials.
"""

import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson
import structlog

from api.telemetry.context import bound
from api.telemetry.scrub import scrub
from api.telemetry.settings import LogFormat

#: Loggers that heed the level: our own, and the server that tells of starts and stops.
OURS = ("gpuplan", "api", "catalog", "planner", "providers", "uvicorn", "procrastinate")

Event = dict[str, Any]
Render = Callable[[Event], str]

#: Take secrets out of a record, in this order, when everything in it is text and numbers (a traceback too).
SCRUBBERS: list[Callable[[Any, str, Event], Event]] = [scrub]

#: What a trace adds to each record, where traces are sent.
TRACE_FIELDS: list[Callable[[], dict[str, str]]] = []


def configure_logs(
    *, log_format: LogFormat = "auto", level: int = logging.INFO, stream: TextIO | None = None
) -> logging.Handler:
    """All records as lines on `stream` (standard error): JSON, or text for people; `auto`: text on a terminal.

    Replaces what was configured before, and gives the handler that it made.
    """
    stream = stream or sys.stderr
    text = log_format == "text" or (log_format == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Lines(_as_text(colors=stream.isatty()) if text else _as_json))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(max(level, logging.WARNING))
    for name in OURS:
        logging.getLogger(name).setLevel(level)
    logging.captureWarnings(capture=True)
    return handler


class _Lines(logging.Formatter):
    """A record as one event, without its secrets, and that as a line.

    A request is a line, so this is written out: structlog's own formatter copies the record first, and takes twice as long.
    """

    def __init__(self, render: Render) -> None:
        """With what makes the event a line."""
        super().__init__()
        self._render = render

    def format(self, record: logging.LogRecord) -> str:
        """The line; what a piece of work carries goes before the record's own fields, and those before a trace's."""
        event: Event = {
            "event": record.getMessage(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        }
        event.update(bound())
        event.update(record.__dict__.get("fields") or {})
        for trace in TRACE_FIELDS:
            event.update(trace())
        if record.exc_info and record.exc_info[0] is not None:
            event["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            event["stack_info"] = record.stack_info
        # Read at each record, so that what is added later counts too.
        for clean in SCRUBBERS:
            event = clean(None, "", event)
        return self._render(event)


def _as_text(*, colors: bool) -> Render:
    console = structlog.dev.ConsoleRenderer(colors=colors, pad_event_to=0, pad_level=False)

    def as_text(event: Event) -> str:
        return str(console(None, "", _on_one_line(event)))

    return as_text


def _as_json(event: Event) -> str:
    try:
        return orjson.dumps(event, default=str).decode()
    except orjson.JSONEncodeError:  # a lone surrogate, or a key that is no text: never lose the record for it
        return orjson.dumps({_whole(key): _whole(value) for key, value in event.items()}).decode()


def _whole(value: Any) -> str:
    return str(value).encode("utf-8", "backslashreplace").decode()


def _on_one_line(event: Event) -> Event:
    """What others wrote into a path or a name must not look like a line of its own, nor move the cursor."""
    return {
        key: value if key == "exception" or not isinstance(value, str) or value.isprintable() else ascii(value)
        for key, value in event.items()
    }
