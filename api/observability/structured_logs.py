"""Structured logs: all loggers of the process, including libraries, with one formatter and one stream.

Code uses standard logging; the context (`gpuplan.api.observability.log_context`) and a record's `extra={"fields":
{...}}` become fields of the line. Libraries log from level warning on, whatever the setting, because their lower levels
may contain credentials.
"""

import logging
import sys
from collections.abc import Callable
from typing import Any, TextIO

import orjson
import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.typing import EventDict, Processor, WrappedLogger

from gpuplan.api.observability.log_context import bound
from gpuplan.api.observability.log_redaction import scrub
from gpuplan.api.observability.telemetry_settings import LogFormat

#: Loggers that follow the level: our own, and the server's, which report start and stop.
OURS = ("gpuplan", "uvicorn", "procrastinate")

#: Processors that redact secrets, in this order, after everything in the record is text and numbers (also a traceback).
SCRUBBERS: list[Processor] = [scrub]

#: Adds trace fields to each record, if traces are sent.
TRACE_FIELDS: list[Callable[[], dict[str, str]]] = []


def configure_logs(
    *, log_format: LogFormat = "auto", level: int = logging.INFO, stream: TextIO | None = None
) -> logging.Handler:
    """Write all records as lines to `stream` (standard error): JSON, or text for people; `auto`: text on a terminal.

    Replaces the previous configuration and returns the new handler.
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
    record_fields = event["_record"].__dict__.get("fields")
    if record_fields:
        event.update(record_fields)
    for trace in TRACE_FIELDS:
        event.update(trace())
    return event


def _scrubbed(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    """Evaluated at each record, so that later additions apply too."""
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
    """Foreign text in a path or a name must not look like a line of its own, nor move the cursor."""
    return {
        key: value if key == "exception" or not isinstance(value, str) or value.isprintable() else ascii(value)
        for key, value in event.items()
    }
