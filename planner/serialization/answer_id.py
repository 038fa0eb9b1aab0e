"""Ids of answers: a hash of everything else in them, so that the same question over the same prices has the same id."""

import hashlib
import json

from gpuplan.planner.model.wire import wire

#: Keys in order, whatever order they were put in.
_ORDERED = json.JSONEncoder(sort_keys=True)


def answer_id(answer: object, prefix: str) -> str:
    """`plan-5cc3ddf113d641b9c615`: the id of an answer, which it does not have yet."""
    rest = wire(answer)
    del rest["id"]
    return f"{prefix}-{hashlib.sha256(_ORDERED.encode(rest).encode()).hexdigest()[:20]}"
