"""The id of an inventory of owned machines: equal for the same machines, windows, prices and measurements."""

import hashlib

from gpuplan.catalog.model.owned_machine import OwnedMachine

#: As many as an id of a plan has.
DIGITS = 20


def inventory_id(machines: tuple[OwnedMachine, ...]) -> str:
    """`own-` and a hash of every field of every machine, independent of their order; empty without machines."""
    if not machines:
        return ""
    listed = "\n".join(sorted(repr(machine) for machine in machines))
    return f"own-{hashlib.sha256(listed.encode()).hexdigest()[:DIGITS]}"
