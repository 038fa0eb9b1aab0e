"""The ways a request can end without an answer: unusable input, or a store or provider that failed.

Every door maps them the same way: `UnusableInput` is exit code 2 and HTTP 4xx, `StoreFailure` exit code 3 and
HTTP 503, `ProviderFailure`, which commands alone meet, exit code 3. All carry one clear line for the user; none
shows a traceback.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with one field.

    `path` is where the field stands in the document (`("deadline",)`, `("workload", "layers")`);
    `message` says what is wrong and what would be accepted.
    """

    path: tuple[str | int, ...]
    message: str

    @property
    def field(self) -> str:
        """The field as people write it: `workload.layers`, `machines[2].accelerator`."""
        text = ""
        for part in self.path:
            name = part if part != "" else "''"
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


class ProviderFailure(Exception):
    """A source of facts outside gpuplan (a driver, a device) does not answer; the message says which and what to do."""
