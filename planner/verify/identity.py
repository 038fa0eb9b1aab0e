"""Whether a document is the one that was made: its id is the hash of all else, its inventory that of the machines given."""

import hashlib
import json

from catalog.errors import UnusableInput
from catalog.owned import OwnedMachine
from catalog.quantities import shown
from planner.verify.claim import Claim
from planner.verify.context import Context

ID_DIGITS = 20
PREFIX = {"plan": "plan", "infeasible": "none"}


def identity(context: Context) -> None:
    """The id, worked out anew."""
    ledger, body = context.ledger, context.claim.body
    rest = {name: value for name, value in body.items() if name != "id"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    expected = f"{PREFIX[context.claim.part]}-{digest[:ID_DIGITS]}"
    why = "something in the document was changed after it was made: its id is the hash of everything else"
    ledger.is_same("identity", ("id",), expected, why)


def inventory_id(machines: tuple[OwnedMachine, ...]) -> str:
    """The short name of own machines: a hash of every field of every one, in whatever order; empty where there are none."""
    if not machines:
        return ""
    listed = "\n".join(sorted(repr(each) for each in machines))
    return f"own-{hashlib.sha256(listed.encode()).hexdigest()[:ID_DIGITS]}"


def machines_of(claim: Claim, owned: tuple[OwnedMachine, ...]) -> tuple[OwnedMachine, ...]:
    """The machines that a plan was made with: those given, if the plan names them; none, if it names none.

    Raises `UnusableInput` at the inventory of the document where those given are others.
    """
    named = claim.body.get("inventory", "")
    if named == "":
        return ()
    given = inventory_id(owned)
    if named != given:
        what = f"those given are {given}" if given else "none are given"
        message = (
            f"the plan was made with own machines {shown(named)}, and {what}: give the same inventory to verify it"
        )
        raise UnusableInput.at(claim.part, "inventory", message=message)
    return owned
