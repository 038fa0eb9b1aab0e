"""The tables in `data/`: the cards of sizes and families, and price rows that are not a machine's."""

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


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
