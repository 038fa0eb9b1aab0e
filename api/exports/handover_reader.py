"""Reads an answer of `gpuplan plan` for export and checks every field that reaches another tool's file.

The answer may come from an untrusted file. Names, counts, price kinds and accelerators are checked here once, with the
field named in errors, so that the formats can rely on them.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import InvalidOperation
from typing import Any

from gpuplan.api.exports.plan_handover import CLOUDS, TRY_MINUTES, Handover, NextPlace, Phase
from gpuplan.api.presentation.text_formatting import plain
from gpuplan.api.schemas.plan_ids import PLANNED
from gpuplan.catalog.model.accelerators import Accelerator, accelerators
from gpuplan.catalog.model.money import usd_micros, usd_text
from gpuplan.catalog.model.price_kinds import PriceKind, price_kinds
from gpuplan.catalog.model.provider_names import CLOUD, is_own_rates, provider_names
from gpuplan.catalog.parsing.checkpoint_location import CheckpointLocation, read_checkpoint_location
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput

#: The parts of a plan's expected cost.
PARTS = ("compute", "storage", "egress", "power", "setup")
#: Fields of a layout besides `checkpointing`; default 1, or 0 for `zero_stage`.
DEGREES = ("data", "tensor", "pipeline", "context", "expert", "interleave", "zero_stage", "micro_batch")
#: Names of regions, zones and machine types, such as `n1-standard-16+1xT4` and Azure's with underscores.
_CLOUD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}")
#: Names of machine types at providers whose price pages name them in words, such as `NVIDIA GB200 NVL72 (4 GPUs)`.
_PAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+()-]{0,79}")
_HASH = re.compile(r"[0-9a-f]{8,64}")
_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,40}")
_WORD = re.compile(r"[a-z0-9_]{1,20}")
#: Upper limit of phases and nodes, above any plan.
MOST_PHASES, MOST_NODES = 20, 100_000
Where = tuple[str | int, ...]


def read_handover(document: Mapping[str, Any]) -> Handover:
    """The handover of an answer of `plan`.

    Raises `UnusableInput` at the field of an invalid answer, and for an infeasible one.
    """
    plan = _plan(document)
    at: Where = ("plan",)
    start = _time(plan, "start", at)
    hours = _mapping(plan.get("hours"), (*at, "hours"))
    expected = _number(hours, "expected", (*at, "hours"), low=0.0, high=1e6)
    p95_hours = _number(hours, "p95", (*at, "hours"), low=0.0, high=1e6)
    asked = _mapping(plan.get("job"), (*at, "job"))
    job, phases = asked.get("name"), _phases(plan, start, at)
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
        phases=phases,
        document=dict(document),
        next_places=_next_places(plan, phases[0], at),
        try_minutes=_try_minutes(plan, at),
    )


def _checkpoints(job: JsonObject, at: Where) -> CheckpointLocation | None:
    """The job's checkpoint location, or None."""
    data = job.get("data")
    value = data.get("checkpoints") if isinstance(data, dict) else None
    try:
        return None if value is None else read_checkpoint_location(value)
    except ValueError as error:
        raise UnusableInput.at(*at, "data", "checkpoints", message=str(error)) from None


def _plan(document: Mapping[str, Any]) -> JsonObject:
    outcome = document.get("outcome")
    if outcome == "infeasible":
        message = "is infeasible, so there is nothing to export; relax a requirement and plan again"
        raise UnusableInput.at("outcome", message=message)
    if outcome != "planned":
        message = f"{shown(outcome)} is not accepted; give the output of `gpuplan plan --json`"
        raise UnusableInput.at("outcome", message=message)
    return _mapping(document.get("plan"), ("plan",))


def _phases(plan: JsonObject, start: datetime, at: Where) -> tuple[Phase, ...]:
    rows = plan.get("phases")
    if not isinstance(rows, list) or not 0 < len(rows) <= MOST_PHASES:
        raise UnusableInput.at(*at, "phases", message=f"is not accepted; a plan has 1 to {MOST_PHASES} phases")
    phase_rows = [_mapping(row, (*at, "phases", i)) for i, row in enumerate(rows)]
    starts = [_begin(row, i, start, (*at, "phases", i)) for i, row in enumerate(phase_rows)]
    phases: list[Phase] = []
    before = hours = 0.0
    for i, row in enumerate(phase_rows):
        whole = plan if len(phase_rows) == 1 else {}
        phase = _phase(row, (*at, "phases", i), whole=whole, starts=starts[i], before=before)
        before, hours = before + phase.share, hours + phase.hours
        # A phase's hours count from the end of the previous phase; a standby's from the switch.
        ends = starts[i] + timedelta(hours=phase.hours) if phase.stands_by else start + timedelta(hours=hours)
        follows = i + 1 < len(phase_rows) and phase_rows[i + 1].get("role", "planned") == "planned"
        phase = replace(phase, ends_at=max(ends, starts[i]), hands_over_at=ends if follows else None)
        phases.append(replace(phase, **_switch(phase_rows, i, at)))
    return tuple(phases)


def _next_places(plan: JsonObject, first: Phase, at: Where) -> tuple[NextPlace, ...]:
    """The next choices with the first phase's own machines; plans of older releases have none."""
    if plan.get("capacity_ladder") is None:
        return ()
    where = (*at, "capacity_ladder")
    rows = _mapping(plan["capacity_ladder"], where).get("next_choices")
    if not isinstance(rows, list) or len(rows) > MOST_PHASES:
        message = f"is not accepted; a ladder has at most {MOST_PHASES} next choices"
        raise UnusableInput.at(*where, "next_choices", message=message)
    places = []
    for i, item in enumerate(rows):
        inner = (*where, "next_choices", i)
        row = _mapping(item, inner)
        if (row.get("provider"), row.get("instance_type"), row.get("nodes")) == (
            first.provider,
            first.instance_type,
            first.nodes,
        ):
            zone = _name(row, "zone", inner, first.provider) if row.get("zone") else ""
            region = _name(row, "region", inner, first.provider)
            price = _usd(row, "usd_per_node_hour", inner)[1]
            places.append(NextPlace(region=region, zone=zone, kind=_kind(row, inner), usd_per_node_hour=price))
    return tuple(places)


def _try_minutes(plan: JsonObject, at: Where) -> float:
    """The minutes for which each place of the ladder is asked."""
    if plan.get("capacity_ladder") is None:
        return TRY_MINUTES
    where = (*at, "capacity_ladder")
    ladder = _mapping(plan["capacity_ladder"], where)
    return _number(ladder, "try_minutes", where, low=1.0, high=1440.0, default=TRY_MINUTES)


def _begin(row: JsonObject, i: int, start: datetime, at: Where) -> datetime:
    """The start of a phase; plans of releases without phases have only the plan's start."""
    return start if i == 0 and "starts_at" not in row else _time(row, "starts_at", at)


def _switch(rows: list[JsonObject], i: int, at: Where) -> JsonObject:
    """Switch time and share of a standby, for the standby and its previous phase."""
    number = i if rows[i].get("switch_by") is not None else i + 1
    if number == len(rows) or rows[number].get("switch_by") is None:
        return {}
    where = (*at, "phases", number)
    return {
        "switch_by": _time(rows[number], "switch_by", where),
        "switch_share": _maybe(rows[number], "switch_share", where, high=1.0),
    }


def _phase(row: JsonObject, at: Where, *, whole: JsonObject, starts: datetime, before: float) -> Phase:
    """A phase without its end and successor, which depend on the other phases."""
    provider = row.get("provider")
    if not isinstance(provider, str) or not (provider in (*CLOUDS, "local") or is_own_rates(provider)):
        accepted = ", ".join((*CLOUDS, "local"))
        raise UnusableInput.at(*at, "provider", message=f"{shown(provider)} is not accepted; it is one of {accepted}")
    role = row.get("role", "planned")
    if role not in ("planned", "standby"):
        raise UnusableInput.at(*at, "role", message=f"{shown(role)} is not accepted; it is planned or standby")
    kind = _kind(row, at)
    if kind.owned != (provider == "local"):
        message = f"{kind.name} is not accepted on {provider}; only owned machines have it"
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


def _kind(row: JsonObject, at: Where) -> PriceKind:
    name = row.get("price_kind")
    if not isinstance(name, str) or name not in price_kinds():
        accepted = ", ".join(price_kinds())
        raise UnusableInput.at(*at, "price_kind", message=f"{shown(name)} is not accepted; it is one of {accepted}")
    return price_kinds()[name]


def _accelerator(row: JsonObject, at: Where) -> Accelerator:
    name = row.get("accelerator")
    accelerator = accelerators().get(name) if isinstance(name, str) else None
    if accelerator is None:
        message = f"{shown(name)} is not accepted; it is an accelerator as `gpuplan accelerators` lists them"
        raise UnusableInput.at(*at, "accelerator", message=message)
    return accelerator


def _name(row: JsonObject, field: str, at: Where, provider: str) -> str:
    """A cloud's name unchanged; an owned machine's name as one cleaned line."""
    value = row.get(field)
    if provider == "local" and isinstance(value, str) and value:
        return plain(value, limit=80)
    if field == "instance_type" and (is_own_rates(provider) or provider_names()[provider].kind != CLOUD):
        return _text(
            row, field, at, _PAGE_NAME, "a name in letters, digits, blanks, brackets, dots, dashes and underscores"
        )
    return _text(row, field, at, _CLOUD_NAME, "a name in letters, digits, dots, dashes and underscores")


def _hosts(row: JsonObject, at: Where) -> tuple[int, int | None]:
    """Nodes, and the hosts of a slice; a phase has at most one slice."""
    nodes = int(_number(row, "nodes", at, low=1, high=MOST_NODES, whole=True))
    if row.get("slice_hosts") is None:
        return nodes, None
    hosts = int(_number(row, "slice_hosts", at, low=1, high=MOST_NODES, whole=True))
    if nodes != hosts:
        message = f"{nodes} is not accepted; a slice has {hosts} and is rented as a whole"
        raise UnusableInput.at(*at, "nodes", message=message)
    return nodes, hosts


def _layout(row: JsonObject, at: Where) -> dict[str, int | str]:
    given = _mapping(row.get("layout"), (*at, "layout"))
    low = {"zero_stage": 0}
    layout: dict[str, int | str] = {
        name: int(
            _number(given, name, (*at, "layout"), low=low.get(name, 1), high=1e7, whole=True, default=low.get(name, 1))
        )
        for name in DEGREES
    }
    if "checkpointing" in given:
        layout["checkpointing"] = _text(given, "checkpointing", (*at, "layout"), _WORD, "none, selective or full")
    return layout


def _moved(row: JsonObject, at: Where) -> str | None:
    """The source of the checkpoint, as one line."""
    if row.get("moved") is None:
        return None
    origin = _mapping(_mapping(row["moved"], (*at, "moved")).get("from"), (*at, "moved", "from"))
    return plain(
        " ".join(str(origin.get(name) or "") for name in ("instance_type", "provider", "region", "zone")), limit=200
    )


def _costs(row: JsonObject, at: Where) -> dict[str, int]:
    cost = _mapping(row.get("cost_usd"), (*at, "cost_usd"))
    breakdown = _mapping(cost.get("breakdown"), (*at, "cost_usd", "breakdown"))
    return {part: _usd(breakdown, part, (*at, "cost_usd", "breakdown"))[0] for part in PARTS}


def _usd(row: JsonObject, field: str, at: Where) -> tuple[int, str]:
    """An amount that is not negative, in micro-dollars and as the decimal string of them."""
    value = row.get(field)
    try:
        micros = usd_micros(value) if isinstance(value, str) and len(value) <= 40 else -1
    except (InvalidOperation, ValueError):
        micros = -1
    if not 0 <= micros < 10**18:
        raise UnusableInput.at(*at, field, message=f'{shown(value)} is not accepted; it is dollars as text, "12.34"')
    return micros, usd_text(micros)


def _time(row: JsonObject, field: str, at: Where) -> datetime:
    value = row.get(field)
    try:
        parsed = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        parsed = None
    if parsed is None or parsed.tzinfo is None or not 2000 <= parsed.year <= 2200:
        message = f"{shown(value)} is not accepted; it is a time such as 2026-11-21T08:00:00Z"
        raise UnusableInput.at(*at, field, message=message)
    return parsed


def _text(row: JsonObject, field: str, at: Where, pattern: re.Pattern[str], accepted: str) -> str:
    value = row.get(field)
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise UnusableInput.at(*at, field, message=f"{shown(value)} is not accepted; it is {accepted}")
    return value


def _maybe(row: JsonObject, field: str, at: Where, *, high: float) -> float | None:
    return None if row.get(field) is None else _number(row, field, at, low=0.0, high=high)


def _number(
    row: JsonObject,
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


def _mapping(value: object, at: Where) -> JsonObject:
    if not isinstance(value, dict):
        raise UnusableInput.at(*at, message=f"{shown(value)} is not accepted; it is a mapping in a plan")
    return value
