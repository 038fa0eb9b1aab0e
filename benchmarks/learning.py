"""What learning is worth: each measured run predicted again after a few other runs of the same source, its user.

For every run, others of its source and class of work are drawn at random and reported as a user would; then the
error of its time and whether it lies inside its 80 % band are compared with those of the plain estimate.
"""

import math
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.measured_runs import Run, predict, runs
from planner.estimate.bands import Z80, sigma_of
from planner.estimate.learned import NO_CORRECTION, Correction, learned_from, least_sigma
from planner.past_runs import PastRun


@dataclass(frozen=True)
class Known:
    """A run with ln(measured / plainly predicted time)."""

    source: str
    task: str
    accelerator: str
    log_hours: float

    def past(self) -> PastRun:
        """As its user would have reported it."""
        return PastRun(
            task=self.task, accelerator=self.accelerator, log_hours=self.log_hours, log_sigma=sigma_of(self.task)
        )


def known(run: Run) -> Known | None:
    """The run, if the estimator can run it and knows its unit."""
    found = predict(run)
    if found is None or run.row.get("scored") == "ratio":
        return None
    predicted = float(found.units_per_second[0]) / float(run.row["gpus_total"])
    return Known(run.row["source_group"], run.work.task, run.row["gpu"], math.log(predicted / run.per_accelerator))


def judged(run: Known, correction: Correction) -> tuple[float, bool]:
    """(relative error, inside its band) under a correction."""
    left, sigma = run.log_hours - correction.hours.log, sigma_of(run.task)
    floor = min(sigma, least_sigma(run.task))
    return abs(math.expm1(left)), abs(left) <= Z80 * math.sqrt(max(sigma**2 - correction.variance_removed, floor**2))


def compare(sample: list[Known], count: int, alike: Callable[[Known, Known], bool]) -> str:
    """One line: median and p90 error and coverage, means over sources, before and after learning of `count` runs."""
    draw = random.Random(0)
    judgements: dict[str, list[tuple[float, bool, float, bool]]] = defaultdict(list)
    for run in sample:
        others = [each for each in sample if each is not run and (each.source, each.task) == (run.source, run.task)]
        others = [each for each in others if alike(run, each)]
        if len(others) >= count:
            learned = learned_from(tuple(each.past() for each in draw.sample(others, count)), run.task)
            judgements[run.source].append((*judged(run, NO_CORRECTION), *judged(run, learned.of(run.accelerator))))
    tables = [np.array(each, dtype=np.float64).T for each in judgements.values()]
    parts = [f"{len(tables):7}{sum(each.shape[1] for each in tables):6}"]
    for first in (0, 2):
        median, tail = (np.mean([np.quantile(each[first], share) for each in tables]) for share in (0.5, 0.9))
        inside = np.mean([np.mean(each[first + 1]) for each in tables])
        parts.append(f"{median:9.1%}{tail:8.1%}{inside:8.1%}")
    return "   ".join(parts)


def main() -> None:
    """Print the table."""
    sample = [each for run in runs() if (each := known(run)) is not None]
    print(f"{'':32}{'':13}   {'plain':^25}   {'learned':^25}")
    print(f"{'runs of the same source':32}{'sources':>7}{'n':>6}" + f"   {'median':>9}{'p90':>8}{'in band':>8}" * 2)
    same = ("on the same accelerator", lambda run, each: run.accelerator == each.accelerator)
    others = ("on other accelerators", lambda run, each: run.accelerator != each.accelerator)
    for where, alike in (same, others):
        for count in (1, 3, 10):
            print(f"{f'{count} {where}':32}{compare(sample, count, alike)}")


if __name__ == "__main__":
    main()
