"""Which names of the price list and of the SKU list mean what: regions, and sizes that may hold accelerators."""

import re

#: Test regions that the public price list names, and what is no region.
_NO_REGION = re.compile(r"|global|.*euap|.*stg|.*stage|brazilus")
#: Clouds of their own that a commercial subscription cannot enter.
_SOVEREIGN = re.compile(r"(usgov|usdod|usnat|ussec|china).*")
#: Every accelerated size so far is of the N series, as all of its future families will be by Azure's naming.
_ACCELERATED = re.compile(r"Standard_N[A-Z]+\d.*", re.IGNORECASE)

#: Series, vCPUs and features, further words such as a fabric, the card, the version.
_CARD = re.compile(r"Standard_N[A-Z]+\d+[a-z]*(?:_[A-Z0-9]+)*?_([A-Z0-9]+)_v\d+", re.IGNORECASE)
#: The training series: whole machines with whole cards; NC, NV and NG share cards out.
_NEVER_SHARED = re.compile(r"Standard_ND\d.*", re.IGNORECASE)


def region_name(spelled: object) -> str:
    """The region in lower case without blanks; empty for what is none, or a test region."""
    name = "".join(spelled.lower().split()) if isinstance(spelled, str) else ""
    return "" if _NO_REGION.fullmatch(name) else name


def is_sovereign(region: str) -> bool:
    """A region of the clouds for governments and for China, by its name."""
    return _SOVEREIGN.fullmatch(region) is not None


def is_accelerated(size: object) -> bool:
    """Whether a size of this name may hold accelerators."""
    return isinstance(size, str) and _ACCELERATED.fullmatch(size.strip()) is not None


def named_card(size: str) -> str:
    """The card as Azure's naming puts it before the version (`Standard_ND96isr_H200_v5`: `H200`), or empty."""
    found = _CARD.fullmatch(size.strip())
    return found[1] if found else ""


def is_never_shared(size: str) -> bool:
    """Whether machines of this series hold whole cards only."""
    return _NEVER_SHARED.fullmatch(size.strip()) is not None


def folded(size: str) -> str:
    """What two spellings of one size have in common."""
    return size.strip().lower()
