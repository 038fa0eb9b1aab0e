"""An answer of `gpuplan plan` read as a handover: every field that ends up in another tool's file is checked here.

The answer may come from a file that anyone has written, so what the formats rest on (names without surprises, counts
within bounds, known kinds and accelerators) is established once, with the field named where it does not hold.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import InvalidOperation
from typing import Any

from api.checkpoint_location import CheckpointLocation, read_checkpoint_location
from api.export.handover import CLOUDS, Handover, Phase
from api.plan_ids import PLANNED
from api.render.text import plain
from catalog.accelerators import Accelerator, accelerators
from catalog.errors import UnusableInput
from catalog.money import usd_micros, usd_text
from catalog.price_kinds import PriceKind, price_kinds
from catalog.quantities import shown

#: The parts of an expected cost, as a plan has them.
PARTS = ("compute", "storage", "egress", "power", "setup")
#: What a layout says besides `checkpointing`; 1 where it is left out, 0 for `zero_stage`.
DEGREES = ("data", "tensor", "pipeline", "context", "expert", "interleave", "zero_stage", "micro_batch")
#: Regions, zones and machine types of the clouds, among them `n1-standard-16+1xT4` and Azure's with underscores.
_CLOUD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}")
_HASH = re.compile(r"[0-9a-f]{8,64}")
_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,40}")
_WORD = re.compile(r"[a-z0-9_]{1,20}")
#: As many as no plan has.
MOST_PHASES, MOST_NODES = 20, 100_000
Where = tuple[str | int, ...]


def read_handover(document: Mapping[str, Any]) -> Handover:
    """The handover of an answer of `plan`.

    Raises `UnusableInput` at the field for what is no such answer, and for one that has no plan to hand over.
    """
    plan = _plan(document)
    at: Where = ("plan",)
    start = _time(plan, "start", at)
    hours = _mapping(plan.get("hours"), (*at, "hours"))
    expected = _number(hours, "expected", (*at, "hours"), low=0.0, high=1e6)
    p95_hours = _number(hours, "p95", (*at, "hours"), low=0.0, high=1e6)
    asked = _mapping(plan.get("job"), (*at, "job"))
    job = asked.get("name")
    return Handover(
        plan_id=_text(plan, "id", at, PLANNED, "the id of a plan, plan- and 20 hexadecimal digits"),
        job=plain(job if isinstance(job, str) else "", limit=200) or "job",
        snapshot_id=_text(plan, "snapshot_id", at, _HASH, "the id of a snapshot, hexadecimal digits"),
        version=_text(plan, "version", at, _VERSION, "a version of gpuplan"),
        start=start,
        expected_hours=expected,
        p95_hours=p95_hours,
        deadline_hours=_maybe(asked, "deadline", (*at, "job"), high=1e6),
        checkpoints=_checkpoints(asked, (*at, "job")),
        phases=_phases(plan, start, at),
        document=dict(document),
    )


def _checkpoints(job: dict[str, Any], at: Where) -> CheckpointLocation | None:
    """Where the job keeps its checkpoints; None where it does not say."""
    data = job.get("data")
    value = data.get("checkpoints") if isinstance(data, dict) else None
    try:
        return None if value is None else read_checkpoint_location(value)
    except ValueError as error:
        raise UnusableInput.at(*at, "data", "checkpoints", message=str(error)) from None


def _plan(document: Mapping[str, Any]) -> dict[str, Any]:
    outcome = document.get("outcome")
    if outcome == "infeasible":
        message = "is infeasible, so there is nothing to start; relax a requirement that it names and plan again"
        raise UnusableInput.at("outcome", message=message)
    if outcome != "planned":
        message = f"{shown(outcome)} is not accepted; give an answer as `gpuplan plan --json` prints it"
        raise UnusableInput.at("outcome", message=message)
    return _mapping(document.get("plan"), ("plan",))


def _phases(plan: dict[str, Any], start: datetime, at: Where) -> tuple[Phase, ...]:
    rows = plan.get("phases")
    if not isinstance(rows, list) or not 0 < len(rows) <= MOST_PHASES:
        raise UnusableInput.at(*at, "phases", message=f"is not accepted; a plan has 1 to {MOST_PHASES} phases")
    found = [_mapping(row, (*at, "phases", i)) for i, row in enumerate(rows)]
    starts = [_begin(row, i, start, (*at, "phases", i)) for i, row in enumerate(found)]
    phases: list[Phase] = []
    before = hours = 0.0
    for i, row in enumerate(found):
        whole = plan if len(found) == 1 else {}
        phase = _phase(row, (*at, "phases", i), whole=whole, starts=starts[i], before=before)
        before, hours = before + phase.share, hours + phase.hours
        # A phase counts its hours from the end of the one before; one that stands by, from when it is called.
        ends = starts[i] + timedelta(hours=phase.hours) if phase.stands_by else start + timedelta(hours=hours)
        follows = i + 1 < len(found) and found[i + 1].get("role", "planned") == "planned"
        phase = replace(phase, ends_at=max(ends, starts[i]), hands_over_at=ends if follows else None)
        phases.append(replace(phase, **_switch(found, i, at)))
    return tuple(phases)


def _begin(row: dict[str, Any], i: int, start: datetime, at: Where) -> datetime:
    """When a phase starts; plans of releases without phases say it only once, for the whole."""
    return start if i == 0 and "starts_at" not in row else _time(row, "starts_at", at)


def _switch(rows: list[dict[str, Any]], i: int, at: Where) -> dict[str, Any]:
    """By when a phase that stands by is taken, and at how little work saved: for it, and for the one before it."""
    number = i if rows[i].get("switch_by") is not None else i + 1
    if number == len(rows) or rows[number].get("switch_by") is None:
        return {}
    where = (*at, "phases", number)
    return {
        "switch_by": _time(rows[number], "switch_by", where),
        "switch_share": _maybe(rows[number], "switch_share", where, high=1.0),
    }


def _phase(row: dict[str, Any], at: Where, *, whole: dict[str, Any], starts: datetime, before: float) -> Phase:
    """A phase by itself; when it ends, and what follows, is known from all of them together."""
    provider = row.get("provider")
    if not isinstance(provider, str) or provider not in (*CLOUDS, "local"):
        accepted = ", ".join((*CLOUDS, "local"))
        raise UnusableInput.at(*at, "provider", message=f"{shown(provider)} is not accepted; it is one of {accepted}")
    role = row.get("role", "planned")
    if role not in ("planned", "standby"):
        raise UnusableInput.at(*at, "role", message=f"{shown(role)} is not accepted; it is planned or standby")
    kind = _kind(row, at)
    if kind.owned != (provider == "local"):
        message = f"{kind.name} is not accepted on {provider}; own machines alone are owned"
        raise UnusableInput.at(*at, "price_kind", message=message)
    share = _number(row, "share", at, low=0.0, high=1.0, default=1.0)
    nodes, hosts = _hosts(row, at)
    return Phase(
        number=int(at[-1]) + 1,
        role=role,
        provider=provider,
        region=_name(row, "region", at, provider),
        zone=_name(row, "zone", at, provider) if row.get("zone") else "",
        instance_type=_name(row, "instance_type", at, provider),
        accelerator=_accelerator(row, at),
        accelerators_per_node=_number(row, "accelerators_per_node", at, low=1e-3, high=1024),
        nodes=nodes,
        slice_hosts=hosts,
        kind=kind,
        usd_per_node_hour=_usd(row, "usd_per_node_hour", at)[1],
        starts_at=starts,
        ends_at=starts,
        hours=_number(row, "hours", at, low=0.0, high=1e6),
        share=share,
        share_before=min(1.0, before),
        precision=_text(row, "precision", at, _WORD, "a precision such as bf16"),
        layout=_layout(row, at),
        checkpoint_interval_hours=_maybe(row, "checkpoint_interval_hours", at, high=1e6),
        expected_preemptions=_number(row, "expected_preemptions", at, low=0.0, high=1e6, default=0.0),
        hands_over_at=None,
        switch_by=None,
        switch_share=None,
        probability=_maybe(row, "probability", at, high=1.0),
        moved_from=_moved(row, at),
        costs=_costs(row if "cost_usd" in row else whole, at),
    )


def _kind(row: dict[str, Any], at: Where) -> PriceKind:
    name = row.get("price_kind")
    if not isinstance(name, str) or name not in price_kinds():
        accepted = ", ".join(price_kinds())
        raise UnusableInput.at(*at, "price_kind", message=f"{shown(name)} is not accepted; it is one of {accepted}")
    return price_kinds()[name]


def _accelerator(row: dict[str, Any], at: Where) -> Accelerator:
    name = row.get("accelerator")
    found = accelerators().get(name) if isinstance(name, str) else None
    if found is None:
        message = f"{shown(name)} is not accepted; it is an accelerator as `gpuplan accelerators` lists them"
        raise UnusableInput.at(*at, "accelerator", message=message)
    return found


def _name(row: dict[str, Any], field: str, at: Where, provider: str) -> str:
    """A cloud's name as it stands; that of an own machine as one harmless line."""
    value = row.get(field)
    if provider == "local" and isinstance(value, str) and value:
        return plain(value, limit=80)
    return _text(row, field, at, _CLOUD_NAME, "a name in letters, digits, dots, dashes and underscores")


def _hosts(row: dict[str, Any], at: Where) -> tuple[int, int | None]:
    """Nodes, and how many of them are a slice: one slice is a phase's, since every tool is asked for one."""
    nodes = int(_number(row, "nodes", at, low=1, high=MOST_NODES, whole=True))
    if row.get("slice_hosts") is None:
        return nodes, None
    hosts = int(_number(row, "slice_hosts", at, low=1, high=MOST_NODES, whole=True))
    if nodes != hosts:
        message = f"{nodes} is not accepted; a slice has {hosts}, and is had as a whole"
        raise UnusableInput.at(*at, "nodes", message=message)
    return nodes, hosts


def _layout(row: dict[str, Any], at: Where) -> dict[str, int | str]:
    given = _mapping(row.get("layout"), (*at, "layout"))
    low = {"zero_stage": 0}
    found: dict[str, int | str] = {
        name: int(
            _number(given, name, (*at, "layout"), low=low.get(name, 1), high=1e7, whole=True, default=low.get(name, 1))
        )
        for name in DEGREES
    }
    if "checkpointing" in given:
        found["checkpointing"] = _text(given, "checkpointing", (*at, "layout"), _WORD, "none, selective or full")
    return found


def _moved(row: dict[str, Any], at: Where) -> str | None:
    """Where the checkpoint is brought from, as one line."""
    if row.get("moved") is None:
        return None
    origin = _mapping(_mapping(row["moved"], (*at, "moved")).get("from"), (*at, "moved", "from"))
    return plain(
        " ".join(str(origin.get(name) or "") for name in ("instance_type", "provider", "region", "zone")), limit=200
    )


def _costs(row: dict[str, Any], at: Where) -> dict[str, int]:
    cost = _mapping(row.get("cost_usd"), (*at, "cost_usd"))
    breakdown = _mapping(cost.get("breakdown"), (*at, "cost_usd", "breakdown"))
    return {part: _usd(breakdown, part, (*at, "cost_usd", "breakdown"))[0] for part in PARTS}


def _usd(row: dict[str, Any], field: str, at: Where) -> tuple[int, str]:
    """An amount that is not negative, in micro-dollars and as the decimal string of them."""
    value = row.get(field)
    try:
        micros = usd_micros(value) if isinstance(value, str) and len(value) <= 40 else -1
    except (InvalidOperation, ValueError):
        micros = -1
    if not 0 <= micros < 10**18:
        raise UnusableInput.at(*at, field, message=f'{shown(value)} is not accepted; it is dollars as text, "12.34"')
    return micros, usd_text(micros)


def _time(row: dict[str, Any], field: str, at: Where) -> datetime:
    value = row.get(field)
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or not 2000 <= found.year <= 2200:
        message = f"{shown(value)} is not accepted; it is a time such as 2026-11-21T08:00:00Z"
        raise UnusableInput.at(*at, field, message=message)
    return found


def _text(row: dict[str, Any], field: str, at: Where, pattern: re.Pattern[str], accepted: str) -> str:
    value = row.get(field)
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise UnusableInput.at(*at, field, message=f"{shown(value)} is not accepted; it is {accepted}")
    return value


def _maybe(row: dict[str, Any], field: str, at: Where, *, high: float) -> float | None:
    return None if row.get(field) is None else _number(row, field, at, low=0.0, high=high)


def _number(
    row: dict[str, Any],
    field: str,
    at: Where,
    *,
    low: float,
    high: float,
    whole: bool = False,
    default: float | None = None,
) -> float:
    value = row.get(field, default)
    fits = (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and low <= value <= high
    )
    if not isinstance(value, int | float) or not fits or (whole and value != int(value)):
        what = "a whole number" if whole else "a number"
        raise UnusableInput.at(
            *at, field, message=f"{shown(value)} is not accepted; it is {what} from {low:g} to {high:g}"
        )
    return float(value)


def _mapping(value: object, at: Where) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UnusableInput.at(*at, message=f"{shown(value)} is not accepted; it is a mapping in a plan")
    return value
