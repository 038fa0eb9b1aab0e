"""Ids of answers and of inventories: hashes of their content."""

import hashlib
import json

from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.planner.model.wire import wire

#: Keys in order, whatever order they were put in.
_ORDERED = json.JSONEncoder(sort_keys=True)


def answer_id(answer: object, prefix: str) -> str:
    """`plan-5cc3ddf113d641b9c615`: the id of an answer, which it does not have yet."""
    rest = wire(answer)
    del rest["id"]
    return f"{prefix}-{hashlib.sha256(_ORDERED.encode(rest).encode()).hexdigest()[:20]}"


#: As many as an id of a plan has.
DIGITS = 20


def inventory_id(machines: tuple[OwnedMachine, ...]) -> str:
    """`own-` and a hash of every field of every machine, independent of their order; empty without machines."""
    if not machines:
        return ""
    listed = "\n".join(sorted(repr(machine) for machine in machines))
    return f"own-{hashlib.sha256(listed.encode()).hexdigest()[:DIGITS]}"
