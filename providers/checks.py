"""Whether a provider's new rows can be believed: none that cannot be, no leap, no half of them lost."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from catalog.offer import InstanceType
from catalog.plausible_prices import why_implausible
from providers.gather import Gathered
from providers.merge import Before, expected_again, is_modelled_price
from providers.sift import Aside, Key, Sifted, set_aside

#: No list price has moved so far in one step; a unit or a currency that was read wrongly does.
JUMP_RATIO = 10
#: A few leaps are corrections of single rows, each held back; more is a source that is read wrongly.
MOST_JUMPS_SHARE = 0.01
#: Of a cloud with few prices one or two leaps are more than that share and still no pattern, unless they are most of it.
FEWEST_JUMPS = 3
LEAST_KEPT_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What the user has looked at and takes as it is."""

    loss: bool = False
    jumps: bool = False


def implausible(
    sifted: Sifted, types: Mapping[tuple[str, str], InstanceType], usual: Mapping[str, float]
) -> list[Aside]:
    """Offers outside the bounds of their kind, with the figures."""
    found = (
        (offer, why_implausible(offer, types[offer.provider, offer.instance_type], usual))
        for offer in sifted.offers.values()
    )
    return [set_aside(offer, why) for offer, why in found if why is not None]


def jumps(sifted: Sifted, before: Before) -> tuple[list[Aside], int]:
    """Offers that moved by `JUMP_RATIO` or more against what a refresh read before, and how many were compared."""
    found = []
    compared = 0
    for key, offer in sifted.offers.items():
        old = before.offers.get(key)
        if old is None or key not in before.live or is_modelled_price(old) != is_modelled_price(offer):
            continue
        compared += 1
        low, high = sorted((old.usd_micros_per_hour, offer.usd_micros_per_hour))
        if high >= JUMP_RATIO * low:
            moved = f"moved from {old.usd_micros_per_hour / 1e6:g} to {offer.usd_micros_per_hour / 1e6:g} USD/h"
            found.append(set_aside(offer, f"{moved}; accept with --accept-jumps"))
    return found, compared


def too_many_jumps(count: int, compared: int) -> str:
    """The reason to refuse a provider of whose offers so many moved too far, empty if there is none."""
    if count <= MOST_JUMPS_SHARE * compared or (count < FEWEST_JUMPS and 2 * count <= compared):
        return ""
    return f"{count:,} of {compared:,} prices moved by {JUMP_RATIO}x or more; --accept-jumps takes them"


def lost(gathered: Gathered, sifted: Sifted, before: Before) -> list[str]:
    """The reasons to refuse a provider of which more than half has gone since a refresh last read it."""
    return [f"{line}; --accept-loss takes that" for line in halves_gone(gathered, sifted, before, before.live)]


def halves_gone(gathered: Gathered, sifted: Sifted, before: Before, keys: Iterable[Key]) -> list[str]:
    """What is fewer than half there of the offers under `keys` that should be: of offers, regions, instance types."""
    expected = {key for key in keys if expected_again(gathered, before.offers[key])}
    there = sifted.offers.keys() | {each.key for each in sifted.aside if each.key is not None}
    kept = expected & there
    counts = {
        "offers": (len(kept), len(expected)),
        "regions": _counts(1, expected, there),
        "instance types": _counts(3, expected, there),
    }
    return [
        f"only {left:,} of {wanted:,} {what} are still there"
        for what, (left, wanted) in counts.items()
        if left < LEAST_KEPT_SHARE * wanted
    ]


def _counts(part: int, expected: Set[Key], there: Set[Key]) -> tuple[int, int]:
    """How many distinct values of that part of the keys are still there, of how many."""
    wanted = {key[part] for key in expected}
    return len(wanted & {key[part] for key in there}), len(wanted)
