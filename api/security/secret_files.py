"""Secrets from the environment: `NAME` holds the secret, or `NAME_FILE` names the file with it."""

import os
from pathlib import Path

from gpuplan.catalog.runtime.errors import UnusableInput

#: No secret is longer; this keeps a log or a device named by mistake from being read whole.
_MOST_BYTES = 64 * 1024


def secret(name: str) -> str | None:
    """The secret in the variable `name` or in the file named by `name`_FILE; None if neither is set.

    Raises `UnusableInput` at the variable if both are set or the file cannot be used; errors never contain the secret.
    """
    value, path = os.environ.get(name, "").strip(), os.environ.get(f"{name}_FILE", "").strip()
    if value and path:
        raise UnusableInput.at(name, message=f"is set together with {name}_FILE; set only one of them")
    if not path:
        return value or None
    return _from_file(f"{name}_FILE", Path(path))


def _from_file(variable: str, path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise UnusableInput.at(variable, message=f"cannot read {str(path)[:200]!r}: {reason}") from error
    try:
        text = data.decode().strip()
    except UnicodeDecodeError:
        text = ""
    if not text or len(data) > _MOST_BYTES or not text.isprintable():
        message = f"{str(path)[:200]!r} holds no secret; accepted: a file with one line of text in UTF-8"
        raise UnusableInput.at(variable, message=message)
    return text
