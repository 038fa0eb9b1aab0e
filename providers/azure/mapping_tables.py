"""The tables in `data/`: the cards of sizes and families, and price rows that are not a machine's."""

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One family of sizes: their names or families, and their card.

    `card_vcpus` is set where machines with fewer vCPUs have less than a card: `below_card` says whether the fraction
    follows the vCPUs (`share`) or is not known (`unknown`). It is `uncounted` for a family outside the table where it is
    not known whether cards are shared at all. `card_memory_gib` is the memory that Azure shares out of one card. `left_out`
    is the reason if this is not training hardware.
    """

    name_pattern: re.Pattern[str]
    families: frozenset[str]
    accelerator: str
    card_vcpus: int | None
    card_memory_gib: int | None
    below_card: str
    left_out: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRows:
    """Price rows with `pattern` in one of `fields` are not the price of a rentable machine."""

    fields: tuple[str, ...]
    pattern: re.Pattern[str]
    reason: str

    def takes(self, row: Mapping[str, object]) -> bool:
        """Whether the rule matches the row, regardless of case."""
        return any(self.pattern.search(str(row.get(field) or "")) for field in self.fields)


@cache
def families() -> tuple[Family, ...]:
    """Every family of sizes, in the order of the table."""
    return tuple(
        Family(
            name_pattern=re.compile(f"Standard_{row['name_pattern']}", re.IGNORECASE),
            families=frozenset(row["family"].split()),
            accelerator=row["accelerator"],
            card_vcpus=int(row["card_vcpus"]) if row["card_vcpus"] else None,
            card_memory_gib=int(row["card_memory_gib"]) if row["card_memory_gib"] else None,
            below_card=row["below_card"],
            left_out=row["left_out"],
            source=row["source"],
        )
        for row in _table("families.csv")
    )


@cache
def left_out_rows() -> tuple[LeftOutRows, ...]:
    """Every rule that leaves out price rows, in the order of the table."""
    return tuple(
        LeftOutRows(
            fields=tuple(row["fields"].split()),
            pattern=re.compile(row["pattern"], re.IGNORECASE),
            reason=row["reason"],
        )
        for row in _table("left_out_rows.csv")
    )


def family_of(name: str, family: str) -> Family | None:
    """The family of a size, by its own name, else by its family in any spelling."""
    for row in families():
        if row.name_pattern.fullmatch(name):
            return row
    folded = "".join(family.lower().split())
    return next((family for family in families() if folded in family.families), None)


def _table(name: str) -> list[dict[str, str]]:
    text = (files("gpuplan.providers.azure") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(text)))
