"""The estimate cache gives every job the estimates that it would have without a cache, bit for bit."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cachetools import LRUCache
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.planner.candidates import estimate_cache
from gpuplan.planner.candidates.estimated_machines import Estimated, estimate_of
from gpuplan.planner.candidates.machine_shapes import shapes_of
from gpuplan.planner.candidates.node_counts import machine_candidates
from gpuplan.planner.model.job import Preset, Training
from gpuplan.planner.model.learned import NOTHING, AcceleratorCorrection, LearnedCorrections, Shift
from gpuplan.planner.performance.corrected_estimates import estimate_learned
from gpuplan.planner.performance.estimator_request import arrays_of
from gpuplan.planner.workload import work_of
from tests.planner.small_catalogues import random_types

SHAPES = shapes_of(tuple(random_types(random.Random("shapes"), 6)))
TAUGHT = LearnedCorrections(
    task="language",
    corrections=(
        AcceleratorCorrection(
            accelerator="L4", hours=Shift(log=0.3, runs=3), memory=Shift(log=0.1, runs=3), variance_removed=1e-3
        ),
    ),
)
JOBS = st.fixed_dictionaries(
    {
        "model": st.sampled_from(("gpt2", "llama-3-8b")),
        "tokens": st.floats(1e8, 1e11),
        "wanted": st.sets(st.integers(0, len(SHAPES) - 1), max_size=5),
        "max_nodes": st.sampled_from((1, 3, 8, 19, 32, 40)),
        "method": st.sampled_from(("full", "lora")),
        "learned": st.sampled_from((NOTHING, TAUGHT)),
    }
)


@pytest.mark.slow(reason="one long case")
@given(jobs=st.lists(JOBS, min_size=1, max_size=6))
@settings(deadline=None, max_examples=25)
def test_a_job_has_the_same_estimates_whichever_jobs_were_asked_about_before(jobs: list[dict]) -> None:  # type: ignore[type-arg]
    for job in jobs:
        training = Training(method=job["method"])
        work = work_of(Preset(model=job["model"], tokens=job["tokens"]), training)
        wanted, learned = tuple(sorted(job["wanted"])), job["learned"]
        rows, estimates, _ = estimate_cache.cached_estimates(
            SHAPES, wanted, job["max_nodes"], work, training, goodput=0.9, learned=learned
        )
        alone = machine_candidates(SHAPES, wanted, job["max_nodes"])
        expected = estimate_learned(work, training, alone.machines, goodput=0.9, learned=learned)
        assert np.array_equal(rows.shape, alone.shape)
        assert np.array_equal(rows.nodes, alone.nodes)
        assert np.array_equal(rows.first, alone.first)
        for name in arrays_of(estimates):
            mine, theirs = getattr(estimates, name)[rows.row], getattr(expected, name)[alone.row]
            assert np.array_equal(mine, theirs, equal_nan=True), name
        for name, term in estimates.terms.items():
            assert np.array_equal(term[rows.row], expected.terms[name][alone.row]), name


def test_the_least_recently_used_tables_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    def evicting(most: int) -> list[int]:
        tables: LRUCache[Any, Any] = LRUCache(most, getsizeof=estimate_cache._tables.getsizeof)
        monkeypatch.setattr(estimate_cache, "_tables", tables)
        for width in (1, 2, 1, 3, 4):
            training = Training(method="lora", rank=width)
            work = work_of(Preset(model="gpt2", tokens=1e9), training)
            estimate_cache.cached_estimates(SHAPES, (0, 1), 4, work, training, goodput=1.0, learned=NOTHING)
        return sorted(key.training.rank for key in tables)

    share = estimate_cache.MOST_BYTES // estimate_cache.MOST_TABLES
    assert evicting(3 * share) == [1, 3, 4]
    assert evicting(1) == []


def test_the_second_job_that_needs_more_rows_leaves_none_of_a_small_table_open(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(method="lora", rank=77)
    work = work_of(Preset(model="gpt2", tokens=1e9), training)

    def ask(*wanted: int) -> int:
        estimate_cache.cached_estimates(SHAPES, wanted, 4, work, training, goodput=1.0, learned=NOTHING)
        return int(np.count_nonzero(~list(estimate_cache._tables.values())[-1].done))

    alone = ask(0)
    assert alone > 0
    assert ask(0) == alone
    assert ask(1) == 0
    monkeypatch.setattr(estimate_cache, "_MOST_ROWS_AT_ONCE", 1)
    training = Training(method="lora", rank=78)
    assert ask(0) > ask(1) > 0


def test_batches_of_one_model_that_run_on_the_same_machines_share_what_is_kept_beside_tables() -> None:
    # Of its own, so that no table of them is there, filled in by another test.
    training, shapes = Training(method="full"), shapes_of(tuple(random_types(random.Random("of its own"), 6)))

    def able(model: str, batch: float) -> estimate_cache.Able | None:
        work = work_of(Preset(model=model, tokens=1e9, global_batch_tokens=batch), training)
        return estimate_cache.cached_estimates(shapes, (0, 1), 2, work, training, goodput=1.0, learned=NOTHING)[2]

    assert able("gpt2", 2.0**19) is able("gpt2", 2.0**20)
    assert able("gpt2", 2.0**19) is not able("llama-3-70b", 2.0**22)


def test_a_job_on_many_nodes_caches_no_table() -> None:
    training, most = Training(), estimate_cache.MOST_CACHED_NODES + 1
    work = work_of(Preset(model="gpt2", tokens=1e9), training)
    before = len(estimate_cache._tables)
    rows, estimates, able = estimate_cache.cached_estimates(
        SHAPES, (0, 1), most, work, training, goodput=1.0, learned=NOTHING
    )
    assert able is None
    assert len(estimate_cache._tables) == before
    assert len(estimates) == len(rows.machines)


def test_the_estimate_of_one_machine_row_is_found_among_those_of_all() -> None:
    training = Training(method="full")
    work = work_of(Preset(model="llama-3-8b", tokens=1e9), training)
    rows, estimates, able = estimate_cache.cached_estimates(
        SHAPES, (0, 1, 3), 3, work, training, goodput=0.9, learned=TAUGHT
    )
    estimated = Estimated(rows=rows, estimates=estimates, able=able)
    able_rows = 0
    for row in set(rows.row.tolist()):
        machines = rows.machines.take(np.array([row]))
        known = estimate_of(estimated, machines)
        anew = estimate_learned(work, training, machines, goodput=0.9, learned=TAUGHT)
        assert (known is None) == bool(anew.reason[0])
        if known is None:
            continue
        able_rows += 1
        assert all(np.array_equal(getattr(known, name), getattr(anew, name)) for name in arrays_of(anew))
        assert {name: term[0] for name, term in known.terms.items()} == {n: t[0] for n, t in anew.terms.items()}
        assert estimate_of(estimated, replace(machines, devices=machines.devices + 1000)) is None
        slower = replace(machines, internode_gbps=machines.internode_gbps + 1.0)
        # The network between nodes is of no account for one.
        of_no_account = machines.nodes[0] == 1 or np.isnan(machines.internode_gbps[0])
        assert (estimate_of(estimated, slower) is not None) == of_no_account
    assert able_rows
