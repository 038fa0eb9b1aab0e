"""Secrets from the environment or from files: `NAME` holds one, or `NAME_FILE` names the file that does."""

import os
from pathlib import Path

from catalog.errors import UnusableInput

#: No secret is longer; a log or a device named by mistake is not read whole.
_MOST_BYTES = 64 * 1024


def secret(name: str) -> str | None:
    """The secret in the variable `name`, or in the file that `name`_FILE names; None where neither is set.

    Raises `UnusableInput` at the variable where both are set or the file cannot be used; the secret is never repeated.
    """
    value, path = os.environ.get(name, "").strip(), os.environ.get(f"{name}_FILE", "").strip()
    if value and path:
        raise UnusableInput.at(name, message=f"is set, and so is {name}_FILE; set one of them")
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
