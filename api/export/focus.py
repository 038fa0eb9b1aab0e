"""The expected charges of a plan as a FOCUS 1.2 dataset: https://focus.finops.org/focus-specification/v1-2/

One row per phase, part of the cost and billing month. Nothing has been billed, so `InvoiceId` is null; nothing has
been measured, so the conditional columns of consumption are left out. Every row has a description that begins with
`Estimate`, a billing account that says so, and the custom column `x_Estimate`: the ways that the specification leaves
open (custom columns begin with `x_`).
"""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from api.export.handover import CLOUDS, Handover, Phase
from catalog.money import usd_text
from catalog.regions import regions
from planner.document_figures import moment

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
    "power": ("Other", "Other (Other)", "Electricity of own machines"),
}
#: Parts that are node-hours at the price of the node; of the others the plan has the cost alone.
BY_THE_HOUR = ("compute", "setup")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What of a charge falls into one billing month."""

    begins: datetime
    ends: datetime
    month: datetime
    next_month: datetime
    micros: int
    share: Decimal


def focus(handover: Handover) -> str:
    """All phases as CSV, the parts that cost something; amounts in dollars with six decimals."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    for phase in handover.phases:
        for part, micros in phase.costs.items():
            if micros:
                writer.writerows(_row(handover, phase, part, piece) for piece in pieces(phase, micros))
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
    seller = CLOUDS.get(phase.provider, "Own machines")
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
        "InvoiceIssuerName": seller,
        "PricingCategory": _pricing(phase),
        "PricingQuantity": quantity,
        "PricingUnit": unit,
        "ProviderName": seller,
        "PublisherName": seller,
        "RegionId": phase.region,
        "RegionName": phase.region if place is None else place.location,
        "ServiceCategory": category,
        "ServiceName": service,
        "ServiceSubcategory": subcategory,
        "Tags": json.dumps({"job": handover.job}, ensure_ascii=False),
        "x_Estimate": "true",
        "x_GpuplanPart": part,
        "x_GpuplanPhase": str(phase.number),
        "x_GpuplanPlan": handover.plan_id,
        "x_GpuplanRole": phase.role,
        "x_GpuplanSnapshot": handover.snapshot_id,
    }


def _description(phase: Phase, part: str) -> str:
    kind = phase.kind.name.replace("_", " ")
    return f"Estimate: {part} of {phase.machines} {kind}, phase {phase.number}"


def _pricing(phase: Phase) -> str:
    """Spot prices move with the market; what is owed for a term is committed."""
    if phase.kind.interruptible:
        return "Dynamic"
    return "Committed" if phase.kind.term_hours else "Standard"


def _quantity(phase: Phase, part: str, piece: Piece) -> tuple[str, str]:
    """Node-hours that the amount pays for; the share of the whole where the plan has no measure but the cost."""
    price = Decimal(phase.usd_per_node_hour)
    if part in BY_THE_HOUR and price:
        return _decimal(Decimal(usd_text(piece.micros)) / price), "Hours"
    if part in BY_THE_HOUR:
        return _decimal(Decimal(repr(phase.hours)) * phase.nodes * piece.share), "Hours"
    return _decimal(piece.share), "Units"


def _decimal(value: Decimal) -> str:
    """A plain decimal with a point, so that a column is read as decimals even if all its values are whole."""
    return f"{value:.6f}"
