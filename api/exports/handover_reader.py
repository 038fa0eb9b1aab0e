"""Reads an answer of `gpuplan plan` for export and checks every field that reaches another tool's file.

The answer may come from an untrusted file. Names, counts, price kinds and accelerators are checked here once, with the
field named in errors, so that the formats can rely on them.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from gpuplan.api.exports.handover_fields import (
    MOST_PHASES,
    Where,
    read_kind,
    read_mapping,
    read_maybe,
    read_name,
    read_number,
    read_text,
    read_time,
    read_usd,
)
from gpuplan.api.exports.handover_ladder import last_choice, next_places, try_minutes
from gpuplan.api.exports.plan_handover import CLOUDS, Handover, Phase
from gpuplan.api.presentation.text_formatting import plain
from gpuplan.api.schemas.plan_ids import PLANNED
from gpuplan.catalog.model.accelerators import Accelerator, accelerators
from gpuplan.catalog.model.provider_names import is_own_rates
from gpuplan.catalog.parsing.checkpoint_location import CheckpointLocation, read_checkpoint_location
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput

#: The parts of a plan's expected cost.
PARTS = ("compute", "storage", "egress", "power", "setup")
#: Fields of a layout besides `checkpointing`; default 1, or 0 for `zero_stage`.
DEGREES = ("data", "tensor", "pipeline", "context", "expert", "interleave", "zero_stage", "micro_batch")
_HASH = re.compile(r"[0-9a-f]{8,64}")
_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,40}")
_WORD = re.compile(r"[a-z0-9_]{1,20}")
#: Upper limit of nodes, above any plan.
MOST_NODES = 100_000


def read_handover(document: Mapping[str, Any]) -> Handover:
    """The handover of an answer of `plan`.

    Raises `UnusableInput` at the field of an invalid answer, and for an infeasible one.
    """
    plan = _plan(document)
    at: Where = ("plan",)
    start = read_time(plan, "start", at)
    hours = read_mapping(plan.get("hours"), (*at, "hours"))
    expected = read_number(hours, "expected", (*at, "hours"), low=0.0, high=1e6)
    p95_hours = read_number(hours, "p95", (*at, "hours"), low=0.0, high=1e6)
    asked = read_mapping(plan.get("job"), (*at, "job"))
    phases = _phases(plan, start, at)
    return Handover(
        plan_id=read_text(plan, "id", at, PLANNED, "the id of a plan, plan- and 20 hexadecimal digits"),
        job=_line(asked, "name") or "job",
        team=_line(asked, "team"),
        project=_line(asked, "project"),
        snapshot_id=read_text(plan, "snapshot_id", at, _HASH, "the id of a snapshot, hexadecimal digits"),
        version=read_text(plan, "version", at, _VERSION, "a version of gpuplan"),
        start=start,
        expected_hours=expected,
        p95_hours=p95_hours,
        deadline_hours=read_maybe(asked, "deadline", (*at, "job"), high=1e6),
        checkpoints=_checkpoints(asked, (*at, "job")),
        phases=phases,
        document=dict(document),
        next_places=next_places(plan, phases[0], at),
        try_minutes=try_minutes(plan, at),
        last_choice=last_choice(plan, phases[0], at),
    )


def _line(job: JsonObject, name: str) -> str:
    """A text of the job as one cleaned line; empty without one."""
    text = job.get(name)
    return plain(text if isinstance(text, str) else "", limit=200)


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
    return read_mapping(document.get("plan"), ("plan",))


def _phases(plan: JsonObject, start: datetime, at: Where) -> tuple[Phase, ...]:
    rows = plan.get("phases")
    if not isinstance(rows, list) or not 0 < len(rows) <= MOST_PHASES:
        raise UnusableInput.at(*at, "phases", message=f"is not accepted; a plan has 1 to {MOST_PHASES} phases")
    phase_rows = [read_mapping(row, (*at, "phases", i)) for i, row in enumerate(rows)]
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


def _begin(row: JsonObject, i: int, start: datetime, at: Where) -> datetime:
    """The start of a phase; plans of releases without phases have only the plan's start."""
    return start if i == 0 and "starts_at" not in row else read_time(row, "starts_at", at)


def _switch(rows: list[JsonObject], i: int, at: Where) -> JsonObject:
    """Switch time and share of a standby, for the standby and its previous phase."""
    number = i if rows[i].get("switch_by") is not None else i + 1
    if number == len(rows) or rows[number].get("switch_by") is None:
        return {}
    where = (*at, "phases", number)
    return {
        "switch_by": read_time(rows[number], "switch_by", where),
        "switch_share": read_maybe(rows[number], "switch_share", where, high=1.0),
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
    kind = read_kind(row, at)
    if kind.owned != (provider == "local"):
        message = f"{kind.name} is not accepted on {provider}; only owned machines have it"
        raise UnusableInput.at(*at, "price_kind", message=message)
    share = read_number(row, "share", at, low=0.0, high=1.0, default=1.0)
    nodes, hosts = _hosts(row, at)
    return Phase(
        number=int(at[-1]) + 1,
        role=role,
        provider=provider,
        region=read_name(row, "region", at, provider),
        zone=read_name(row, "zone", at, provider) if row.get("zone") else "",
        instance_type=read_name(row, "instance_type", at, provider),
        accelerator=_accelerator(row, at),
        accelerators_per_node=read_number(row, "accelerators_per_node", at, low=1e-3, high=1024),
        nodes=nodes,
        slice_hosts=hosts,
        kind=kind,
        usd_per_node_hour=read_usd(row, "usd_per_node_hour", at)[1],
        starts_at=starts,
        ends_at=starts,
        hours=read_number(row, "hours", at, low=0.0, high=1e6),
        share=share,
        share_before=min(1.0, before),
        precision=read_text(row, "precision", at, _WORD, "a precision such as bf16"),
        layout=_layout(row, at),
        checkpoint_interval_hours=read_maybe(row, "checkpoint_interval_hours", at, high=1e6),
        expected_preemptions=read_number(row, "expected_preemptions", at, low=0.0, high=1e6, default=0.0),
        hands_over_at=None,
        switch_by=None,
        switch_share=None,
        probability=read_maybe(row, "probability", at, high=1.0),
        moved_from=_moved(row, at),
        costs=_costs(row if "cost_usd" in row else whole, at),
    )


def _accelerator(row: JsonObject, at: Where) -> Accelerator:
    name = row.get("accelerator")
    accelerator = accelerators().get(name) if isinstance(name, str) else None
    if accelerator is None:
        message = f"{shown(name)} is not accepted; it is an accelerator as `gpuplan accelerators` lists them"
        raise UnusableInput.at(*at, "accelerator", message=message)
    return accelerator


def _hosts(row: JsonObject, at: Where) -> tuple[int, int | None]:
    """Nodes, and the hosts of a slice; a phase has at most one slice."""
    nodes = int(read_number(row, "nodes", at, low=1, high=MOST_NODES, whole=True))
    if row.get("slice_hosts") is None:
        return nodes, None
    hosts = int(read_number(row, "slice_hosts", at, low=1, high=MOST_NODES, whole=True))
    if nodes != hosts:
        message = f"{nodes} is not accepted; a slice has {hosts} and is rented as a whole"
        raise UnusableInput.at(*at, "nodes", message=message)
    return nodes, hosts


def _layout(row: JsonObject, at: Where) -> dict[str, int | str]:
    given = read_mapping(row.get("layout"), (*at, "layout"))
    low = {"zero_stage": 0}
    layout: dict[str, int | str] = {
        name: int(
            read_number(
                given, name, (*at, "layout"), low=low.get(name, 1), high=1e7, whole=True, default=low.get(name, 1)
            )
        )
        for name in DEGREES
    }
    if "checkpointing" in given:
        layout["checkpointing"] = read_text(given, "checkpointing", (*at, "layout"), _WORD, "none, selective or full")
    return layout


def _moved(row: JsonObject, at: Where) -> str | None:
    """The source of the checkpoint, as one line."""
    if row.get("moved") is None:
        return None
    origin = read_mapping(read_mapping(row["moved"], (*at, "moved")).get("from"), (*at, "moved", "from"))
    return plain(
        " ".join(str(origin.get(name) or "") for name in ("instance_type", "provider", "region", "zone")), limit=200
    )


def _costs(row: JsonObject, at: Where) -> dict[str, int]:
    cost = read_mapping(row.get("cost_usd"), (*at, "cost_usd"))
    breakdown = read_mapping(cost.get("breakdown"), (*at, "cost_usd", "breakdown"))
    return {part: read_usd(breakdown, part, (*at, "cost_usd", "breakdown"))[0] for part in PARTS}
