"""A job that names machines that nobody can get is answered with the reason."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from gpuplan.api.services.offer_listing import OfferFilter, matching
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.offer_columns import columns_of
from gpuplan.planner.explain.named_supply import Supply, named
from gpuplan.planner.model.job import Constraints, Preset, TrainingJob
from gpuplan.planner.model.outcome import NoPlan, Planned
from gpuplan.planner.planning import plan
from gpuplan.planner.why.explanation import why
from gpuplan.planner.why.explanation_text import summary
from tests.planner.spot_settings import replaced_at_once

SNAPSHOT = embedded_snapshot()
FEW = ("p2.xlarge", "g6.xlarge", "a4x-highgpu-4g")
TYPES = [machine for machine in SNAPSHOT.instance_types if machine.name in FEW]
OFFERS = [offer for offer in SNAPSHOT.offers if offer.instance_type in FEW]
COLUMNS = columns_of(SNAPSHOT.id, SNAPSHOT.observed_at, TYPES, OFFERS)
SETTINGS = replaced_at_once()
START = datetime(2026, 11, 21, tzinfo=UTC)


def job(*names: str, accelerators: tuple[str, ...] = ()) -> TrainingJob:
    return TrainingJob(
        name="cnn",
        workload=Preset(model="resnet-50", samples=1e6),
        start=START,
        constraints=Constraints(instance_types=names, accelerators=accelerators),
    )


def warnings_of(asked: TrainingJob) -> tuple[str, ...]:
    outcome = plan(asked, COLUMNS, settings=SETTINGS)
    assert isinstance(outcome, NoPlan)
    return outcome.warnings


def test_a_retired_machine_answers_with_that_reason() -> None:
    assert warnings_of(job("p2.*"))[0].startswith("constraints.instance_types: p2.*: retired: a previous generation")


def test_a_machine_without_a_price_answers_with_that_reason() -> None:
    expected = "constraints.instance_types: a4x-highgpu-4g: no price is known: "
    assert warnings_of(job("a4x-highgpu-4g"))[0].startswith(expected)


def test_an_accelerator_without_a_price_answers_with_that_reason() -> None:
    expected = "constraints.accelerators: TPU-v7: no price is known: "
    assert warnings_of(job(accelerators=("TPU-v7",)))[0].startswith(expected)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("tpu7x-standard-4t", "no price is known"),
        ("NC6", "retired on 2023-09-06"),
        ("eg1.medium", "retired on 2024-01-08"),
    ],
)
def test_a_machine_that_the_catalogue_lacks_is_refused_with_that_reason(name: str, reason: str) -> None:
    with pytest.raises(UnusableInput, match=rf"constraints\.instance_types\[0\]: '{name}' cannot be had: {reason}"):
        plan(job(name), COLUMNS, settings=SETTINGS)


def test_another_unknown_name_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(UnusableInput, match=r"'p9\.xlarge' matches no instance type of the catalogue"):
        plan(job("p9.xlarge"), COLUMNS, settings=SETTINGS)


def test_a_machine_beside_it_that_can_be_had_is_planned_with() -> None:
    assert isinstance(plan(job("p2.*", "g6.xlarge"), COLUMNS, settings=SETTINGS), Planned)


def test_a_price_that_a_refresh_found_is_planned_with_and_nothing_says_that_there_is_none() -> None:
    price = next(offer for offer in OFFERS if offer.instance_type == "g6.xlarge")
    found_price: Offer = replace(
        price, provider="gcp", region="us-central1", zone="", instance_type="a4x-highgpu-4g", price_kind="on_demand"
    )
    columns = columns_of("refreshed", SNAPSHOT.observed_at, TYPES, [*OFFERS, found_price])
    assert len(matching(columns, OfferFilter(instance_type="a4x*"))) == 1
    too_small = replace(job("a4x-highgpu-4g"), budget_usd=0.01)
    outcome = plan(too_small, columns, settings=SETTINGS)
    assert isinstance(outcome, NoPlan)
    assert not any("no price is known" in warning for warning in outcome.warnings)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("p2.xlarge", "p2.xlarge: retired: a previous generation"),
        ("a4x-highgpu-4g", "a4x-highgpu-4g: no price is known"),
        ("TPU v7", "TPU v7: no price is known"),
    ],
)
def test_why_not_such_a_machine_has_the_reason(name: str, reason: str) -> None:
    explained = why(job(), COLUMNS, settings=SETTINGS, not_=name)
    assert any(sentence.startswith(reason) for sentence in summary(explained))


def test_why_not_a_machine_that_the_snapshot_lacks_has_the_reason() -> None:
    supply = Supply(columns=COLUMNS, owned=(), settings=SETTINGS)
    with pytest.raises(UnusableInput, match="not: 'NVv3' cannot be had: retired on 2026-09-30"):
        named("NVv3", supply, field="not")


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (OfferFilter(instance_type="NC6"), "instance_type: 'NC6' cannot be had: retired on 2023-09-06"),
        (OfferFilter(instance_type="a4x-*"), "instance_type: 'a4x-\\*' cannot be had: no price is known"),
        (OfferFilter(accelerator="TPU v7"), "accelerator: 'TPU v7': no price is known"),
    ],
)
def test_a_listing_without_such_offers_has_the_reason(wanted: OfferFilter, reason: str) -> None:
    with pytest.raises(UnusableInput, match=reason):
        matching(COLUMNS, wanted)


def test_retired_machines_with_old_prices_are_still_listed() -> None:
    assert len(matching(COLUMNS, OfferFilter(instance_type="p2.xlarge"))) > 0
