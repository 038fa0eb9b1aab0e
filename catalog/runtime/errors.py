"""Errors that every interface reports: unusable input, and a failing store or provider.

All interfaces map them alike: `UnusableInput` to exit code 2 and HTTP 4xx, `StoreFailure` to exit code 3 and HTTP 503, and
`ProviderFailure`, which only commands raise, to exit code 3. All carry a one-line message; none shows a traceback.
"""

import re
from dataclasses import dataclass

#: Longer keys are truncated in printed paths; the pointer has the full key.
_LONGEST_KEY = 80
#: Keys printed unquoted. Other keys are quoted, because their blanks and dots would read as part of the path.
_PLAIN_KEY = re.compile(r"[\w.:/*+@%-]+")


def one_line(text: str) -> str:
    """`text` with unprintable characters (line ends, control characters, bidirectional marks) as Python escapes.

    Every message passes through here, because it may quote a document from outside: the result is one line and cannot
    inject control sequences into a terminal or log.
    """
    return (
        text
        if text.isprintable()
        else "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
    )


def _key(name: str) -> str:
    """A document key as shown in a path."""
    if _PLAIN_KEY.fullmatch(name) and len(name) <= _LONGEST_KEY:
        return name
    return repr(name if len(name) <= _LONGEST_KEY else f"{name[: _LONGEST_KEY - 1]}…")


@dataclass(frozen=True, slots=True)
class Fault:
    """One error in one field.

    `path` is the field's position in the document (`("deadline",)`, `("workload", "layers")`); `message` says in one line
    what is wrong and what is accepted.
    """

    path: tuple[str | int, ...]
    message: str

    def __post_init__(self) -> None:
        """Escape what the message quotes from the document."""
        object.__setattr__(self, "message", one_line(self.message))

    @property
    def field(self) -> str:
        """The field as people write it, in one line: `workload.layers`, `machines[2].accelerator`, `jobs.'a key'`."""
        text = ""
        for part in self.path:
            name = part if isinstance(part, int) else _key(part)
            text += f"[{name}]" if isinstance(name, int) else f".{name}" if text else name
        return text

    @property
    def pointer(self) -> str:
        """The field as an RFC 6901 JSON pointer: `/workload/layers`."""
        return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in self.path)

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.path else self.message


class UnusableInput(Exception):
    """The user's input cannot be used; `faults` names each field and what it accepts."""

    def __init__(self, *faults: Fault) -> None:
        if not faults:
            raise ValueError("UnusableInput needs at least one fault")
        super().__init__("; ".join(str(fault) for fault in faults))
        self.faults = faults

    @classmethod
    def at(cls, *path: str | int, message: str) -> "UnusableInput":
        """An error with one fault at one field."""
        return cls(Fault(path, message))

    def under(self, *path: str | int) -> "UnusableInput":
        """The same faults with `path` prepended, for a document inside another."""
        return UnusableInput(*(Fault((*path, *fault.path), fault.message) for fault in self.faults))


class StoreFailure(Exception):
    """The database cannot be read or written; the message says which one and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class ProviderFailure(Exception):
    """A source of facts outside gpuplan (a driver, a device) does not answer; the message says which and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))
