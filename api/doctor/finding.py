"""One thing looked at: whether it works, what was found, and what to do where it does not."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from catalog.errors import ProviderFailure, StoreFailure, UnusableInput

Status = Literal["ok", "warning", "broken"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found of one thing. `advice` is empty where there is nothing to do; neither ever holds a secret."""

    name: str
    status: Status = "ok"
    found: str
    advice: str = ""

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def ok(name: str, found: str) -> Finding:
    """It works."""
    return Finding(name=name, found=found)


def warning(name: str, found: str, advice: str) -> Finding:
    """It works, but less well than it could."""
    return Finding(name=name, status="warning", found=found, advice=advice)


def broken(name: str, found: str, advice: str) -> Finding:
    """It does not work."""
    return Finding(name=name, status="broken", found=found, advice=advice)


def looked_at(name: str, look: Callable[[], list[Finding]]) -> list[Finding]:
    """What `look` finds; what it raises for the user to mend is a finding too."""
    try:
        return look()
    except UnusableInput as error:
        return [broken(name, str(fault), f"correct {fault.field or name}") for fault in error.faults]
    except (StoreFailure, ProviderFailure) as error:
        found, _, advice = str(error).rpartition("; ")
        return [broken(name, found or advice, advice or "see above")]
    except OSError as error:
        return [broken(name, error.strerror or str(error), "make it readable to this user")]
