"""MIG slices of a card, which train like a smaller card: `data/mig_slices.csv`, one row per card and profile.

A slice that has all compute of its card is left out: it is the card. A profile with media extensions (`1g.10gb+me`)
trains like the one without.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from gpuplan.catalog.model.accelerators import (
    Accelerator,
    accelerator_family,
    accelerators,
    find_accelerator,
    possible_accelerators,
)
from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.runtime.errors import UnusableInput


@dataclass(frozen=True, slots=True, kw_only=True)
class MigSlice:
    """One profile of a card. Shares are of the card's multiprocessors and of its memory slices, both below 1."""

    accelerator: str
    profile: str
    compute_share: Fraction
    memory_share: Fraction
    memory_mib: int
    source: str
    as_of: str

    def __post_init__(self) -> None:
        """Reject a row that is no part of its card."""
        card = accelerators()[self.accelerator]
        if not (0 < self.compute_share < 1 and 0 < self.memory_share < 1):
            raise ValueError(f"MIG slice {self.name}: shares must be above 0 and below 1")
        if not 0 < self.memory_mib <= self.memory_share * card.device_memory_mib:
            raise ValueError(f"MIG slice {self.name}: memory_mib {self.memory_mib} is more than its share of the card")

    @property
    def name(self) -> str:
        """How documents name it: `A100-80GB-SXM:3g.40gb`."""
        return f"{self.accelerator}:{self.profile}"

    @property
    def sentence(self) -> str:
        """How it is planned with, for the user."""
        return (
            f"{self.name} is planned as {float(self.share):.1%} of the card's arithmetic and bandwidth, the smaller of its "
            f"shares of both, with {self.memory_mib / 1024:.1f} GiB of memory"
        )

    @property
    def share(self) -> Fraction:
        """The share of the card that is planned with for arithmetic and bandwidth alike: the smaller, so never too fast."""
        return min(self.compute_share, self.memory_share)


@cache
def mig_slices() -> dict[str, tuple[MigSlice, ...]]:
    """The slices of each card that has any, smallest first."""
    slices: dict[str, tuple[MigSlice, ...]] = {}
    for row in data_table("mig_slices.csv"):
        mig_slice = MigSlice(
            accelerator=row["accelerator"],
            profile=row["profile"],
            compute_share=Fraction(row["compute_share"]),
            memory_share=Fraction(row["memory_share"]),
            memory_mib=int(row["memory_mib"]),
            source=row["source"],
            as_of=row["as_of"],
        )
        slices[mig_slice.accelerator] = (*slices.get(mig_slice.accelerator, ()), mig_slice)
    return slices


def find_card_or_slice(
    text: str, *, path: tuple[str | int, ...] = ("accelerator",)
) -> tuple[Accelerator, MigSlice | None]:
    """The accelerator that `text` names, and its slice if `text` ends in a profile: `A100 80GB:3g.40gb`.

    The profile may decide between the variants of a card. Raises `UnusableInput` at `path`: for an unknown card with the
    nearest names, for a profile that the card lacks with those that it has.
    """
    card_text, colon, profile_text = text.rpartition(":")
    if not colon:
        return find_accelerator(text, path=path), None
    profile = profile_text.strip().lower().removeprefix("mig").lstrip(" -").removesuffix("+me")
    known = [row for name in accelerator_family(card_text, path=path) for row in mig_slices().get(name, ())]
    fitting = [row for row in known if row.profile == profile]
    if len(fitting) > 1:
        usual = {card.name for card in possible_accelerators(card_text, path=path)}
        fitting = [row for row in fitting if row.accelerator in usual] or fitting
    if len(fitting) == 1:
        return accelerators()[fitting[0].accelerator], fitting[0]
    if fitting:
        several = ", ".join(row.name for row in fitting)
        raise UnusableInput.at(*path, message=f"{text[:80]!r} may mean {several}; write one of them")
    has = f"accepted: {', '.join(row.name for row in known)}" if known else "it has none; write the whole card"
    raise UnusableInput.at(*path, message=f"{text[:80]!r} is no MIG slice of that card; {has}")
