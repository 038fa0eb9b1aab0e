"""Check that a document is unchanged: its id is the hash of its content, its inventory that of the given machines."""

import hashlib
import json

from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.verify.submitted_plan import SubmittedPlan
from gpuplan.planner.verify.verification_context import Context

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
