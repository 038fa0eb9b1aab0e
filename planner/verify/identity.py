"""Whether a document is the one that was made: its id is the hash of all else, its inventory that of the machines given."""

import hashlib
import json

from catalog.owned import OwnedMachine
from planner.verify.context import Context

ID_DIGITS = 20
PREFIX = {"plan": "plan", "infeasible": "none"}


def identity(context: Context, owned: tuple[OwnedMachine, ...]) -> None:
    """The id, worked out anew."""
    ledger, body = context.ledger, context.claim.body
    rest = {name: value for name, value in body.items() if name != "id"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    expected = f"{PREFIX[context.claim.part]}-{digest[:ID_DIGITS]}"
    why = "something in the document was changed after it was made: its id is the hash of everything else"
    ledger.is_same("identity", ("id",), expected, why)
