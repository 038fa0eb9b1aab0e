"""The tables in `data/`: how sizes and families name their card, and which price rows are no machine's."""

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One line of sizes: their names or families, and the card in them.

    `card_vcpus` is set where machines with fewer vCPUs hold less than a card: `below_card` says whether
    that is the share of the vCPUs (`share`) or not known (`unknown`). It is `uncounted` for a line outside the
    table of which nobody has said whether a card is shared out at all. `card_memory_gib` is what Azure
    shares out of one card. `left_out` is the reason if this is no training hardware.
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
    """Price rows with `pattern` in one of `fields` are not the price of a machine that one can rent."""

    fields: tuple[str, ...]
    pattern: re.Pattern[str]
    reason: str

    def takes(self, row: Mapping[str, object]) -> bool:
        """Whether the row is one of them; case does not matter."""
        return any(self.pattern.search(str(row.get(field) or "")) for field in self.fields)


@cache
def families() -> tuple[Family, ...]:
    """Every line of sizes, in the order of the table."""
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
    """Every rule by which a price row is left out, in the order of the table."""
    return tuple(
        LeftOutRows(
            fields=tuple(row["fields"].split()),
            pattern=re.compile(row["pattern"], re.IGNORECASE),
            reason=row["reason"],
        )
        for row in _table("left_out_rows.csv")
    )


def family_of(name: str, family: str) -> Family | None:
    """The line of sizes that a size belongs to by its own name, else by its family in any spelling."""
    for each in families():
        if each.name_pattern.fullmatch(name):
            return each
    folded = "".join(family.lower().split())
    return next((each for each in families() if folded in each.families), None)


def _table(name: str) -> list[dict[str, str]]:
    text = (files("providers.azure") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(text)))
