"""What code is written for decides which machines are compared, and what others would cost is said."""

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest

from gpuplan.api.schemas.job import canonical, parse_job
from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.offer import InstanceType
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.offer_columns import columns_of
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import NoPlan, Planned
from gpuplan.planner.planning import plan
from tests.planner.spot_settings import replaced_at_once
from tests.planner.verify.answers import answer_of, checked, snapshot_columns, tampered

NOW = datetime(2026, 11, 21, tzinfo=UTC)
SNAPSHOT = embedded_snapshot()
COLUMNS = columns_of(SNAPSHOT.id, SNAPSHOT.observed_at, list(SNAPSHOT.instance_types), list(SNAPSHOT.offers))
#: A tenth of the offers, of every stack: an answer is verified in a tenth of the time.
IN_AMERICA = snapshot_columns(
    list(SNAPSHOT.instance_types),
    [offer for offer in SNAPSHOT.offers if offer.region in {"us-east-1", "us-central1", "us-east5"}],
)
SETTINGS = replaced_at_once()
PRESET = {"kind": "preset", "model": "resnet-50", "samples": 115_000_000}
ORDER = ("any", "jax", "pytorch-cuda", "pytorch-rocm", "xla")
EXPLICIT = {"kind": "explicit", "total_flops": 1e20, "memory_gib": 40}


def read(workload: dict[str, Any] = PRESET, **parts: Any) -> TrainingJob:
    return parse_job({"workload": workload, "deadline": "12h", "start": "2026-11-21T00:00Z"} | parts, now=NOW)


def planned(job: TrainingJob, owned: tuple[OwnedMachine, ...] = ()) -> Planned:
    outcome = plan(job, COLUMNS, owned=owned, settings=SETTINGS)
    assert isinstance(outcome, Planned)
    return outcome


@pytest.mark.parametrize(
    ("workload", "constraints", "framework"),
    [
        (PRESET, {}, "pytorch-cuda"),
        (EXPLICIT, {}, "any"),
        (PRESET, {"accelerators": ["H100"]}, "pytorch-cuda"),
        (PRESET, {"accelerators": ["TPU v6e"]}, "xla"),
        (PRESET, {"accelerators": ["Trainium2"]}, "neuron"),
        (PRESET, {"vendors": ["AMD"]}, "pytorch-rocm"),
        (PRESET, {"vendors": ["NVIDIA", "AMD"]}, "any"),
        (PRESET, {"vendors": ["Intel"]}, "any"),
        ({"kind": "measured", "on": "8 x A100-40GB-SXM", "nodes": 1, "hours": 20, "like": "cnn"}, {}, "pytorch-cuda"),
    ],
)
def test_a_job_that_states_no_framework_has_the_usual_one_or_that_of_the_machines_it_names(
    workload: dict[str, Any], constraints: dict[str, Any], framework: str
) -> None:
    assert read(workload, constraints=constraints).training.framework == framework


def test_a_stated_framework_holds_and_travels_with_the_plan() -> None:
    job = read(training={"framework": "jax"}, constraints={"vendors": ["Google"]})
    assert job.training.framework == "jax"
    assert parse_job(canonical(job), now=NOW).training == job.training


def test_an_unknown_framework_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnusableInput, match=r"training\.framework.*pytorch-cuda.*pytorch-rocm.*jax.*xla.*neuron.*any"):
        read(training={"framework": "tensorflow"})


@pytest.mark.parametrize(
    ("framework", "stacks"),
    [
        ("pytorch-cuda", {"cuda"}),
        ("pytorch-rocm", {"rocm"}),
        ("jax", {"cuda", "rocm", "xla"}),
        ("xla", {"xla"}),
        ("neuron", {"neuron"}),
    ],
)
def test_a_plan_and_its_alternatives_are_on_machines_that_run_the_code(framework: str, stacks: set[str]) -> None:
    outcome = planned(read(training={"framework": framework}, deadline="60d"))
    choices = [phase.choice for phase in outcome.phases] + [alternative.choice for alternative in outcome.alternatives]
    assert {accelerators()[choice.accelerator].stack for choice in choices} <= stacks


def test_cheaper_machines_for_other_code_are_named_with_what_they_save_and_verified() -> None:
    job = read()
    outcome, free = planned(job), planned(replace(job, training=replace(job.training, framework="any")))
    other = outcome.other_framework
    assert other is not None
    assert not other.framework.startswith("pytorch-cuda")
    assert other.extra == other.choice.cost.expected - outcome.cost.expected < 0
    assert free.cost.expected <= other.choice.cost.expected
    assert free.other_framework is None
    answer = answer_of(job, IN_AMERICA, settings=SETTINGS)
    assert checked(answer, job, IN_AMERICA, settings=SETTINGS).wrong == ()
    for path, value in (("framework", "jax"), ("extra_usd", "-0.010000"), ("nodes", 2), ("hours", 1.0)):
        forged = tampered(answer, ("other_framework", path), value)
        assert checked(forged, job, IN_AMERICA, settings=SETTINGS).wrong
    hidden = {name: value for name, value in answer["plan"].items() if name != "other_framework"}
    assert checked(answer | {"plan": hidden}, job, IN_AMERICA, settings=SETTINGS).wrong


def test_a_job_that_its_framework_makes_impossible_is_told_which_one_makes_it_possible() -> None:
    job = read(training={"framework": "neuron"}, constraints={"providers": ["gcp"], "max_nodes": 2}, deadline="60d")
    outcome = plan(job, COLUMNS, settings=SETTINGS)
    assert isinstance(outcome, NoPlan)
    assert ("training.framework",) in [change.requirements for change in outcome.relaxations]
    answer = answer_of(job, COLUMNS, settings=SETTINGS)
    assert checked(answer, job, COLUMNS, settings=SETTINGS).wrong == ()


def test_owned_machines_of_another_stack_are_candidates_with_a_notice() -> None:
    machine = InstanceType(
        provider="local", name="mi250x", accelerator="MI250X", accelerator_count=Fraction(8), source="inventory"
    )
    server = OwnedMachine(
        instance_type=machine,
        region="lab",
        machines=1,
        usd_per_hour_full=0.01,
        power_watts=4000,
        pue=1.0,
        usd_per_kwh=0.01,
    )
    outcome = planned(read(), owned=(server,))
    assert outcome.phases[0].choice.instance_type.name == "mi250x"
    assert any("needs code for pytorch-rocm" in warning for warning in outcome.warnings)


def test_a_narrower_framework_never_makes_a_plan_cheaper() -> None:
    job = read(workload={"kind": "preset", "model": "llama-3-8b", "tokens": "1B"}, deadline="2d")
    of = {name: planned(replace(job, training=replace(job.training, framework=name))).cost.expected for name in ORDER}
    assert of["any"] <= of["jax"] <= min(of["pytorch-cuda"], of["pytorch-rocm"], of["xla"])


def test_a_change_of_machines_that_saves_too_little_is_named_and_not_planned() -> None:
    job = read(
        workload={"kind": "preset", "model": "mixtral-8x7b", "tokens": "19B", "global_batch_tokens": 2_097_152},
        constraints={"geography": ["eu", "uk"], "max_nodes": 16},
        deadline="5d",
    )
    free = plan(job, COLUMNS, settings=replace(SETTINGS, least_saving_of_a_move_percent=0.0))
    outcome = planned(job)
    assert isinstance(free, Planned)
    assert len(free.phases) == 2
    assert len(outcome.phases) == 1
    assert free.cost.expected >= outcome.cost.expected * 0.95
    assert any("less than the 5 % that a change of machines has to save" in note for note in outcome.assumptions)
    answer = answer_of(job, COLUMNS, settings=SETTINGS)
    assert checked(answer, job, COLUMNS, settings=SETTINGS).wrong == ()
