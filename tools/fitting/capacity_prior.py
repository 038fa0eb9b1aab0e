"""Fit the chance of getting spot machines to public availability traces: `python -m tools.fitting.capacity_prior TRACES`.

The traces are those of Can't Be Late (Wu et al., NSDI 2024; AWS V100 and K80, October 2022 to August 2023). A start
succeeds if the machines are up at some probe within the time of a try. Every start in a trace counts alike, and every
trace alike. Fitted are, for old accelerators: the chance of one node with one accelerator (single traces), its fall with
the accelerators of a node (traces of the same zone and days with 1 and 8), its fall with nodes (traces that count nodes),
and the share of refusals that zones of a region have in common (zones recorded together):

    P(both) = P(one) P(other) / (1 - s),   share = s / (1 - mean chance)

Newer accelerators have no public traces: their rows are assumptions and stay as they are.
"""

import csv
import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpuplan.api.schemas.availability_trace_files import read_traces
from gpuplan.catalog.model.capacity_prior import TABLE
from gpuplan.planner.spot_policy.availability_traces import Trace

Flags = NDArray[np.bool_]
DATA = Path(__file__).resolve().parents[2] / "catalog" / "data" / TABLE
_NAME = re.compile(
    r"__(?P<nodes>\d+)-node__aws-(?P<day>[\d-]+)__(?P<region>.+-\d)(?P<zone>[a-f])_(?P<card>.+)_(?P<count>\d+)$"
)


@dataclass(frozen=True, kw_only=True)
class NamedTrace:
    """A trace with what its file name says: nodes, first day, region, zone, accelerator and accelerators per node."""

    trace: Trace
    nodes: int
    day: str
    region: str
    zone: str
    card: str
    count: int

    def obtained(self, nodes: int, minutes: float) -> Flags:
        """Whether a try that starts at a probe gets so many nodes within these minutes: [probes - probes of a try + 1]."""
        probes = max(1, int(minutes / 60 / self.trace.step_hours + 1e-9))
        ups = np.concatenate(([0], np.cumsum(self.trace.available >= nodes)))
        return np.asarray(ups[probes:] > ups[:-probes])

    def chance(self, nodes: int, minutes: float) -> float:
        """The share of starts that get so many nodes."""
        return float(self.obtained(nodes, minutes).mean())


def named_traces(folder: Path) -> list[NamedTrace]:
    """The traces of a folder. Raises `UnusableInput` for a file that is no trace."""
    parts = []
    for path in sorted(folder.glob("*.json")):
        says = _NAME.search(path.stem)
        if says is None:
            continue
        (trace,) = read_traces(path, field="traces")
        parts.append(
            NamedTrace(
                trace=trace,
                nodes=int(says["nodes"]),
                day=says["day"],
                region=says["region"],
                zone=says["zone"],
                card=says["card"],
                count=int(says["count"]),
            )
        )
    return parts


def fitted(traces: Sequence[NamedTrace], minutes: float) -> dict[str, tuple[float, float, float]]:
    """Value, lowest and highest over traces, of each fitted constant."""
    single = [trace.chance(1, minutes) for trace in traces if trace.nodes == 1 and trace.count == 1]
    logits = [math.log(chance / (1 - chance)) for chance in single]
    return {
        "spot_chance": _spread(single),
        "spot_size_exponent": _spread(list(_size_exponents(traces, minutes))),
        "spot_node_exponent": _spread(list(_node_exponents(traces, minutes))),
        "shared_share": _spread(list(_shared_shares(traces, minutes))),
        "logit_spread": (float(np.std(logits, ddof=1)),) * 3,
    }


def _spread(values: Sequence[float]) -> tuple[float, float, float]:
    return float(np.mean(values)), min(values), max(values)


def _size_exponents(traces: Sequence[NamedTrace], minutes: float) -> Iterator[float]:
    for one, large in combinations(traces, 2):
        if (one.day, one.region, one.zone, one.card) == (large.day, large.region, large.zone, large.card):
            yield math.log(one.chance(1, minutes) / large.chance(1, minutes)) / math.log(large.count / one.count)


def _node_exponents(traces: Sequence[NamedTrace], minutes: float) -> Iterator[float]:
    for trace in traces:
        if trace.nodes > 1:
            yield math.log(trace.chance(1, minutes) / trace.chance(trace.nodes, minutes)) / math.log(trace.nodes)


def _shared_shares(traces: Sequence[NamedTrace], minutes: float) -> Iterator[float]:
    for one, other in combinations(traces, 2):
        if (one.day, one.region, one.card, one.count) != (other.day, other.region, other.card, other.count):
            continue
        first, second = one.obtained(1, minutes), other.obtained(1, minutes)
        both, p, q = float((first & second).mean()), float(first.mean()), float(second.mean())
        if both > 0:
            yield min(1.0, max(0.0, (1 - p * q / both) / (1 - (p + q) / 2)))


def main(folder: str) -> None:
    """Write the fitted rows of the table, and print them."""
    with DATA.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    minutes = next(float(row["value"]) for row in rows if row["name"] == "try_minutes")
    values = fitted(named_traces(Path(folder)), minutes)
    for row in rows:
        if row["name"] in values and row["age_class"] in ("", "old"):
            row["value"], row["low"], row["high"] = (f"{value:.3g}" for value in values[row["name"]])
            print(row["name"], row["age_class"], row["value"], f"({row['low']} to {row['high']})")
    with DATA.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1])
