"""What the choice of the fit's loss is worth to a stranger: `python -m tools.fitting.nested_choice`.

Each loss below is scored on every source by constants that were fitted without that source. A random half of the sources
chooses the loss with the lowest median there, and the other half reports that loss's errors: no source takes part in the
choice that it is scored by. Means are over sources with at least nine runs.
"""

import numpy as np

from gpuplan.planner.performance.estimator_request import Floats
from tools.fitting.accuracy import LEAST_RUNS, errors, source_of
from tools.fitting.least_squares_fit import LOSS, Loss, current, linearised, scored, solved
from tools.fitting.measured_runs import runs
from tools.fitting.stacked_runs import Sample, sample_of

LOSSES = tuple(Loss(weight=weight, spread=spread) for weight in (-0.75, -0.5) for spread in (0.0, 0.05, 0.1, 0.2))
#: Random halves of the sources.
_HALVES = 200


def errors_by_loss(sample: Sample) -> Floats:
    """(loss, source, median and p90) errors of each source under constants fitted without it."""
    linear, names = linearised(sample, current()), np.array([source_of(run) for run in sample.runs])
    sources = [name for name in np.unique(names) if np.count_nonzero(names == name) >= LEAST_RUNS]
    return np.array(
        [
            [errors(scored(sample, solved(sample, linear, names != name, loss))[names == name]) for name in sources]
            for loss in LOSSES
        ]
    )


def nested(by_loss: Floats) -> tuple[Floats, Floats]:
    """Mean (median, p90) on the halves that did not choose, and how often each loss was chosen."""
    rng, count = np.random.default_rng(0), by_loss.shape[1]
    reported, chosen = [], np.zeros(len(by_loss))
    for _ in range(_HALVES):
        choosing = rng.permutation(count) < count // 2
        best = int(by_loss[:, choosing, 0].mean(axis=1).argmin())
        chosen[best] += 1
        reported.append(by_loss[best, ~choosing].mean(axis=0))
    return np.mean(reported, axis=0), chosen / _HALVES


def main() -> None:
    """Print every loss, how often it was chosen, and the error of the choice."""
    by_loss = errors_by_loss(sample_of(runs()))
    (median, p90), chosen = nested(by_loss)
    print("weight  spread  median     p90  chosen")
    for loss, mean, share in zip(LOSSES, by_loss.mean(axis=1), chosen, strict=True):
        mark = "  <- of the fit" if loss == LOSS else ""
        print(f"{loss.weight:6}{loss.spread:8}{mean[0]:8.1%}{mean[1]:8.1%}{share:8.0%}{mark}")
    print(f"chosen on one half of the sources, reported on the other: {median:.1%} median, {p90:.1%} p90")


if __name__ == "__main__":
    main()
