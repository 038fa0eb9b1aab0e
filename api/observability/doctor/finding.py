"""The result of one check: its status, what it found, and what to do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from gpuplan.catalog.runtime.errors import ProviderFailure, StoreFailure, UnusableInput
from gpuplan.catalog.runtime.extras import needed_module

Status = Literal["ok", "warning", "broken"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check. `advice` is empty if there is nothing to do; neither text contains a secret."""

    name: str
    status: Status = "ok"
    found: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """All findings; the outcome is broken if one of them is, and warnings count as fine."""

    outcome: Literal["fine", "broken"]
    findings: tuple[Finding, ...]


def ok(name: str, summary: str) -> Finding:
    """It works."""
    return Finding(name=name, found=summary)


def warning(name: str, summary: str, advice: str) -> Finding:
    """It works, but less well than it could."""
    return Finding(name=name, status="warning", found=summary, advice=advice)


def broken(name: str, summary: str, advice: str) -> Finding:
    """It does not work."""
    return Finding(name=name, status="broken", found=summary, advice=advice)


def looked_at(name: str, look: Callable[[], list[Finding]]) -> list[Finding]:
    """The findings of `look`; an error that the user can fix becomes a finding too."""
    try:
        return look()
    except UnusableInput as error:
        return [broken(name, str(fault), f"correct {fault.field or name}") for fault in error.faults]
    except (StoreFailure, ProviderFailure) as error:
        summary, _, advice = str(error).rpartition("; ")
        return [broken(name, summary or advice, advice or "see above")]
    except ModuleNotFoundError as error:
        needed, _, hint = needed_module(error).partition(": ")
        return [warning(name, f"not checked: {needed} is not installed", hint)]
    except OSError as error:
        return [broken(name, error.strerror or str(error), "make it readable to this user")]
