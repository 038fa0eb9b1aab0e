"""The ways a request can end without an answer: unusable input, or a store or provider that failed.

Every door maps them the same way: `UnusableInput` is exit code 2 and HTTP 4xx, `StoreFailure` exit code 3 and
HTTP 503, `ProviderFailure`, which commands alone meet, exit code 3. All carry one clear line for the user; none
shows a traceback.
"""

import re
from dataclasses import dataclass

#: A longer key is cut where a path is printed; the pointer has the whole.
_LONGEST_KEY = 80
#: What stands in a path as it is. Any other key is quoted: its blanks and dots would read as the path's own.
_PLAIN_KEY = re.compile(r"[\w.:/*+@%-]+")


def one_line(text: str) -> str:
    """`text` with all that does not print (line ends, control characters, marks of direction) as Python's escapes.

    Every refusal passes through here, whatever of a stranger's document it quotes: it stays one line, and says nothing
    to a terminal or a log but what it reads.
    """
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _key(name: str) -> str:
    """A document's key as a path shows it."""
    if _PLAIN_KEY.fullmatch(name) and len(name) <= _LONGEST_KEY:
        return name
    return repr(name if len(name) <= _LONGEST_KEY else f"{name[: _LONGEST_KEY - 1]}…")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with one field.

    `path` is where the field stands in the document (`("deadline",)`, `("workload", "layers")`);
    `message` says what is wrong and what would be accepted, in one line.
    """

    path: tuple[str | int, ...]
    message: str

    def __post_init__(self) -> None:
        """What the message quotes of a document is escaped."""
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
    """What the user gave cannot be used; `faults` names each field and what would be accepted."""

    def __init__(self, *faults: Fault) -> None:
        if not faults:
            raise ValueError("UnusableInput needs at least one fault")
        super().__init__("; ".join(str(fault) for fault in faults))
        self.faults = faults

    @classmethod
    def at(cls, *path: str | int, message: str) -> "UnusableInput":
        """The common case of one fault at one field."""
        return cls(Fault(path, message))

    def under(self, *path: str | int) -> "UnusableInput":
        """The same faults in a document that itself stands at `path`."""
        return UnusableInput(*(Fault((*path, *fault.path), fault.message) for fault in self.faults))


class StoreFailure(Exception):
    """The database cannot be read or written; the message says which and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class ProviderFailure(Exception):
    """A source of facts outside gpuplan (a driver, a device) does not answer; the message says which and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))
