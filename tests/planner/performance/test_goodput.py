"""The modelled goodput: its formula, how it falls with accelerators, and that a stated one wins."""

import math

import numpy as np
import pytest

from gpuplan.planner.model.job import Training
from gpuplan.planner.performance import On, estimate, estimate_on
from gpuplan.planner.performance.goodput import goodput_of, modelled_goodput
from tests.planner.performance.cases import chip, cluster, llama_8b


def test_goodput_is_evaluation_checkpoints_and_failures() -> None:
    failures_per_hour = 16_384 / 40_000
    lost = math.sqrt(2 * 0.005 * failures_per_hour) + 0.15 * failures_per_hour
    assert modelled_goodput(np.array([16_384.0]))[0] == pytest.approx((1 - 0.03) / (1 + lost))


def test_goodput_falls_with_every_accelerator_and_stays_a_share() -> None:
    shares = modelled_goodput(np.arange(1.0, 100_000.0))
    assert np.all(np.diff(shares) < 0)
    assert 0 < shares[-1] < shares[0] < 0.97


def test_a_stated_goodput_wins_over_the_modelled_one_at_every_size() -> None:
    assert goodput_of(0.5, np.array([8.0, 16_384.0])).tolist() == [0.5, 0.5]
    machines = [cluster(chip(), nodes=nodes) for nodes in (1, 64)]
    for rows in machines:
        stated = estimate(llama_8b(), Training(), rows, goodput=0.5)
        assert stated.hours_with_goodput[0] == pytest.approx(stated.hours[0] / 0.5)


def test_an_estimate_without_a_stated_goodput_uses_that_of_its_accelerators() -> None:
    for gpus in (8, 512):
        answer = estimate_on(llama_8b(), Training(), On(accelerator="H100-80GB-SXM", gpus=gpus), goodput=None)
        share = modelled_goodput(np.array([float(gpus)]))[0]
        assert answer.hours / answer.hours_with_goodput == pytest.approx(share)
        stated = [assumed.value for assumed in answer.assumed if assumed.field == "settings.goodput"]
        assert stated == [pytest.approx(share, abs=1e-4)]
