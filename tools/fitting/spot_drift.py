"""Fit the constants of expected spot prices to price pairs, and score them on regions that the fit has not seen.

    python -m tools.fitting.spot_drift                  fit, score, and write catalog/data/price_drift.csv
    python -m tools.fitting.spot_drift --import FOLDER  first take the pairs of collected tables into the facts

Zones of a region move together, so a whole region is left out at a time, from the pairs and from the typical shares.
The rule is that of `gpuplan.planner.cost.planned_prices`. Its constants, per class of machines:

* typical share: the median share of on-demand of the catalogue's newest spot prices of a family, leaning on the
  provider's median with the weight of TYPICAL_PRIOR prices. Prices at on-demand or at the 10 % placeholder are left out.
* return: the part r of the way to the typical share that prices have gone after the pairs' days, from
  min sum over pairs of huber(move - r way; HUBER) + RETURN_PRIOR (r - r_provider)^2 / 2; return_days = -days / ln(1 - r).
* drift: the Huber mean of what is left, times windows / (windows + WINDOWS_PRIOR): all pairs of a provider span one
  window, and one common move says little about the next.
* band: the 10 % and 90 % quantiles of what is left.

AWS machines for training (P, Trn, DL) and for graphics and inference (the others) are two classes: few machines and
prices that swing, and many whose prices stay. GCP and TPU prices show no return (slope -0.00 on the logarithm of the
share), so their rows have none.
"""

import argparse
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.price_drift import TABLE, PriceDrift, price_drifts
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.planner.cost.planned_prices import drift_columns, expected_prices
from tools.fitting.spot_price_pairs import PricePair, import_pairs, price_pairs

Floats = NDArray[np.float64]

SOURCE = "tools.fitting.spot_drift on catalog/data/facts/spot_price_pairs.csv.xz"
PATH = Path("catalog/data") / TABLE
#: Weight of the provider's median share, in prices.
TYPICAL_PRIOR = 2
#: Moves beyond this pull no harder: a price that became 2.7 times another.
HUBER = 1.0
#: A price farther from its typical share than this is expected to go no farther: beyond a factor of two, half of the
#: prices have a reason that lasts (p3 in us-east-1 at 12 % stayed there in all zones).
LONGEST_WAY = 0.7
#: Weight of the provider's common return against that of a class.
RETURN_PRIOR = 5.0
#: Windows without drift that the prior is worth.
WINDOWS_PRIOR = 4
#: The band of 80 %.
LOW, HIGH = 0.1, 0.9
#: Shares at which a price counts as on-demand, and the placeholder of the source.
_AT_ON_DEMAND, _PLACEHOLDER, _NEAR = 0.98, 0.1, 0.0005


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineClass:
    """Machines whose prices move alike: those of a provider whose names begin with one of `prefixes`."""

    provider: str
    prefixes: tuple[str, ...]
    returns: bool
    quiet_zone: float = 0.0

    def includes(self, provider: str, instance_type: str) -> bool:
        """Whether the machine belongs to the class; empty `prefixes` hold every type."""
        return provider == self.provider and (not self.prefixes or instance_type.startswith(self.prefixes))


#: The first class that holds a machine is its class.
CLASSES = (
    MachineClass(provider="aws", prefixes=("p", "trn", "dl"), returns=True),
    # Half the median move: a price of these within 15 % of its family's is at home.
    MachineClass(provider="aws", prefixes=(), returns=True, quiet_zone=0.15),
    MachineClass(provider="gcp", prefixes=(), returns=False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A spot price of the catalogue as a share of the on-demand price of its type and region."""

    provider: str
    region: str
    instance_type: str
    log_share: float


def family_of(instance_type: str) -> str:
    """Letters and generation: `p4` of p4de.24xlarge, `g6` of gr6.4xlarge is `gr6`."""
    match = re.match(r"[a-z]+\d+", instance_type)
    return match[0] if match else ""


def class_of(provider: str, instance_type: str) -> MachineClass:
    """The class of a machine."""
    return next(one for one in CLASSES if one.includes(provider, instance_type))


def catalogue_shares() -> tuple[Share, ...]:
    """The shares of all measured spot prices of the embedded catalogue from its newest month."""
    offers = embedded_snapshot().offers
    listed = {
        (offer.provider, offer.region, offer.instance_type): offer.usd_micros_per_hour
        for offer in offers
        if offer.price_kind == "on_demand"
    }
    spot = [offer for offer in offers if offer.price_kind == "spot" and "spot_price" not in offer.modelled]
    newest: dict[str, datetime] = {}
    for offer in spot:
        newest[offer.provider] = max(offer.observed_at, newest.get(offer.provider, offer.observed_at))
    shares = []
    for offer in spot:
        key = (offer.provider, offer.region, offer.instance_type)
        if (newest[offer.provider] - offer.observed_at).days > 31 or key not in listed:
            continue
        share = offer.usd_micros_per_hour / listed[key]
        if share < _AT_ON_DEMAND and abs(share - _PLACEHOLDER) > _NEAR:
            shares.append(
                Share(
                    provider=offer.provider,
                    region=offer.region,
                    instance_type=offer.instance_type,
                    log_share=float(np.log(share)),
                )
            )
    return tuple(shares)


def typical_shares(shares: Sequence[Share]) -> dict[str, tuple[float, int]]:
    """Typical share and number of prices by family of one provider; the empty family is all of it."""
    common = float(np.median([share.log_share for share in shares]))
    by_family: dict[str, list[float]] = {}
    for share in shares:
        by_family.setdefault(family_of(share.instance_type), []).append(share.log_share)
    typical = {
        family: (
            float(np.exp((len(logs) * np.median(logs) + TYPICAL_PRIOR * common) / (len(logs) + TYPICAL_PRIOR))),
            len(logs),
        )
        for family, logs in by_family.items()
        if family
    }
    return {**typical, "": (float(np.exp(common)), len(shares))}


def fitted(pairs: Sequence[PricePair], shares: Sequence[Share], as_of: str) -> tuple[PriceDrift, ...]:
    """The rows of all providers, from these pairs and shares alone."""
    usable = [pair for pair in pairs if not pair.at_on_demand]
    rows: list[PriceDrift] = []
    for provider in dict.fromkeys(one.provider for one in CLASSES):
        mine = [pair for pair in usable if pair.provider == provider]
        returns = any(one.returns for one in CLASSES if one.provider == provider)
        mine_shares = [share for share in shares if share.provider == provider] if returns else []
        typical = typical_shares(mine_shares) if returns else {"": (1.0, 0)}
        # The way of a pair is to a share that its own region has no part in, as for a price nobody has seen.
        elsewhere = {
            region: typical_shares([share for share in mine_shares if share.region != region])
            for region in {pair.region for pair in mine}
            if returns
        }
        groups = {
            one: [pair for pair in mine if class_of(provider, pair.instance_type) is one]
            for one in CLASSES
            if one.provider == provider
        }
        ways = {one: _ways(group, elsewhere, one.quiet_zone) for one, group in groups.items()}
        moves = {one: np.array([pair.move for pair in group]) for one, group in groups.items()}
        returning = [one for one in groups if one.returns]
        common = _return(_joined(ways, returning), _joined(moves, returning)) if returning else 0.0
        returned = {one: _return(ways[one], moves[one], common) if one.returns else 0.0 for one in groups}
        left = {one: moves[one] - returned[one] * ways[one] for one in groups}
        drift = _huber_mean(_joined(left, list(groups))) / (1 + WINDOWS_PRIOR)
        for one, group in groups.items():
            rows += _rows(one, group, left[one], returned[one], drift, typical, as_of)
    return (*rows, _of_any_provider(usable, as_of))


def _of_any_provider(pairs: Sequence[PricePair], as_of: str) -> PriceDrift:
    """The row of providers without pairs: no return and no drift, and the band of all pairs."""
    low, high = np.quantile([pair.move for pair in pairs], (LOW, HIGH))
    return PriceDrift(
        provider="",
        family="",
        interruptible=True,
        typical_share=None,
        return_days=None,
        quiet_zone=0.0,
        longest_way=0.0,
        drift=0.0,
        low=round(float(low), 4),
        high=round(float(high), 4),
        reference_days=float(np.median([pair.days for pair in pairs])),
        from_days=0.0,
        pairs=len(pairs),
        source=SOURCE,
        as_of=as_of,
    )


def _rows(
    one: MachineClass,
    group: Sequence[PricePair],
    left: Floats,
    returned: float,
    drift: float,
    typical: dict[str, tuple[float, int]],
    as_of: str,
) -> Iterator[PriceDrift]:
    """The rows of a class: of each family with a typical share, and of what its other machines begin with."""
    days = float(np.median([pair.days for pair in group]))
    low, high = np.quantile(left - drift, (LOW, HIGH))
    families = [family for family in typical if family and class_of(one.provider, family) is one]
    for family in dict.fromkeys((*sorted(families), *(one.prefixes or ("",)))) if one.returns else ("",):
        yield PriceDrift(
            provider=one.provider,
            family=family,
            interruptible=True,
            typical_share=round(typical.get(family, typical[""])[0], 4) if one.returns else None,
            return_days=round(-days / float(np.log1p(-returned)), 1) if one.returns else None,
            quiet_zone=one.quiet_zone,
            longest_way=LONGEST_WAY if one.returns else 0.0,
            drift=round(drift, 4),
            low=round(float(low), 4),
            high=round(float(high), 4),
            reference_days=days,
            from_days=0.0,
            pairs=sum(1 for pair in group if pair.instance_type.startswith(family)),
            source=SOURCE,
            as_of=as_of,
        )


def _ways(pairs: Sequence[PricePair], elsewhere: dict[str, dict[str, tuple[float, int]]], quiet_zone: float) -> Floats:
    """The way of every earlier price to the typical share outside its region; 0 without shares."""
    gaps = np.zeros(len(pairs))
    for number, pair in enumerate(pairs):
        if pair.log_share is not None and pair.region in elsewhere:
            typical = elsewhere[pair.region]
            gaps[number] = np.log(typical.get(family_of(pair.instance_type), typical[""])[0]) - pair.log_share
    return np.asarray(np.sign(gaps) * np.clip(np.abs(gaps) - quiet_zone, 0.0, LONGEST_WAY))


def _joined(parts: dict[MachineClass, Floats], classes: Sequence[MachineClass]) -> Floats:
    return np.concatenate([parts[one] for one in classes])


def _return(ways: Floats, moves: Floats, common: float | None = None) -> float:
    """The share of the way gone, by reweighted least squares; leaning on `common` if given."""
    share, prior = 0.5, 0.0 if common is None else RETURN_PRIOR
    for _ in range(100):
        size = np.abs(moves - share * ways)
        weight = np.minimum(1.0, HUBER / np.maximum(size, 1e-12))
        share = float((weight * ways * moves).sum() + prior * (common or 0.0)) / float((weight * ways**2).sum() + prior)
    return min(max(share, 0.0), 0.99)


def _huber_mean(values: Floats) -> float:
    mean = 0.0
    for _ in range(100):
        weight = np.minimum(1.0, HUBER / np.maximum(np.abs(values - mean), 1e-12))
        mean = float((weight * values).sum() / weight.sum())
    return mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Errors |ln(expected / later)| of expected and of observed prices, bias on the cheapest tenth, and coverage."""

    pairs: int
    median: float
    p90: float
    observed_median: float
    observed_p90: float
    cheapest_bias: float
    observed_cheapest_bias: float
    inside: float


def score(pairs: Sequence[PricePair], expected: Floats, low: Floats, high: Floats) -> Score:
    """The figures over pairs away from the on-demand price."""
    later = np.array([pair.later_usd for pair in pairs])
    moves = np.array([pair.move for pair in pairs])
    errors = np.log(later / expected)
    shares = np.array([np.inf if pair.log_share is None else pair.log_share for pair in pairs])
    cheapest = np.argsort(shares, kind="stable")[: len(pairs) // 10]
    return Score(
        pairs=len(pairs),
        median=float(np.median(np.abs(errors))),
        p90=float(np.quantile(np.abs(errors), 0.9)),
        observed_median=float(np.median(np.abs(moves))),
        observed_p90=float(np.quantile(np.abs(moves), 0.9)),
        cheapest_bias=float(errors[cheapest].mean()),
        observed_cheapest_bias=float(moves[cheapest].mean()),
        inside=float(((later >= low) & (later <= high)).mean()),
    )


def expectations(pairs: Sequence[PricePair], rows: Sequence[PriceDrift]) -> tuple[Floats, Floats, Floats]:
    """Expected price, low and high end of each pair by these rows."""
    return expected_prices(
        np.array([pair.earlier_usd for pair in pairs]),
        np.array([np.nan if pair.on_demand_usd is None else pair.on_demand_usd for pair in pairs]),
        np.array([pair.days for pair in pairs]),
        drift_columns(tuple(_row_of(pair, rows) for pair in pairs)),
    )


def _row_of(pair: PricePair, rows: Sequence[PriceDrift]) -> PriceDrift:
    mine = [row for row in rows if row.provider == pair.provider and pair.instance_type.startswith(row.family)]
    return max(mine, key=lambda row: len(row.family))


def score_left_out(pairs: Sequence[PricePair], shares: Sequence[Share]) -> Score:
    """The score of pairs of each region by constants fitted to all other regions."""
    usable = [pair for pair in pairs if not pair.at_on_demand]
    places = [(pair.provider, pair.region) for pair in usable]
    expected, low, high = (np.zeros(len(usable)) for _ in range(3))
    for place in dict.fromkeys(places):
        rows = fitted(
            [pair for pair in usable if (pair.provider, pair.region) != place],
            [share for share in shares if (share.provider, share.region) != place],
            "left out",
        )
        at = np.array([number for number, other in enumerate(places) if other == place])
        expected[at], low[at], high[at] = expectations([usable[i] for i in at.tolist()], rows)
    return score(usable, expected, low, high)


def table_text(rows: Sequence[PriceDrift]) -> str:
    """The table as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(PriceDrift.__slots__)
    for row in rows:
        values = (getattr(row, name) for name in PriceDrift.__slots__)
        writer.writerow(
            ""
            if value is None
            else ("yes" if value else "no")
            if isinstance(value, bool)
            else f"{value:g}"
            if isinstance(value, float)
            else value
            for value in values
        )
    return out.getvalue()


def main() -> None:
    """Fit, print the score on regions left out, and write the table."""
    parser = argparse.ArgumentParser(description="Fit expected spot prices to price pairs.")
    parser.add_argument(
        "--import", dest="folder", type=Path, help="folder of collected price tables to take pairs from"
    )
    folder = parser.parse_args().folder
    if folder is not None:
        print(f"{import_pairs(folder)} pairs imported")
    pairs, shares = price_pairs(), catalogue_shares()
    score = score_left_out(pairs, shares)
    print(f"pairs {score.pairs}, each by constants fitted without its region")
    print(f"|ln(expected / later)|  median {score.median:.4f}  90 % {score.p90:.4f}")
    print(f"observed price as it is  median {score.observed_median:.4f}  90 % {score.observed_p90:.4f}")
    print(
        f"mean ln(later / expected) on the cheapest tenth {score.cheapest_bias:+.3f} ({score.observed_cheapest_bias:+.3f})"
    )
    print(f"inside the 80 % band {100 * score.inside:.1f} %")
    on_demand = [row for row in price_drifts() if not row.interruptible]
    PATH.write_text(table_text([*fitted(pairs, shares, "2026-07-21"), *on_demand]), encoding="utf-8")


if __name__ == "__main__":
    main()
