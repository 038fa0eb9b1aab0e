"""The job that a submitted text states: words in one line, a job file, or a configuration of another tool."""

import re

from gpuplan.api.imports.pasted_text import pasted_job
from gpuplan.api.schemas.key_value_words import job_of_words, split_words
from gpuplan.api.services.service_context import Document
from gpuplan.catalog.runtime.errors import UnusableInput

#: A line that begins like this is a document, not words.
_DOCUMENT = re.compile(r"[{\[#]|[\w.-]+:(\s|$)")
_EXAMPLE = "llama-3-8b tokens=300B by=14d"


def stated_job(text: str, name: str) -> Document:
    """The job of a text; `name` is its name in errors.

    Raises `IncompleteConfigError` for a configuration that lacks something, else `UnusableInput`.
    """
    if not text.strip():
        message = f"write what you have here, such as {_EXAMPLE}, paste a configuration, or choose a file"
        raise UnusableInput.at(message=message)
    return job_of_words(split_words(text), example=_EXAMPLE) if is_words(text) else pasted_job(text, name)


def is_words(text: str) -> bool:
    """Whether a text is the words of a job: one line that does not begin like a document."""
    line = text.strip()
    return "\n" not in line and _DOCUMENT.match(line) is None
