"""A bounded, regularised least-squares fit of the time model's constants to measured runs.

Minimise over theta = ln(constants)

    sum over source groups g of  n_g^(1/2) mean over runs i in g of  h((r_i(theta) - o_c(i) + e_gc(i)) / S)
    + sum over constants k of  ((theta_k - prior_k) / spread_k)^2  +  sum over effects e of  (e / spread)^2

where r is ln(predicted rate / measured rate), h Huber's loss, o_c the median residual of the runs that share an unknown
amount of work (0 for the others), and the prior of a chip's own share is the share common to all chips, so
that a chip without runs takes that. An effect e is what a source differs by on one chip for causes that its rows do not
state, such as a cluster or a release (a random intercept). Effects keep these out of the constants; predictions have none. Gauss-Newton with reweighting; the Jacobian by differences of two hundredths.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.performance import accelerator_constants
from gpuplan.planner.performance.estimator_request import Floats
from gpuplan.planner.performance.fitted_constants import FITTED, Key, table, trying, value
from tools.fitting.stacked_runs import Sample, residuals

#: Scatter of like runs under S; residuals beyond HUBER times that pull no harder (noise floor of MLPerf repeats: 6 %).
SCATTER = 0.06
HUBER = 1.0
STEP = 0.02
#: Constants whose prior is another's value, not a number: shares of one chip, generation or vendor lean on the common one.
LEANS_ON = {"stack_share": ("stack_share", ""), "explicit_share": ("explicit_share", "")}
Mask = NDArray[np.bool_]


def fitted_keys() -> list[Key]:
    """The constants that the fit may move."""
    return [key for key, row in table().items() if row.source == FITTED and row.spread is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What the fit weighs: runs of a group of n weigh n ** `weight` each.

    `spread` is that of ln(rate) between sources, on the same chip, without a cause that their rows state; 0 for none.
    """

    weight: float
    spread: float


#: Chosen among those of `tools.fitting.nested_choice`, which prints what the choice is worth on sources that had no part in it.
LOSS = Loss(weight=-0.5, spread=0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """Residuals around one point: r(theta) = at + jacobian (theta - point)."""

    keys: tuple[Key, ...]
    point: Floats
    at: Floats
    jacobian: NDArray[np.float64]


def priors() -> dict[Key, float]:
    """What a fit that has seen no runs gives."""
    return {key: table()[key].prior for key in fitted_keys()}


def linearised(sample: Sample, values: Mapping[Key, float]) -> Linear:
    """The Jacobian at `values`: one pass over the sample per constant."""
    keys = tuple(values)
    with trying(values):
        at = residuals(sample)
    columns = []
    for key in keys:
        with trying({**values, key: values[key] * np.exp(STEP)}):
            columns.append((residuals(sample) - at) / STEP)
    accelerator_constants.forget()
    return Linear(keys=keys, point=np.log(list(values.values())), at=at, jacobian=np.array(columns).T)


def comparisons(sample: Sample) -> NDArray[np.int64]:
    """Which unknown amount of work each run shares, numbered from 0; -1 where the work is known."""
    names = sorted({run.row["compared_within"] for run in sample.runs if run.row["scored"] == "ratio"})
    number = {name: index for index, name in enumerate(names)}
    return np.array([number.get(run.row["compared_within"], -1) for run in sample.runs])


def groups(sample: Sample) -> NDArray[np.str_]:
    """The source group of every run."""
    return np.array([run.row["group"] for run in sample.runs])


def solved(sample: Sample, linear: Linear, use: Mask, loss: Loss = LOSS) -> dict[Key, float]:
    """The constants that minimise the loss over the runs in `use`, as far as `linear` holds."""
    count, within, theta = len(linear.keys), comparisons(sample)[use], linear.point.copy()
    jacobian, start = linear.jacobian[use], linear.at[use]
    _, number, size = np.unique(groups(sample)[use], return_inverse=True, return_counts=True)
    weight = size[number] ** loss.weight
    columns = _effects(sample, use, loss)
    effects = np.zeros(columns.shape[1])
    scaled = np.hstack([_centred(jacobian, within), columns]) / SCATTER
    pull, target = _priors(linear.keys)
    penalty = np.zeros((scaled.shape[1],) * 2)
    penalty[:count, :count] = pull
    penalty[count:, count:] = np.eye(len(effects)) / max(loss.spread, 1e-9) ** 2
    low, high = (np.log([getattr(table()[key], side) for key in linear.keys]) for side in ("low", "high"))
    for _ in range(12):
        left = (_off_median(start + jacobian @ (theta - linear.point), within) + columns @ effects) / SCATTER
        share = weight * np.minimum(1.0, HUBER / np.maximum(np.abs(left), 1e-9))
        normal = scaled.T @ (share[:, None] * scaled) + penalty
        slope = scaled.T @ (share * left) + penalty @ np.concatenate([theta - target, effects])
        step = np.linalg.solve(normal, slope)
        theta, effects = np.clip(theta - step[:count], low, high), effects - step[count:]
    return {key: float(np.exp(value)) for key, value in zip(linear.keys, theta, strict=True)}


def _effects(sample: Sample, use: Mask, loss: Loss) -> NDArray[np.float64]:
    """A column of ones for each chip of each source in `use`, over its runs of known work."""
    known = (comparisons(sample) < 0)[use]
    places = np.array([f"{run.row['group']} on {run.row['gpu']}" for run in sample.runs])[use]
    names = np.unique(places[known]) if loss.spread else places[:0]
    columns: NDArray[np.float64] = (known & (names[:, None] == places)).T.astype(np.float64)
    return columns


def _priors(keys: tuple[Key, ...]) -> tuple[NDArray[np.float64], Floats]:
    """(matrix P, target t) such that the penalty is (theta - t)' P (theta - t)."""
    count = len(keys)
    matrix, target = np.zeros((count, count)), np.log([table()[key].prior for key in keys])
    where = {key: index for index, key in enumerate(keys)}
    for index, key in enumerate(keys):
        row = np.zeros(count)
        row[index] = 1.0 / (table()[key].spread or 1.0)
        common = where.get(LEANS_ON.get(key[0], key), index)
        if common != index:
            row[common] = -row[index]
            target[index] = target[common]
        matrix += np.outer(row, row)
    return matrix, target


def _off_median(values: Floats, within: NDArray[np.int64]) -> Floats:
    """`values` less the median of those that share a comparison."""
    left = values.copy()
    for number in np.unique(within[within >= 0]):
        left[within == number] -= np.median(left[within == number])
    return left


def _centred(jacobian: NDArray[np.float64], within: NDArray[np.int64]) -> NDArray[np.float64]:
    """Columns less their mean within each comparison: what moves all its runs alike cannot be seen there."""
    left = jacobian.copy()
    for number in np.unique(within[within >= 0]):
        left[within == number] -= left[within == number].mean(axis=0)
    return left


def fit(sample: Sample, use: Mask, start: Mapping[Key, float], *, rounds: int) -> dict[Key, float]:
    """`rounds` of linearising and solving from `start`, with the residuals of the runs in `use` alone."""
    values = dict(start)
    for _ in range(rounds):
        values = solved(sample, linearised(sample, values), use)
    return values


def scored(sample: Sample, values: Mapping[Key, float]) -> Floats:
    """Residuals under `values`; runs in unknown units against the median of the others of their comparison.

    nan where a run has nothing to be compared with.
    """
    return offset_by_others(under(sample, values), comparisons(sample))


def under(sample: Sample, values: Mapping[Key, float]) -> Floats:
    """Residuals under `values`; of runs in unknown units they have an unknown offset."""
    with trying(values):
        left = residuals(sample)
    accelerator_constants.forget()
    return left


def offset_by_others(values: Floats, within: NDArray[np.int64]) -> Floats:
    """`values` less the median of the others that share a comparison, nan where there are none."""
    left = values.copy()
    for number in np.unique(within[within >= 0]):
        places = np.flatnonzero(within == number)
        left[places] = [result - _others(values[places], index) for index, result in enumerate(values[places])]
    return left


def _others(values: Floats, index: int) -> float:
    others = np.delete(values, index)
    return float(np.median(others)) if len(others) else np.nan


def identified_by(linear: Linear) -> dict[Key, int]:
    """How many runs move by a hundredth or more when a constant moves by a tenth."""
    moved = np.abs(linear.jacobian) >= 0.1
    return dict(zip(linear.keys, np.count_nonzero(moved, axis=0).tolist(), strict=True))


def current() -> dict[Key, float]:
    """The constants as they stand."""
    return {key: value(*key) for key in fitted_keys()}


def without_source(sample: Sample, now: dict[Key, float]) -> Floats:
    """Each source predicted by the constants that the others give; runs in unknown units have an unknown offset."""
    left, group, linear = np.full(len(sample.runs), np.nan), groups(sample), linearised(sample, now)
    for name in np.unique(group):
        out = group == name
        left[out] = under(sample, solved(sample, linear, ~out))[out]
    return left
