"""Interpret names of the price list and the SKU list: regions, and sizes that may have accelerators."""

import re

#: Test regions in the public price list, and values that are not regions.
_NO_REGION = re.compile(r"|global|.*euap|.*stg|.*stage|brazilus")
#: Separate clouds that a commercial subscription cannot use.
_SOVEREIGN = re.compile(r"(usgov|usdod|usnat|ussec|china).*")
#: Azure's naming reserves the N series for accelerated sizes.
_ACCELERATED = re.compile(r"Standard_N[A-Z]+\d.*", re.IGNORECASE)

#: Series, vCPUs and features, further words such as a fabric, the card, the version.
_CARD = re.compile(r"Standard_N[A-Z]+\d+[a-z]*(?:_[A-Z0-9]+)*?_([A-Z0-9]+)_v\d+", re.IGNORECASE)
#: The training series: whole machines with whole cards; NC, NV and NG may share cards.
_NEVER_SHARED = re.compile(r"Standard_ND\d.*", re.IGNORECASE)


def region_name(spelled: object) -> str:
    """The region in lower case without blanks; empty for a test region or another value."""
    name = "".join(spelled.lower().split()) if isinstance(spelled, str) else ""
    return "" if _NO_REGION.fullmatch(name) else name


def is_sovereign(region: str) -> bool:
    """Whether the region belongs to the clouds for governments or China, by its name."""
    return _SOVEREIGN.fullmatch(region) is not None


def is_accelerated(size: object) -> bool:
    """Whether a size of this name may have accelerators."""
    return isinstance(size, str) and _ACCELERATED.fullmatch(size.strip()) is not None


def named_card(size: str) -> str:
    """The card that Azure's naming puts before the version (`Standard_ND96isr_H200_v5`: `H200`), or empty."""
    match = _CARD.fullmatch(size.strip())
    return match[1] if match else ""


def is_never_shared(size: str) -> bool:
    """Whether machines of this series have whole cards only."""
    return _NEVER_SHARED.fullmatch(size.strip()) is not None


def folded(size: str) -> str:
    """The common form of two spellings of one size."""
    return size.strip().lower()
