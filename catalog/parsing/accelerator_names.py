"""Accelerator names in user documents: validation, and how a name was interpreted."""

import re
from collections.abc import Callable

from gpuplan.catalog.model.accelerators import Accelerator, accelerator_family, accelerators, find_accelerator
from gpuplan.catalog.model.mig_slices import find_card_or_slice
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput

_LONGEST = 100
#: Words for a job without any accelerator.
_CPU_ONLY = {"cpu", "cpus", "cpuonly", "none", "nogpu"}


def accelerator_text(value: object) -> str:
    """The name as written, known to denote one accelerator.

    Raises `ValueError` with the nearest names, with all meanings of an ambiguous name, or, for a CPU, with the reason.
    """
    return _known(value, _card_alone)


def accelerator_family_text(value: object) -> str:
    """The name as written where it may denote several accelerators. Raises `ValueError` like `accelerator_text`."""
    return _known(value, lambda text: _card_alone(text) if ":" in text else accelerator_family(text))


def card_or_slice_text(value: object) -> str:
    """The name as written, known to denote one accelerator or one of its MIG slices: `A100-80GB-SXM:3g.40gb`.

    Raises `ValueError` like `accelerator_text`, and for a profile that the card lacks with those that it has.
    """
    return _known(value, find_card_or_slice)


def _card_alone(text: str) -> Accelerator:
    if ":" in text:
        card, mig_slice = find_card_or_slice(text)
        if mig_slice is not None:
            message = f"{mig_slice.name} is a MIG slice, which an inventory and estimate --on accept; write {card.name}"
            raise UnusableInput.at("accelerator", message=message)
    return find_accelerator(text)


def _known(value: object, find: Callable[[str], object]) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST:
        raise ValueError(f"{shown(value)} is not accepted; write an accelerator such as H100, A100 80GB or RTX 3090")
    if re.sub(r"[ _-]", "", value.lower()) in _CPU_ONLY:
        raise ValueError(
            f"{shown(value)}: machines without an accelerator are beyond what gpuplan plans; "
            "name accelerators such as T4, L4 or H100, or leave the list out"
        )
    try:
        find(value)
    except UnusableInput as error:
        raise ValueError(error.faults[0].message) from None
    return value.strip()


def accelerators_and_count(text: str) -> tuple[int, str]:
    """Number and name in a text such as `8 x A100-40GB-SXM` or `8xA100`; a name alone is one accelerator."""
    match = re.fullmatch(r"\s*(?:(\d{1,9})\s*(?:[x×*]\s*|\s))?(\S.*?)\s*", text, re.IGNORECASE)
    if match is None:
        raise ValueError(f"{shown(text)} is not accepted; write a number and an accelerator such as 8 x A100-40GB-SXM")
    return int(match.group(1) or 1), match.group(2)


def taken_as(text: str) -> str | None:
    """Which of several variants, or what MIG slice, `text` was interpreted as; None if it names exactly one whole card."""
    if ":" in text:
        mig_slice = find_card_or_slice(text)[1]
        return mig_slice.sentence if mig_slice is not None else None
    name = find_accelerator(text).name
    family = re.sub(r"[ _]+", "-", text.strip()).lower() + "-"
    others = [other for other in accelerators() if other.lower().startswith(family) and other != name]
    if not others or text.strip().lower() == name.lower():
        return None
    return f"{shown(text.strip())} is taken as {name}; {', '.join(others)} must be named to be meant"
