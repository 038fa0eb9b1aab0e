"""The user's own machines as one short name: the same machines, windows, prices and measurements give the same."""

import hashlib

from catalog.owned import OwnedMachine

#: As many as an id of a plan has.
DIGITS = 20


def inventory_id(machines: tuple[OwnedMachine, ...]) -> str:
    """`own-` and a hash of every field of every machine, in whatever order they are listed; empty where there are none."""
    if not machines:
        return ""
    listed = "\n".join(sorted(repr(each) for each in machines))
    return f"own-{hashlib.sha256(listed.encode()).hexdigest()[:DIGITS]}"
