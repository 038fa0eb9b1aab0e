"""The answers of clouds about capacity that a plan states, and the one that counts for a choice."""

import hashlib
import json
from datetime import datetime, timedelta
from typing import NamedTuple

from gpuplan.catalog.model.capacity_prior import capacity_prior
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.planner.verify.field_coverage import FieldCoverage, Path
from gpuplan.planner.verify.verification_context import Context

AT = "live_capacity"
CHECK = "ladder"
#: A cloud answers for the moment.
MOST_HOURS = 6


class Answer(NamedTuple):
    """One answer: what it is about, the chance of it at the start of the job, and how a choice quotes it."""

    place: tuple[str, str]
    instance_type: str
    price_kind: str
    zone: str
    nodes: int
    chance: float
    source: JsonObject


def answers_of(context: Context) -> list[Answer]:
    """The answers in the document; checks their id, and that each is about this time and about something else.

    Raises `UnusableInput` where one cannot be read.
    """
    field_coverage, start = context.field_coverage, context.submitted_plan.start
    if not field_coverage.has(AT):
        return []
    stated = field_coverage.value(AT)
    rows = [_answer(field_coverage, (AT, "answers", i), start) for i in range(field_coverage.size(AT, "answers"))]
    field_coverage.size(AT, "not_learned")
    serialized = json.dumps([stated["answers"], stated["not_learned"]], sort_keys=True).encode()
    expected = f"capacity-{hashlib.sha256(serialized).hexdigest()[:20]}"
    field_coverage.is_same("identity", (AT, "id"), expected, "not the hash of the answers")
    keys = [(row.place, row.instance_type, row.price_kind, row.zone, row.nodes) for row in rows]
    field_coverage.is_true(CHECK, (AT, "answers"), len(set(keys)) == len(keys), None, "the same is answered twice")
    return rows


def _answer(field_coverage: FieldCoverage, at: Path, start: datetime) -> Answer:
    texts = {
        name: field_coverage.text(*at, name)
        for name in ("provider", "region", "zone", "instance_type", "price_kind", "published", "source")
    }
    if texts["price_kind"] not in price_kinds():
        raise field_coverage.unusable((*at, "price_kind"), f"{shown(texts['price_kind'])} is no price kind")
    asked, starts = _moment(field_coverage, (*at, "asked_at")), field_coverage.value(*at, "starts_at")
    probability, quota = field_coverage.number(*at, "probability"), field_coverage.value(*at, "quota_available")
    field_coverage.is_true(CHECK, (*at, "probability"), 0 <= probability <= 1, None, "outside 0..1")
    near = abs(asked - start) <= timedelta(hours=MOST_HOURS)
    field_coverage.is_true(CHECK, (*at, "asked_at"), near, None, "too far from the start of the job")
    too_late = starts is not None and _moment(field_coverage, (*at, "starts_at")) - start > timedelta(
        minutes=capacity_prior().try_minutes
    )
    return Answer(
        (texts["provider"], texts["region"]),
        texts["instance_type"],
        texts["price_kind"],
        texts["zone"],
        field_coverage.whole(*at, "nodes", least=1),
        0.0 if too_late or quota is False else probability,
        {name: field_coverage.value(*at, name) for name in ("published", "source", "asked_at")},
    )


def _moment(field_coverage: FieldCoverage, at: Path) -> datetime:
    text = field_coverage.text(*at)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise field_coverage.unusable(at, f"{shown(text)} is no time") from None
    if moment.tzinfo is None:
        raise field_coverage.unusable(at, f"{shown(text)} has no zone")
    return moment


def answer_for(answers: list[Answer], machines: tuple[str, str, str, str], zone: str, nodes: int) -> Answer | None:
    """The answer about so many of these (provider, region, instance type, price kind): that of the zone, else of the region;
    machines of a whole region have the best of its zones.
    """
    alike = [row for row in answers if (*row.place, row.instance_type, row.price_kind, row.nodes) == (*machines, nodes)]
    exact = [row for row in alike if row.zone == zone] or [row for row in alike if not row.zone]
    if exact or zone:
        return exact[0] if exact else None
    return max(sorted(alike, key=lambda row: row.zone), key=lambda row: row.chance, default=None)
