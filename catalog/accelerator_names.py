"""An accelerator as people name it in a document: checked when read, and what the name was taken for."""

import re

from catalog.accelerators import accelerators, find_accelerator
from catalog.errors import UnusableInput
from catalog.quantities import shown

_LONGEST = 100
#: What people write when they want no accelerator at all.
_CPU_ONLY = {"cpu", "cpus", "cpuonly", "none", "nogpu"}


def accelerator_text(value: object) -> str:
    """The name as written, known to stand for an accelerator.

    Raises `ValueError` with the nearest names, or with the reason why a CPU is none.
    """
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST:
        raise ValueError(f"{shown(value)} is not accepted; write an accelerator such as H100, A100 80GB or RTX 3090")
    if re.sub(r"[ _-]", "", value.lower()) in _CPU_ONLY:
        raise ValueError(
            f"{shown(value)}: machines without an accelerator are beyond what gpuplan plans; "
            "name accelerators such as T4, L4 or H100, or leave the list out"
        )
    try:
        find_accelerator(value)
    except UnusableInput as error:
        raise ValueError(error.faults[0].message) from None
    return value.strip()


def taken_as(text: str) -> str | None:
    """Which of several variants `text` was taken for, as a sentence; None where it names just one."""
    name = find_accelerator(text).name
    family = re.sub(r"[ _]+", "-", text.strip()).lower() + "-"
    others = [other for other in accelerators() if other.lower().startswith(family) and other != name]
    if not others or text.strip().lower() == name.lower():
        return None
    return f"{shown(text.strip())} is taken as {name}; {', '.join(others)} must be named to be meant"
