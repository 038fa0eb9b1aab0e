"""Discounts and credits as they stand in the settings file."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from gpuplan.api.schemas.settings_file import planner_settings
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.settings import Credit, Discount


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_discounts_and_credits_are_read(tmp_path: Path) -> None:
    text = """
discounts:
  - {provider: amazon, family: p5, percent: 12%}
  - {instance_type: a3-highgpu-8g, price_kind: on_demand, usd_per_hour: $60}
credits: [{provider: gcp, usd: 25k, expires: "2027-01-01T00:00Z"}]
"""
    settings = planner_settings(written(tmp_path, text))
    assert settings.discounts == (
        Discount(provider="aws", family="p5", percent=12.0),
        Discount(instance_type="a3-highgpu-8g", price_kind="on_demand", usd_per_hour=60.0),
    )
    assert settings.credits == (Credit(provider="gcp", usd=25_000.0, expires=datetime(2027, 1, 1, tzinfo=UTC)),)


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ("discounts: [{provider: aws}]", "settings.discounts[0]", "either percent or usd_per_hour"),
        (
            "discounts: [{provider: aws, percent: 5, usd_per_hour: 3}]",
            "settings.discounts[0]",
            "give either percent or usd_per_hour",
        ),
        ("discounts: [{provider: aws, usd_per_hour: 3}]", "settings.discounts[0]", "instance_type and price_kind"),
        ("discounts: [{percent: 100}]", "settings.discounts[0].percent", "below 100"),
        ("discounts: [{percent: -5}]", "settings.discounts[0].percent", "above 0"),
        ("discounts: [{percent: 5, provider: local}]", "settings.discounts[0].provider", "'local' is not accepted"),
        ("discounts: [{percent: 5, price_kind: owned}]", "settings.discounts[0].price_kind", "owned"),
        ("discounts: [{percent: 5, accelerator: H1000}]", "settings.discounts[0].accelerator", "H100"),
        ("discounts: [{percent: 5, family: p5, instance_type: p5.4xlarge}]", "settings.discounts[0]", "one of the two"),
        ("discounts: [{percent: 5, famly: p5}]", "settings.discounts[0].famly", "family"),
        ("credits: [{provider: aws, usd: -5}]", "settings.credits[0].usd", "-5"),
        ("credits: [{provider: aws, usd: 5, expires: 2027-01-01}]", "settings.credits[0].expires", "zone"),
    ],
)
def test_a_wrong_discount_or_credit_is_refused_by_name(tmp_path: Path, text: str, field: str, message: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        planner_settings(written(tmp_path, text))
    faults = {fault.field: fault.message for fault in refused.value.faults}
    assert message in faults[field]
