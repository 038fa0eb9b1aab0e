"""Logs on a stream of one test, and a service that is watched."""

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gpuplan.api.observability.structured_logs import OURS, configure_logs

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def restored_logging() -> Iterator[None]:
    """Logging as it was, afterwards: what is configured is the whole process's."""
    loggers = [logging.getLogger(name) for name in ("", *OURS)]
    before = [(logger, list(logger.handlers), logger.level) for logger in loggers]
    yield
    logging.captureWarnings(capture=False)
    for logger, handlers, level in before:
        logger.handlers[:] = handlers
        logger.setLevel(level)


@pytest.fixture
def lines(restored_logging: None) -> Lines:
    """Logs as JSON from now on; gives the lines so far, read."""
    stream = io.StringIO()
    configure_logs(log_format="json", stream=stream)
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
