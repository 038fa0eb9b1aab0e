"""Verification of an answer: every check, and the parts that are taken on trust."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.catalog.snapshots.snapshot import snapshot_id_of
from gpuplan.planner.model.plan import Infeasible, Plan
from gpuplan.planner.model.shared import wire_name
from gpuplan.planner.model.verification import Verification
from gpuplan.planner.verify.field_coverage import MOST_WRONG, Path
from gpuplan.planner.verify.infeasibility_check import check_infeasible
from gpuplan.planner.verify.plan_check import check_planned
from gpuplan.planner.verify.replay_tolerance import REPLAYED
from gpuplan.planner.verify.rules import BASES
from gpuplan.planner.verify.submitted_plan import SubmittedPlan
from gpuplan.planner.verify.verification_context import Context, context_of

ID_DIGITS = 20
PREFIX = {"plan": "plan", "infeasible": "none"}


def identity(context: Context) -> None:
    """Check the id against the hash of the rest of the document."""
    field_coverage, body = context.field_coverage, context.submitted_plan.body
    rest = {name: value for name, value in body.items() if name != "id"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    expected = f"{PREFIX[context.submitted_plan.part]}-{digest[:ID_DIGITS]}"
    why = "something in the document was changed after it was made: its id is the hash of everything else"
    field_coverage.is_same("identity", ("id",), expected, why)


def inventory_id(machines: tuple[OwnedMachine, ...]) -> str:
    """The id of an inventory: a hash of every field of every machine, independent of their order; empty without
    machines.
    """
    if not machines:
        return ""
    listed = "\n".join(sorted(repr(machine) for machine in machines))
    return f"own-{hashlib.sha256(listed.encode()).hexdigest()[:ID_DIGITS]}"


def machines_of(submitted_plan: SubmittedPlan, owned: tuple[OwnedMachine, ...]) -> tuple[OwnedMachine, ...]:
    """The own machines that a plan was made with: those given if the plan names an inventory, else none.

    Raises `UnusableInput` at the document's inventory where the given machines differ from it.
    """
    named = submitted_plan.body.get("inventory", "")
    if named == "":
        return ()
    given = inventory_id(owned)
    if named != given:
        what = f"those given are {given}" if given else "none are given"
        message = (
            f"the plan was made with own machines {shown(named)}, and {what}: give the same inventory to verify it"
        )
        raise UnusableInput.at(submitted_plan.part, "inventory", message=message)
    return owned


def prose(kind: type, body: Any, path: Path = ()) -> Iterator[Path]:
    """Paths to the prose in a JSON object of the answer `kind`, without optional prose that it lacks."""
    for name, part, is_prose, may_be_absent in _parts(kind):
        if is_prose:
            if not may_be_absent or name in body:
                yield (*path, name)
        elif part is not None and isinstance(inner := body.get(name), dict):
            yield from prose(part, inner, (*path, name))
        elif part is not None and isinstance(inner, list):
            for number, entry in enumerate(inner):
                if isinstance(entry, dict):
                    yield from prose(part, entry, (*path, name, number))


@cache
def _parts(kind: type) -> tuple[tuple[str, type | None, bool, bool], ...]:
    """(key, class of the value or of its entries, whether it is prose, whether it may be absent) of each field with prose."""
    hints = get_type_hints(kind)
    rows = (
        (
            wire_name(field.name),
            _dataclass_in(hints[field.name]),
            bool(field.metadata.get("prose")),
            bool(field.metadata.get("absent")),
        )
        for field in fields(kind)
    )
    return tuple(row for row in rows if row[2] or (row[1] is not None and _parts(row[1])))


def _dataclass_in(hint: Any) -> type | None:
    """The dataclass of an optional value or of the entries of a list."""
    if isinstance(hint, type) and is_dataclass(hint):
        return hint
    if get_origin(hint) in (Union, UnionType, tuple):
        return next((inner for part in get_args(hint) if (inner := _dataclass_in(part))), None)
    return None


#: Taken on trust besides prose: the job, its settings and what identifies the answer.
INPUTS = (("job",), ("settings",), ("version",), ("snapshot_id",), ("id",))
#: Only some documents have these: learned corrections, own machines, and what clouds said about capacity.
OPTIONAL_INPUTS = (("learned",), ("inventory",), ("live_capacity", "answers"), ("live_capacity", "not_learned"))
TAKEN = (
    "the job, the settings and the corrections from past runs, as the document states them: they are the question",
    (
        "the estimator's time, spread, memory and layout of every machine, and the job's FLOPs, bytes and parameters: "
        "the one part of the planner that the verification asks"
    ),
    "the prices, interruption rates and hardware in the snapshot, and the catalogue's tables of storage, egress, power and grid",
    "that the rates of own machines are those of the inventory given",
    (
        "that no other pair of interruptible machines and standby is cheaper, that a fallback is the best one, and that a "
        "plan without a fallback has none"
    ),
    "that no capacity ladder of other choices than those named is better: chances, order and expected cost are replayed",
    (
        "figures of a standby or fallback within the interval of the replayed runs and what the planner's model of the rule "
        f"may be off by: {', '.join(f'{name} {room.share:.1%}' for name, room in REPLAYED.items())}; hours more where a run "
        "has few segments between checkpoints"
    ),
    (
        "differences that rounding explains: 1.5e-8 of a number, a micro-dollar of a sum, 2e-8 to 2e-7 of what follows from figures of "
        "the document"
    ),
    "the sentences under the plan, those on layouts, left-out offers and how the search for phases went, and the name of the solver",
)
#: Taken on trust besides, in a plan with live answers.
TAKEN_LIVE = "what the clouds answered about capacity, as the document states it: the chances that follow are replayed"


def verified(submitted_plan: SubmittedPlan, columns: Columns, *, owned: tuple[OwnedMachine, ...] = ()) -> Verification:
    """Check the submitted plan against the columns of its snapshot and the user's `owned` machines.

    Own machines compete only if the plan was made with some. Raises `UnusableInput` at the field for an unreadable
    document, for one made with other machines, and for a job that contradicts itself.
    """
    owned = machines_of(submitted_plan, owned)
    context = context_of(submitted_plan, columns, owned)
    field_coverage = context.field_coverage
    field_coverage.trust(
        *INPUTS,
        *(at for at in OPTIONAL_INPUTS if field_coverage.has(*at)),
        *prose(Plan if submitted_plan.planned else Infeasible, submitted_plan.body),
    )
    identity(context)
    _snapshot(context)
    covers = check_planned(context) if submitted_plan.planned else check_infeasible(context)
    field_coverage.close()
    return Verification(
        id=field_coverage.text("id"),
        of=submitted_plan.part,
        snapshot_id=columns.snapshot_id,
        made_by=field_coverage.text("version"),
        wrong=field_coverage.wrong[:MOST_WRONG],
        wrong_count=len(field_coverage.wrong),
        checks=field_coverage.checks(),
        bases=BASES,
        covers=covers,
        taken_on_trust=(*TAKEN, TAKEN_LIVE) if field_coverage.has("live_capacity") else TAKEN,
    )


def _snapshot(context: Context) -> None:
    """Check that the stored rows hash to the snapshot's id."""
    snapshot_id = _id_of_rows(context.columns)
    context.field_coverage.is_same("snapshot", ("snapshot_id",), snapshot_id, "not the hash of the stored rows")


#: Columns never change and are told apart by identity, and many answers on one snapshot are verified.
@lru_cache(maxsize=4)
def _id_of_rows(columns: Columns) -> str:
    return snapshot_id_of(columns.instance_types, (columns.offer(i) for i in range(len(columns))))
