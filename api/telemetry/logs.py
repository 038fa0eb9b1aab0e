"""Structured logs: every logger of the process, ours and the libraries', through one formatter to one stream.

Code logs with the standard library; what a piece of work carries (`api.telemetry.context`) and a record's own
`extra={"fields": {...}}` become fields of the line. Libraries speak from warnings on, whatever the level: what they
say below that may hold credentials.
"""

import logging
import sys
from collections.abc import Callable
from typing import Any, TextIO

import orjson
import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.typing import EventDict, Processor, WrappedLogger

from api.telemetry.context import bound
from api.telemetry.scrub import scrub
from api.telemetry.settings import LogFormat

#: Loggers that heed the level: our own, and the server that tells of starts and stops.
OURS = ("gpuplan", "api", "catalog", "planner", "providers", "uvicorn", "procrastinate")

#: Take secrets out of a record, in this order, when everything in it is text and numbers (a traceback too).
SCRUBBERS: list[Processor] = [scrub]

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
    handler.setFormatter(_formatter(as_text=text, colors=text and stream.isatty()))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(max(level, logging.WARNING))
    for name in OURS:
        logging.getLogger(name).setLevel(level)
    logging.captureWarnings(capture=True)
    return handler


def _formatter(*, as_text: bool, colors: bool) -> ProcessorFormatter:
    before: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _fields,
        structlog.processors.format_exc_info,
        _scrubbed,
    ]
    last: list[Processor] = [ProcessorFormatter.remove_processors_meta]
    if as_text:
        last += [_on_one_line, structlog.dev.ConsoleRenderer(colors=colors, pad_event_to=0, pad_level=False)]
    else:
        last += [_as_json]
    return ProcessorFormatter(foreign_pre_chain=before, processors=last)


def _fields(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    event.update(bound())
    own = event["_record"].__dict__.get("fields")
    if own:
        event.update(own)
    for trace in TRACE_FIELDS:
        event.update(trace())
    return event


def _scrubbed(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    """Read at each record, so that what is added later counts too."""
    for clean in SCRUBBERS:
        event = clean(logger, name, event)  # type: ignore[assignment]
    return event


def _as_json(logger: WrappedLogger, name: str, event: EventDict) -> str:
    try:
        return orjson.dumps(event, default=str).decode()
    except orjson.JSONEncodeError:  # a lone surrogate, or a key that is no text: never lose the record for it
        return orjson.dumps({_whole(key): _whole(value) for key, value in event.items()}).decode()


def _whole(value: Any) -> str:
    return str(value).encode("utf-8", "backslashreplace").decode()


def _on_one_line(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    """What others wrote into a path or a name must not look like a line of its own, nor move the cursor."""
    return {
        key: value if key == "exception" or not isinstance(value, str) or value.isprintable() else ascii(value)
        for key, value in event.items()
    }
