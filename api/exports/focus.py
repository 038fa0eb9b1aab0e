"""The expected charges of a plan as a FOCUS 1.2 dataset: https://focus.finops.org/focus-specification/v1-2/

One row per phase, part of the cost and billing month. `InvoiceId` is null because nothing is billed; the conditional columns of
consumption are omitted because nothing is measured. Every row is marked as an estimate by its description, its billing
account, and the custom column `x_Estimate` (the specification prefixes custom columns with `x_`).
"""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from gpuplan.api.exports.plan_handover import Handover, Phase, seller
from gpuplan.catalog.model.money import usd_text
from gpuplan.catalog.model.regions import regions
from gpuplan.planner.serialization.rounded_figures import moment

#: Columns of the specification in its own order (alphabetical), then ours.
COLUMNS = (
    "AvailabilityZone",
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceId",
    "InvoiceIssuerName",
    "ListCost",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "RegionId",
    "RegionName",
    "ServiceCategory",
    "ServiceName",
    "ServiceSubcategory",
    "Tags",
    "x_Estimate",
    "x_GpuplanPart",
    "x_GpuplanPhase",
    "x_GpuplanPlan",
    "x_GpuplanRole",
    "x_GpuplanSnapshot",
)
#: Service category and subcategory of each part, as the specification lists them, and the name of the service.
SERVICES = {
    "compute": ("Compute", "Virtual Machines", "Machines"),
    "setup": ("Compute", "Virtual Machines", "Machines"),
    "storage": ("Storage", "Other (Storage)", "Storage of data and checkpoints"),
    "egress": ("Networking", "Other (Networking)", "Data transfer out"),
    "power": ("Other", "Other (Other)", "Electricity of owned machines"),
}
#: Parts with node-hours and a node price; for others the plan has only the cost.
BY_THE_HOUR = ("compute", "setup")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The part of a charge in one billing month."""

    begins: datetime
    ends: datetime
    month: datetime
    next_month: datetime
    micros: int
    share: Decimal


def focus(*handovers: Handover, month: datetime | None = None) -> str:
    """The non-zero cost parts of all phases as CSV, or those of one billing month; dollars with six decimals."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    for handover in handovers:
        for phase in handover.phases:
            for part, micros in phase.costs.items():
                charged = pieces(phase, micros) if micros else ()
                writer.writerows(
                    _row(handover, phase, part, piece) for piece in charged if month in (None, piece.month)
                )
    return text.getvalue()


def pieces(phase: Phase, micros: int) -> Iterator[Piece]:
    """The charge month by month, in proportion to time; the pieces sum to it."""
    begins = phase.starts_at.astimezone(UTC).replace(microsecond=0)
    ends = max(begins + timedelta(seconds=1), phase.ends_at.astimezone(UTC).replace(microsecond=0))
    at, given = begins, 0
    while at < ends:
        month = at.replace(day=1, hour=0, minute=0, second=0)
        next_month = (month + timedelta(days=32)).replace(day=1)
        until = min(ends, next_month)
        so_far = micros * int((until - begins).total_seconds()) // int((ends - begins).total_seconds())
        share = Decimal((until - at).total_seconds()) / Decimal((ends - begins).total_seconds())
        yield Piece(begins=at, ends=until, month=month, next_month=next_month, micros=so_far - given, share=share)
        at, given = until, so_far


def _row(handover: Handover, phase: Phase, part: str, piece: Piece) -> dict[str, str]:
    category, subcategory, service = SERVICES[part]
    quantity, unit = _quantity(phase, part, piece)
    seller_name = "Own machines" if phase.provider == "local" else seller(phase.provider)
    place = regions().get((phase.provider, phase.region))
    costs = ("BilledCost", "ContractedCost", "EffectiveCost", "ListCost")
    return dict.fromkeys(costs, _decimal(Decimal(usd_text(piece.micros)))) | {
        "AvailabilityZone": phase.zone,
        "BillingAccountId": "gpuplan-estimate",
        "BillingAccountName": "Estimate by gpuplan, not billed",
        "BillingCurrency": "USD",
        "BillingPeriodStart": moment(piece.month),
        "BillingPeriodEnd": moment(piece.next_month),
        "ChargeCategory": "Usage",
        "ChargeClass": "",
        "ChargeDescription": _description(phase, part),
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodStart": moment(piece.begins),
        "ChargePeriodEnd": moment(piece.ends),
        "InvoiceId": "",
        "InvoiceIssuerName": seller_name,
        "PricingCategory": _pricing(phase),
        "PricingQuantity": quantity,
        "PricingUnit": unit,
        "ProviderName": seller_name,
        "PublisherName": seller_name,
        "RegionId": phase.region,
        "RegionName": phase.region if place is None else place.location,
        "ServiceCategory": category,
        "ServiceName": service,
        "ServiceSubcategory": subcategory,
        "Tags": json.dumps(_tags(handover), ensure_ascii=False),
        "x_Estimate": "true",
        "x_GpuplanPart": part,
        "x_GpuplanPhase": str(phase.number),
        "x_GpuplanPlan": handover.plan_id,
        "x_GpuplanRole": phase.role,
        "x_GpuplanSnapshot": handover.snapshot_id,
    }


def _tags(handover: Handover) -> dict[str, str]:
    labels = {"job": handover.job, "team": handover.team, "project": handover.project}
    return {name: text for name, text in labels.items() if text}


def _description(phase: Phase, part: str) -> str:
    kind = phase.kind.name.replace("_", " ")
    return f"Estimate: {part} of {phase.machines} {kind}, phase {phase.number}"


def _pricing(phase: Phase) -> str:
    """The pricing category: dynamic for spot, committed for kinds with a term."""
    if phase.kind.interruptible:
        return "Dynamic"
    return "Committed" if phase.kind.term_hours else "Standard"


def _quantity(phase: Phase, part: str, piece: Piece) -> tuple[str, str]:
    """Node-hours of the amount; a share of the total where the plan has only the cost."""
    price = Decimal(phase.usd_per_node_hour)
    if part in BY_THE_HOUR and price:
        return _decimal(Decimal(usd_text(piece.micros)) / price), "Hours"
    if part in BY_THE_HOUR:
        return _decimal(Decimal(repr(phase.hours)) * phase.nodes * piece.share), "Hours"
    return _decimal(piece.share), "Units"


def _decimal(value: Decimal) -> str:
    """A decimal that always has a point, so that readers infer a decimal column."""
    return f"{value:.6f}"
