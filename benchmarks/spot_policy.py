"""What the spot policy costs over the omniscient optimum on public availability traces, beside simpler rules.

Protocol: a job of 12, 24 or 48 h on-demand, a deadline of 1.15, 1.3, 1.5 or 2 times that, a changeover of 5 or
15 min, spot at 0.3 of the on-demand price, decisions every 5 min, random starts (seeded, none of them used while
the policy was developed). The traces come from three campaigns (October 2022, February 2023, later); every trace is
judged by policies whose chain was fitted on the other campaigns alone, and which know nothing of the judged zone
but what it has been since the job's start. Traces of 4 and 16 nodes count as up when all nodes can be had. All of
`../shared/data/spot` is judged. Beside that: several zones at once, and Uniform Progress against its published figures.

    python -m benchmarks.spot_policy [STARTS]
"""

import json
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from api.documents.traces import parse_traces
from planner.spot.chain import ZoneChain, edges_for, fit
from planner.spot.omniscient import omniscient_usd
from planner.spot.policy import make_policy
from planner.spot.rules import Greedy, OnDemand, UniformProgress
from planner.spot.simulate import Replay, Rule, Seen, replay
from planner.spot.terms import Place, SpotTerms
from planner.spot.traces import Trace, windows

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "spot" / "cant_be_late_traces"
STEP = 1 / 12
PRICE_RATIO = 0.3
LENGTHS, SLACKS, CHANGEOVERS = (12.0, 24.0, 48.0), (1.15, 1.3, 1.5, 2.0), (1 / 12, 0.25)
#: While developing, starts were drawn with other seeds.
REPORT_SEED = 20_261_121
#: Ten days in which the zones are watched before the first start.
WATCHED_HOURS = 240.0
MOVE_HOURS, MOVE_USD = 0.25, 0.5


@dataclass(frozen=True)
class Watched:
    """One public trace, for so many nodes, of one campaign."""

    trace: Trace
    nodes: int
    campaign: str

    def up(self) -> NDArray[np.bool_]:
        return self.trace.up(self.nodes, STEP)


def public_traces() -> list[Watched]:
    """Every trace of the folder, by name."""
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        (trace,) = parse_traces(json.loads(path.read_text()), name=path.stem)
        nodes = int(re.search(r"(\d+)-node", path.stem)[1])  # type: ignore[index]
        campaign = "2022-10" if "10-26-2022" in path.stem else "2023-02" if "02-15-2023" in path.stem else "later"
        found.append(Watched(trace, nodes, campaign))
    return found


def chain_without(traces: Sequence[Watched], campaign: str, edges: Sequence[float]) -> ZoneChain:
    """The chain of all other campaigns' zones."""
    return fit([each.up() for each in traces if each.campaign != campaign], STEP, edges)


def terms_of(hours: float, slack: float, changeover: float, zones: Sequence[str], move: float = 0.0) -> SpotTerms:
    size = len(zones) + 1
    regions = [re.sub(r"[a-z]$", "", zone) for zone in zones]
    regions.append(regions[0])
    table = [[float(a != b) for b in regions] for a in regions]
    return SpotTerms(
        work_hours=hours,
        deadline_hours=round(hours * slack / STEP) * STEP,
        step_hours=STEP,
        changeover_hours=changeover,
        on_demand_usd_per_hour=1.0,
        places=tuple(Place(name=zone, usd_per_hour=PRICE_RATIO) for zone in zones),
        move_hours=tuple(tuple(MOVE_HOURS * move * table[i][j] for j in range(size)) for i in range(size)),
        move_usd=tuple(tuple(MOVE_USD * move * table[i][j] for j in range(size)) for i in range(size)),
    )


class Table:
    """Costs in units of the job on-demand, by rule."""

    def __init__(self) -> None:
        self.rows: dict[str, list[NDArray[np.float64]]] = {}
        self.late: dict[str, int] = {}
        self.groups: list[str] = []

    def add(self, group: str, terms: SpotTerms, up: NDArray[np.bool_], rules: Mapping[str, Rule]) -> None:
        """Replay every rule over `up` and keep what it cost."""
        self.groups += [group] * len(up)
        self.rows.setdefault("omniscient", []).append(omniscient_usd(terms, up) / terms.work_hours)
        for name, rule in rules.items():
            result: Replay = replay(terms, up, rule)
            self.rows.setdefault(name, []).append(result.usd / terms.work_hours)
            self.late[name] = self.late.get(name, 0) + int((result.late_hours > 0).sum())

    def print(self, title: str) -> None:
        """A row per rule, over all runs and by group."""
        cost = {name: np.concatenate(rows) for name, rows in self.rows.items()}
        groups = np.array(self.groups)
        names = list(dict.fromkeys(self.groups))
        print(f"\n{title}: {len(groups):,} runs")
        print(f"{'rule':<18} {'cost':>6} {'over':>8} {'per run':>8} {'late':>5}" + "".join(f"{g:>16}" for g in names))
        best = cost["omniscient"]
        for name, paid in cost.items():
            parts = "".join(f"{paid[groups == g].mean() / best[groups == g].mean() - 1:>15.1%} " for g in names)
            over, each = paid.mean() / best.mean() - 1, (paid / best).mean() - 1
            print(f"{name:<18} {paid.mean():>6.3f} {over:>8.2%} {each:>8.2%} {self.late.get(name, 0):>5}{parts}")


def simple(terms: SpotTerms) -> dict[str, Rule]:
    return {"on-demand": OnDemand(terms), "greedy": Greedy(terms), "Uniform Progress": UniformProgress(terms)}


class Timed:
    """A rule and the seconds that its decisions take, each over all runs at once."""

    def __init__(self, rule: Rule) -> None:
        self.rule, self.seconds, self.decided = rule, 0.0, 0

    def decide(self, seen: Seen) -> NDArray[np.int64]:
        began = time.perf_counter()
        target = self.rule.decide(seen)
        self.seconds += time.perf_counter() - began
        self.decided += len(target)
        return target


def cells() -> Iterator[tuple[float, float, float]]:
    yield from product(LENGTHS, SLACKS, CHANGEOVERS)


def one_zone(traces: Sequence[Watched], starts: int) -> None:
    """Every trace on its own."""
    table, solving, sizes, looked_up = Table(), [], [], []
    chains = {each.campaign: chain_without(traces, each.campaign, edges_for(1, STEP)) for each in traces}
    for i, (hours, slack, changeover) in enumerate(cells()):
        terms = terms_of(hours, slack, changeover, ["zone"])
        policies = {}
        for campaign, chain in chains.items():
            began = time.perf_counter()
            policies[campaign] = make_policy(terms, [chain])
            solving.append(time.perf_counter() - began)
            sizes.append(policies[campaign].actions.nbytes / 2**20)
        for campaign, policy in policies.items():
            for nodes in sorted({each.nodes for each in traces if each.campaign == campaign}):
                up = [
                    windows(
                        [each.trace],
                        nodes=nodes,
                        step_hours=STEP,
                        hours=terms.deadline_hours,
                        starts=starts,
                        seed=REPORT_SEED + 1000 * i + j,
                    )
                    for j, each in enumerate(traces)
                    if (each.campaign, each.nodes) == (campaign, nodes)
                ]
                group = "1 node" if nodes == 1 else f"{nodes} nodes"
                looked_up.append(Timed(policy))
                table.add(group, terms, np.concatenate(up), simple(terms) | {"policy": looked_up[-1]})
    table.print("One zone")
    each = sum(timed.seconds for timed in looked_up) / sum(timed.decided for timed in looked_up)
    print(f"a decision takes {each * 1e6:.2f} us, many at once; ", end="")
    print(f"solving: median {np.median(solving):.2f} s, most {max(solving):.2f} s; table at most {max(sizes):.0f} MiB")


def later(trace: Trace, hours: float) -> Trace:
    """The trace from `hours` after its beginning."""
    return Trace(
        name=trace.name,
        step_hours=trace.step_hours,
        available=trace.available[round(hours / trace.step_hours) :],
    )


def several_zones(traces: Sequence[Watched], starts: int) -> None:
    """Zones that were watched at the same time, moves between regions at a cost.

    The policy knows other campaigns alone; the one that watched was fitted on the ten days before the first start,
    in the zones themselves. Data and on-demand machines are in the first zone's region.
    """
    by_zone = {(each.campaign, re.sub(r".*__", "", each.trace.name)): each for each in traces if each.nodes == 1}
    sets = {
        "2 zones, 2022": [("2022-10", "us-west-2a_v100_1"), ("2022-10", "us-west-2b_v100_1")],
        "2 zones, 2023": [("2023-02", "us-west-2a_v100_1"), ("2023-02", "us-west-2b_v100_1")],
        "2 regions": [("2023-02", "us-east-1c_v100_1"), ("2023-02", "us-east-2a_v100_1")],
        "3 zones": [("2023-02", f"us-east-1{z}_v100_1") for z in "acd"],
        "3 regions": [("2023-02", f"{z}_v100_1") for z in ("us-east-1d", "us-east-2a", "us-west-2a")],
    }
    for title, keys in sets.items():
        chosen = [by_zone[key] for key in keys]
        table = Table()
        solving = []
        for i, (slack, changeover) in enumerate(product((1.15, 1.5), CHANGEOVERS)):
            terms = terms_of(12.0, slack, changeover, [key[1].split("_")[0] for key in keys], move=1.0)
            began = time.perf_counter()
            edges = edges_for(len(keys), STEP)
            policy = make_policy(terms, [chain_without(traces, keys[0][0], edges)] * len(keys))
            solving.append(time.perf_counter() - began)
            steps = round(WATCHED_HOURS / STEP)
            watched = make_policy(terms, [fit([each.up()[:steps]], STEP, edges) for each in chosen])
            up = windows(
                [later(each.trace, WATCHED_HOURS) for each in chosen],
                nodes=1,
                step_hours=STEP,
                hours=terms.deadline_hours,
                starts=4 * starts,
                seed=REPORT_SEED + i,
            )
            rules = simple(terms) | {"policy": policy, "policy, watched": watched}
            table.add(f"{slack:g} x {changeover * 60:.0f} min", terms, up, rules)
        table.print(title)
        print(f"solving: most {max(solving):.2f} s")


def published(traces: Sequence[Watched], starts: int) -> None:
    """Can't Be Late, table 3: hours of progress on spot in October 2022, 48 h of work in 60 h, changeover 0.2 h."""
    step = 1 / 30
    terms = SpotTerms(
        work_hours=48.0,
        deadline_hours=60.0,
        step_hours=step,
        changeover_hours=0.2,
        on_demand_usd_per_hour=1.0,
        places=(Place(name="zone", usd_per_hour=1 / 3),),
    )
    coarse = replace(terms, step_hours=STEP)
    chosen = [each for each in traces if each.campaign == "2022-10"]
    up = np.concatenate(
        [
            windows([each.trace], nodes=1, step_hours=step, hours=60.0, starts=starts, seed=REPORT_SEED + j)
            for j, each in enumerate(chosen)
        ]
    )
    print(f"\nAgainst the published hours of work on-demand + on spot ({len(up)} runs on 6 of the 8 published zones)")
    rules: dict[str, Rule] = {
        "greedy": Greedy(terms),
        "Uniform Progress": UniformProgress(terms),
        "  which waits": UniformProgress(terms, waits=True),
        "policy": make_policy(coarse, [chain_without(traces, "2022-10", edges_for(1, STEP))]),
    }
    told = {"greedy": "30.8 + 17.2", "Uniform Progress": "25.1 + 22.9"}
    for name, rule in rules.items():
        got = replay(terms, up, rule)
        spot = got.spot_work_hours.mean()
        print(
            f"{name:<18} {terms.work_hours - spot:5.1f} + {spot:4.1f}, cost {got.usd.mean() / 48:.3f}, "
            f"late {int((got.late_hours > 0).sum())}; published {told.get(name, 'nothing')}"
        )
    best = omniscient_usd(terms, up).mean() / 48
    print(f"omniscient                      cost {best:.3f}; published 20.7 + 27.4")


def main() -> None:
    """Print the tables."""
    starts = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    traces = public_traces()
    one_zone(traces, starts)
    several_zones(traces, starts)
    published(traces, 5 * starts)


if __name__ == "__main__":
    main()
