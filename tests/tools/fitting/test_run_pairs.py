"""Ratios between runs of the same work on different machines, counted by hand."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpuplan.planner.model.job import Training
from gpuplan.planner.performance.prediction_bands import Z80
from tools.fitting.run_pairs import pairs_of
from tools.fitting.stacked_runs import Sample


def run(gpu: str, gpus: int = 1, *, model: str = "ssd", task: str = "detection") -> Any:
    row = {"group": "mlperf", "compared_within": "", "seq_len": "", "image_size": "300", "model": model}
    row |= {"gpu": gpu, "gpus_total": str(gpus)}
    return SimpleNamespace(row=row, work=SimpleNamespace(task=task), training=Training())


def test_every_run_is_compared_with_those_of_its_work_on_other_machines_and_weighs_one() -> None:
    runs = (
        run("V100-32GB"),
        run("V100-32GB"),
        run("A100-80GB-SXM"),
        run("A100-80GB-SXM", model="alone"),
        run("T4"),
        run("T4", model="gpt2", task="language"),
        run("T4", 8, model="gpt2", task="language"),
    )
    unknown = 7.0
    left = np.array([0.1, 0.3, 0.5, 0.9, math.nan, unknown, unknown + 0.2])
    pairs = pairs_of(Sample(runs=runs, stacks=(), measured=np.zeros(7)), left)
    detection = pairs.of("detection")
    assert sorted(detection.log_errors.tolist()) == pytest.approx([-0.4, -0.2, 0.2, 0.4])
    assert pairs.runs == 5
    assert detection.runs == 3
    assert pairs.of("language").log_errors.tolist() == pytest.approx([-0.2, 0.2])
    # -0.4 and -0.2 weigh one each, 0.4 and 0.2 of the third run a half each.
    assert detection.inside(0.3 / Z80) == pytest.approx(0.5)
    assert detection.sigma() == pytest.approx(0.4 / Z80)
    assert pairs.of("language").inside(0.19 / Z80) == 0
