"""SkyPilot task YAML: accelerators per node, nodes, and the commands of `run`.

Keys: skypilot-org/skypilot `docs/source/reference/yaml-spec.rst`, read on 2026-11-27.
"""

import re

from gpuplan.api.imports.facts import Machines, TrainingFacts
from gpuplan.api.imports.key_table import as_scalar
from gpuplan.api.imports.located_document import Located
from gpuplan.api.imports.reader import Follow, Reader, has

NAME = "SkyPilot"


def signs(document: Located) -> int:
    """A part `resources` beside `run`."""
    return 10 if has(document, "resources") and has(document, "run") else 0


def read(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    """State the machines, then the facts of the commands."""
    stated = document.get("resources.accelerators")
    if isinstance(stated, dict) and stated:
        stated = ":".join(str(part) for part in next(iter(stated.items())))
    elif isinstance(stated, list) and stated:
        stated = stated[0]
    match = re.fullmatch(r"\s*([\w.-]+?)(?::(\d{1,3}))?\s*", stated) if isinstance(stated, str) else None
    nodes = as_scalar(document.get("num_nodes"))
    nodes = nodes if isinstance(nodes, int) and 0 < nodes < 10_000 else 1
    variables = (
        {key: str(value) for key, value in (document.get("envs") or {}).items() if value is not None}
        if isinstance(document.get("envs"), dict)
        else {}
    )
    if match:
        per_node = int(match[2] or 1)
        origin = document.at("resources.accelerators")
        facts.machines = Machines(origin=origin, accelerator=match[1], per_node=per_node, nodes=nodes)
        facts.put("stated_world_size", per_node * nodes, origin)
        variables |= {
            "SKYPILOT_NUM_GPUS_PER_NODE": str(per_node),
            "SKYPILOT_NUM_NODES": str(nodes),
            "num_nodes": str(nodes),
        }
    run = document.get("run")
    if isinstance(run, str):
        follow.script(run, document.name, document.line("run") or 0, facts, variables)


READER = Reader(name=NAME, signs=signs, read=read)
