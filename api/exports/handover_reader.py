"""Reads a plan for export and checks every text and figure of it that reaches another tool's file.

The plan may come from an untrusted file. Its types are checked where it is read; names, amounts, times and figures are
checked here once, with the field named in errors, so that the formats can rely on them.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from gpuplan.api.exports.plan_handover import CLOUDS, TRY_MINUTES, Handover, LastChoice, NextPlace, Phase
from gpuplan.api.presentation.text_formatting import plain
from gpuplan.api.schemas.answers import read_plan
from gpuplan.api.schemas.plan_ids import PLANNED
from gpuplan.catalog.model.accelerators import Accelerator, accelerators
from gpuplan.catalog.model.money import usd_micros, usd_text
from gpuplan.catalog.model.price_kinds import PriceKind, price_kinds
from gpuplan.catalog.model.provider_names import CLOUD, is_own_rates, provider_names
from gpuplan.catalog.parsing.checkpoint_location import CheckpointLocation, read_checkpoint_location
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model import shared
from gpuplan.planner.model.capacity_ladder import CapacityLadder
from gpuplan.planner.model.plan import Plan
from gpuplan.planner.model.shared import Layout, Machines, Usd

_HASH = re.compile(r"[0-9a-f]{8,64}")
_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,40}")
_WORD = re.compile(r"[a-z0-9_]{1,20}")
#: Names of regions, zones and machine types, such as `n1-standard-16+1xT4` and Azure's with underscores.
_CLOUD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}")
#: Names of machine types at providers whose price pages name them in words, such as `NVIDIA GB200 NVL72 (4 GPUs)`.
_PAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+()-]{0,79}")
#: Upper limits of the rows of a list, of nodes, and of hours, above any plan.
MOST_PHASES, MOST_NODES, MOST_HOURS = 20, 100_000, 1e6
Where = tuple[str | int, ...]


def read_handover(document: Mapping[str, Any]) -> Handover:
    """The handover of an answer of `plan`.

    Raises `UnusableInput` at the field of an invalid answer, and for an infeasible one.
    """
    return handover_of(read_plan(document))


def handover_of(plan: Plan) -> Handover:
    """The handover of a plan. Raises `UnusableInput` at a field that no plan has."""
    at: Where = ("plan",)
    start = _time(plan.start, (*at, "start"))
    phases = _phases(plan, start, at)
    ladder = plan.capacity_ladder
    return Handover(
        plan_id=_text(plan.id, (*at, "id"), PLANNED, "the id of a plan, plan- and 20 hexadecimal digits"),
        job=_line(plan.job, "name") or "job",
        team=_line(plan.job, "team"),
        project=_line(plan.job, "project"),
        snapshot_id=_text(plan.snapshot_id, (*at, "snapshot_id"), _HASH, "the id of a snapshot, hexadecimal digits"),
        version=_text(plan.version, (*at, "version"), _VERSION, "a version of gpuplan"),
        start=start,
        expected_hours=_figure(plan.hours.expected, (*at, "hours", "expected")),
        p95_hours=_figure(plan.hours.p95, (*at, "hours", "p95")),
        deadline_hours=None if plan.job.get("deadline") is None else _stated(plan.job, "deadline", (*at, "job")),
        checkpoints=_checkpoints(plan.job, (*at, "job")),
        phases=phases,
        next_places=() if ladder is None else _next_places(ladder, phases[0], (*at, "capacity_ladder")),
        try_minutes=TRY_MINUTES
        if ladder is None
        else _figure(ladder.try_minutes, (*at, "capacity_ladder", "try_minutes"), low=1.0, high=1440.0),
        last_choice=None if ladder is None else _last_choice(ladder, plan, phases[0], at),
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


def _phases(plan: Plan, start: datetime, at: Where) -> tuple[Phase, ...]:
    rows = plan.phases
    if not 0 < len(rows) <= MOST_PHASES:
        raise UnusableInput.at(*at, "phases", message=f"is not accepted; a plan has 1 to {MOST_PHASES} phases")
    phases: list[Phase] = []
    before = hours = 0.0
    for i, row in enumerate(rows):
        phase = _phase(row, (*at, "phases", i), before=before)
        before, hours = before + phase.share, hours + phase.hours
        # A phase's hours count from the end of the previous phase; a standby's from the switch.
        ends = (phase.starts_at if phase.stands_by else start) + timedelta(
            hours=phase.hours if phase.stands_by else hours
        )
        follows = i + 1 < len(rows) and not rows[i + 1].is_standby
        phase = replace(phase, ends_at=max(ends, phase.starts_at), hands_over_at=ends if follows else None)
        phases.append(_with_switch(phase, rows, at))
    return tuple(phases)


def _with_switch(phase: Phase, rows: tuple[shared.Phase, ...], at: Where) -> Phase:
    """The phase with switch time and share of a standby, for the standby and its previous phase."""
    for i in (phase.number - 1, phase.number):
        if i < len(rows) and rows[i].switch_by is not None:
            by = _time(rows[i].switch_by, (*at, "phases", i, "switch_by"))
            share = _maybe(rows[i].switch_share, (*at, "phases", i, "switch_share"), high=1.0)
            return replace(phase, switch_by=by, switch_share=share)
    return phase


def _phase(row: shared.Phase, at: Where, *, before: float) -> Phase:
    """A phase without its end and successor, which depend on the other phases."""
    if not (row.provider in (*CLOUDS, "local") or is_own_rates(row.provider)):
        accepted = ", ".join((*CLOUDS, "local"))
        message = f"{shown(row.provider)} is not accepted; it is one of {accepted}"
        raise UnusableInput.at(*at, "provider", message=message)
    kind = _kind(row, at)
    if kind.owned != (row.provider == "local"):
        message = f"{kind.name} is not accepted on {row.provider}; only owned machines have it"
        raise UnusableInput.at(*at, "price_kind", message=message)
    if row.slice_hosts is not None and row.nodes != row.slice_hosts:
        message = f"{row.nodes} is not accepted; a slice has {row.slice_hosts} and is rented as a whole"
        raise UnusableInput.at(*at, "nodes", message=message)
    starts = _time(row.starts_at, (*at, "starts_at"))
    breakdown = (*at, "cost_usd", "breakdown")
    return Phase(
        number=int(at[-1]) + 1,
        role=row.role,
        provider=row.provider,
        region=_name(row, "region", at),
        zone=_name(row, "zone", at) if row.zone else "",
        instance_type=_name(row, "instance_type", at),
        accelerator=_accelerator(row, at),
        accelerators_per_node=_figure(row.accelerators_per_node, (*at, "accelerators_per_node"), low=1e-3, high=1024),
        nodes=int(_figure(row.nodes, (*at, "nodes"), low=1, high=MOST_NODES)),
        slice_hosts=row.slice_hosts,
        kind=kind,
        usd_per_node_hour=usd_text(_micros(row.usd_per_node_hour, (*at, "usd_per_node_hour"))),
        starts_at=starts,
        ends_at=starts,
        hours=_figure(row.hours, (*at, "hours")),
        share=_figure(row.share, (*at, "share"), high=1.0),
        share_before=min(1.0, before),
        precision=_text(row.precision, (*at, "precision"), _WORD, "a precision such as bf16"),
        layout=_layout(row.layout, (*at, "layout")),
        checkpoint_interval_hours=_maybe(row.checkpoint_interval_hours, (*at, "checkpoint_interval_hours")),
        expected_preemptions=_figure(row.expected_preemptions, (*at, "expected_preemptions")),
        hands_over_at=None,
        switch_by=None,
        switch_share=None,
        probability=_maybe(row.probability, (*at, "probability"), high=1.0),
        moved_from=_moved(row),
        costs={part: _micros(usd, (*breakdown, part)) for part, usd in row.cost_usd.breakdown.parts().items()},
    )


def _accelerator(row: Machines, at: Where) -> Accelerator:
    if row.accelerator not in accelerators():
        message = f"{shown(row.accelerator)} is not accepted; it is an accelerator as `gpuplan accelerators` lists them"
        raise UnusableInput.at(*at, "accelerator", message=message)
    return accelerators()[row.accelerator]


def _layout(layout: Layout, at: Where) -> Layout:
    for name, degree in layout.items():
        if isinstance(degree, int):
            _figure(degree, (*at, name), low=0 if name == "zero_stage" else 1, high=1e7)
    return layout


def _moved(row: shared.Phase) -> str | None:
    """The source of the checkpoint, as one line."""
    if row.moved is None:
        return None
    origin = row.moved.from_
    return plain(f"{origin.instance_type} {origin.provider} {origin.region} {origin.zone}", limit=200)


def _next_places(ladder: CapacityLadder, first: Phase, at: Where) -> tuple[NextPlace, ...]:
    """The next choices with the first phase's own machines."""
    rows = ladder.next_choices
    if len(rows) > MOST_PHASES:
        message = f"is not accepted; a ladder has at most {MOST_PHASES} next choices"
        raise UnusableInput.at(*at, "next_choices", message=message)
    places = []
    for i, row in enumerate(rows):
        inner = (*at, "next_choices", i)
        if (row.provider, row.instance_type, row.nodes) == (first.provider, first.instance_type, first.nodes):
            place = NextPlace(
                region=_name(row, "region", inner),
                zone=_name(row, "zone", inner) if row.zone else "",
                kind=_kind(row, inner),
                usd_per_node_hour=usd_text(_micros(row.usd_per_node_hour, (*inner, "usd_per_node_hour"))),
                is_last=i == len(rows) - 1,
            )
            places.append(place)
    return tuple(places)


def _last_choice(ladder: CapacityLadder, plan: Plan, first: Phase, at: Where) -> LastChoice | None:
    """Until when all but the last choice are asked for again; None where the plan says nothing of it."""
    if ladder.last_choice_by is None or not ladder.next_choices:
        return None
    where, setup = (*at, "capacity_ladder"), plan.phases[0].setup_hours
    if setup is None:
        # Plans of older releases state the set-up in their settings alone.
        setup = _stated(plan.settings, "setup_hours", (*at, "settings"))
    return LastChoice(
        by=_time(ladder.last_choice_by, (*where, "last_choice_by")),
        hours=_figure(ladder.next_choices[-1].hours, (*where, "next_choices", "hours")),
        lost_hours=_figure(setup, (*at, "phases", 0, "setup_hours")) + (first.checkpoint_interval_hours or 0.0),
    )


def _kind(row: Machines, at: Where) -> PriceKind:
    if row.price_kind not in price_kinds():
        message = f"{shown(row.price_kind)} is not accepted; it is one of {', '.join(price_kinds())}"
        raise UnusableInput.at(*at, "price_kind", message=message)
    return price_kinds()[row.price_kind]


def _name(row: Machines, field: str, at: Where) -> str:
    """A cloud's name unchanged; an owned machine's name as one cleaned line."""
    value, where = getattr(row, field), (*at, field)
    if row.provider == "local" and value:
        return plain(value, limit=80)
    if field == "instance_type" and (is_own_rates(row.provider) or provider_names()[row.provider].kind != CLOUD):
        accepted = "a name in letters, digits, blanks, brackets, dots, dashes and underscores"
        return _text(value, where, _PAGE_NAME, accepted)
    return _text(value, where, _CLOUD_NAME, "a name in letters, digits, dots, dashes and underscores")


def _text(value: str, at: Where, pattern: re.Pattern[str], accepted: str) -> str:
    """A text of a pattern."""
    if not pattern.fullmatch(value):
        raise UnusableInput.at(*at, message=f"{shown(value)} is not accepted; it is {accepted}")
    return value


def _micros(value: Usd, at: Where) -> int:
    """An amount that is not negative, in micro-dollars."""
    if not (value.is_finite() and 0 <= value < 10**12):
        message = f'{shown(str(value))} is not accepted; it is dollars as text, "12.34"'
        raise UnusableInput.at(*at, message=message)
    return usd_micros(value)


def _time(value: datetime | None, at: Where) -> datetime:
    """A time with a zone."""
    if value is None or value.tzinfo is None or not 2000 <= value.year <= 2200:
        message = f"{shown(str(value))} is not accepted; it is a time such as 2026-11-21T08:00:00Z"
        raise UnusableInput.at(*at, message=message)
    return value


def _figure(value: float, at: Where, *, low: float = 0.0, high: float = MOST_HOURS) -> float:
    """A figure within limits, which no figure that is not finite is."""
    if not low <= value <= high:
        message = f"{shown(value)} is not accepted; it is a number from {low:g} to {high:g}"
        raise UnusableInput.at(*at, message=message)
    return value


def _maybe(value: float | None, at: Where, *, high: float = MOST_HOURS) -> float | None:
    return None if value is None else _figure(value, at, high=high)


def _stated(part: JsonObject, name: str, at: Where) -> float:
    """Hours of the job or the settings, which a plan repeats as they were read."""
    value = part.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnusableInput.at(*at, name, message=f"{shown(value)} is not accepted; it is a number of hours")
    return _figure(float(value), (*at, name))
