"""The expected charges against the columns, types and values of FOCUS 1.2."""

import csv
import io
import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from gpuplan.api.exports.export_formats import one_export
from gpuplan.api.exports.focus import COLUMNS
from tests.api.exports.documents import Document, answer, in_phases, phase

#: From the rule model 1.2.0.1 that the FinOps Foundation publishes with its validator.
SPECIFIED = json.loads((Path(__file__).parent / "schemas" / "focus-1.2.json").read_text(encoding="utf-8"))["columns"]
#: Applies where a provider assigns names, has zones and regions, several kinds of prices, and tags.
CONDITIONAL = {"AvailabilityZone", "PricingCategory", "RegionId", "RegionName", "Tags"}


def rows(document: Document) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(one_export(document, to="focus").text)))


def test_every_mandatory_column_is_there_and_every_other_is_specified_or_custom() -> None:
    mandatory = {name for name, column in SPECIFIED.items() if column["presence"] == "mandatory"}
    assert mandatory | CONDITIONAL <= set(COLUMNS)
    assert all(name in SPECIFIED or name.startswith("x_") for name in COLUMNS)


def test_every_value_is_of_its_columns_type_and_among_the_allowed_ones() -> None:
    for row in rows(in_phases()) + rows(answer(phase("local", kind="owned"))):
        for name, value in row.items():
            column: dict[str, Any] = SPECIFIED.get(name, {})
            if value == "":
                assert column.get("nullable", True), name
                continue
            if column.get("type") == "Decimal":
                assert re.fullmatch(r"\d+\.\d+", value), name
            if column.get("type") == "Date/Time":
                assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", value), name
            if "allowed" in column:
                assert value in column["allowed"], name


def test_the_rows_sum_to_the_cost_of_the_plan_part_by_part() -> None:
    charges = rows(in_phases())
    assert sum(Decimal(row["BilledCost"]) for row in charges) == 3 * Decimal("2000.000001")
    storage = [row for row in charges if row["x_GpuplanPart"] == "storage" and row["x_GpuplanPhase"] == "1"]
    assert sum(Decimal(row["BilledCost"]) for row in storage) == Decimal("3.000001")
    assert {row["x_GpuplanPart"] for row in charges} == {"compute", "storage", "egress", "setup"}


def test_a_charge_is_split_where_a_billing_month_ends() -> None:
    pieces = [row for row in rows(answer(phase(hours=100.0))) if row["x_GpuplanPart"] == "compute"]
    assert [row["BillingPeriodStart"] for row in pieces] == ["2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"]
    assert pieces[0]["ChargePeriodEnd"] == pieces[1]["ChargePeriodStart"] == "2026-12-01T00:00:00Z"
    for row in pieces:
        assert row["BillingPeriodStart"] <= row["ChargePeriodStart"] < row["ChargePeriodEnd"] <= row["BillingPeriodEnd"]


def test_every_row_is_marked_as_an_estimate_that_no_invoice_has() -> None:
    for row in rows(in_phases()):
        assert row["x_Estimate"] == "true"
        assert row["InvoiceId"] == ""
        assert row["ChargeDescription"].startswith("Estimate: ")
        assert row["BillingAccountId"] == "gpuplan-estimate"
    assert {row["x_GpuplanRole"] for row in rows(in_phases())} == {"planned", "standby"}


def test_prices_are_dynamic_on_spot_and_committed_under_a_term() -> None:
    kinds = {"spot": "Dynamic", "on_demand": "Standard", "reserved_1y": "Committed"}
    for kind, category in kinds.items():
        assert {row["PricingCategory"] for row in rows(answer(phase(kind=kind)))} == {category}


def test_quantity_times_price_is_the_cost_of_the_hours() -> None:
    for row in rows(answer()):
        if row["PricingUnit"] == "Hours":
            cost = Decimal(row["PricingQuantity"]) * Decimal("12.3456")
            assert abs(cost - Decimal(row["ListCost"])) < Decimal("0.0001")


def test_no_cell_begins_like_a_formula_whatever_the_job_is_called() -> None:
    for name in ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", '"=1', "x,=1", "\r\n=1"):
        for row in rows(answer(name=name)):
            assert not any(value.startswith(("=", "+", "-", "@", "\t", "\r")) for value in row.values())
            assert json.loads(row["Tags"])["job"]


def test_a_phase_without_time_still_has_a_period() -> None:
    charges = rows(answer(phase(hours=0.0)))
    start = datetime.fromisoformat(charges[0]["ChargePeriodStart"])
    assert start == datetime(2026, 11, 28, 12, tzinfo=UTC)
    assert all(row["ChargePeriodEnd"] > row["ChargePeriodStart"] for row in charges)
