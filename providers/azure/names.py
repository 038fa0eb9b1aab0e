"""Which names of the price list and of the SKU list mean what: regions, and sizes that may hold accelerators."""

import re

#: Test regions that the public price list names, and what is no region.
_NO_REGION = re.compile(r"|global|.*euap|.*stg|.*stage|brazilus")
#: Clouds of their own that a commercial subscription cannot enter.
_SOVEREIGN = re.compile(r"(usgov|usdod|usnat|ussec|china).*")
#: Every accelerated size so far is of the N series, as all of its future families will be by Azure's naming.
_ACCELERATED = re.compile(r"Standard_N[A-Z]+\d.*", re.IGNORECASE)


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


def folded(size: str) -> str:
    """What two spellings of one size have in common."""
    return size.strip().lower()
