"""Accept or refuse a provider's new rows: no impossible prices, no large jumps, no loss of half the rows."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from gpuplan.catalog.model.offer import InstanceType
from gpuplan.catalog.model.price_plausibility import why_implausible
from gpuplan.providers.refresh.parallel_fetch import Gathered
from gpuplan.providers.refresh.row_merge import Before, expected_again, is_modelled_price
from gpuplan.providers.refresh.row_validation import Aside, Key, ValidatedRows, set_aside

#: No list price has moved so far in one step; a misread unit or currency does.
JUMP_RATIO = 10
#: A few jumps are corrections of single rows, each held back; more indicate a misread source.
MOST_JUMPS_SHARE = 0.01
#: In a cloud with few prices, one or two jumps exceed that share without a pattern, unless they are the majority.
FEWEST_JUMPS = 3
LEAST_CONFIRMED_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """Findings that the user has reviewed and accepts."""

    loss: bool = False
    jumps: bool = False


def implausible(
    sifted: ValidatedRows, types: Mapping[tuple[str, str], InstanceType], usual: Mapping[str, float]
) -> list[Aside]:
    """Offers outside the bounds of their kind, with the figures."""
    reasons = (
        (offer, why_implausible(offer, types[offer.provider, offer.instance_type], usual))
        for offer in sifted.offers.values()
    )
    return [set_aside(offer, why) for offer, why in reasons if why is not None]


def jumps(sifted: ValidatedRows, before: Before) -> tuple[list[Aside], int]:
    """Offers that moved by `JUMP_RATIO` or more since an earlier refresh, and how many were compared."""
    jumped = []
    compared = 0
    for key, offer in sifted.offers.items():
        old = before.offers.get(key)
        if old is None or key not in before.live or is_modelled_price(old) != is_modelled_price(offer):
            continue
        compared += 1
        low, high = sorted((old.usd_micros_per_hour, offer.usd_micros_per_hour))
        if high >= JUMP_RATIO * low:
            moved = f"moved from {old.usd_micros_per_hour / 1e6:g} to {offer.usd_micros_per_hour / 1e6:g} USD/h"
            jumped.append(set_aside(offer, f"{moved}; accept with --accept-jumps"))
    return jumped, compared


def jumps_exceeded(count: int, compared: int) -> str:
    """The reason to refuse a provider because too many offers moved too far, empty if none."""
    if count <= MOST_JUMPS_SHARE * compared or (count < FEWEST_JUMPS and 2 * count <= compared):
        return ""
    return f"{count:,} of {compared:,} prices moved by {JUMP_RATIO}x or more; --accept-jumps takes them"


def lost(gathered: Gathered, sifted: ValidatedRows, before: Before) -> list[str]:
    """The reasons to refuse a provider that lost more than half since the last refresh that read it."""
    return [f"{line}; --accept-loss takes that" for line in halves_gone(gathered, sifted, before, before.live)]


def halves_gone(gathered: Gathered, sifted: ValidatedRows, before: Before, keys: Iterable[Key]) -> list[str]:
    """Categories (offers, regions, instance types) of which fewer than half of those under `keys` are present."""
    expected = {key for key in keys if expected_again(gathered, before.offers[key])}
    present = sifted.offers.keys() | {row.key for row in sifted.aside if row.key is not None}
    remaining = expected & present
    counts = {
        "offers": (len(remaining), len(expected)),
        "regions": _counts(1, expected, present),
        "instance types": _counts(3, expected, present),
    }
    return [
        f"only {left:,} of {wanted:,} {what} are still there"
        for what, (left, wanted) in counts.items()
        if left < LEAST_CONFIRMED_SHARE * wanted
    ]


def _counts(part: int, expected: Set[Key], present: Set[Key]) -> tuple[int, int]:
    """How many distinct values of that part of the keys are still present, of how many."""
    wanted = {key[part] for key in expected}
    return len(wanted & {key[part] for key in present}), len(wanted)
