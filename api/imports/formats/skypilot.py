"""SkyPilot task YAML: accelerators per node, nodes, and the commands of `run`.

Keys: skypilot-org/skypilot `docs/source/reference/yaml-spec.rst`, read on 2026-11-27.
"""

import re
from typing import Any

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
    nodes = as_scalar(document.get("num_nodes"))
    nodes = nodes if isinstance(nodes, int) and 0 < nodes < 10_000 else 1
    environment = document.get("envs")
    variables = (
        {key: str(value) for key, value in environment.items() if value is not None}
        if isinstance(environment, dict)
        else {}
    )
    variables |= {"SKYPILOT_NUM_NODES": str(nodes), "num_nodes": str(nodes)}
    asked = _accelerators(document.get("resources"))
    sizes = {per_node for _, per_node in asked}
    origin = document.at("resources.accelerators", "resources.any_of", "resources.ordered", "resources")
    if len(asked) > 1:
        facts.notes.append(f"any of {', '.join(f'{name}:{number}' for name, number in asked)} may run it")
    if len(sizes) > 1:
        facts.not_understood.append(f"{origin}: accelerators differ in number, so the processes are not known")
    elif asked:
        name, per_node = asked[0]
        facts.machines = Machines(origin=origin, accelerator=name, per_node=per_node, nodes=nodes)
        facts.put("stated_world_size", per_node * nodes, origin)
        variables["SKYPILOT_NUM_GPUS_PER_NODE"] = str(per_node)
    machine = document.get("resources.instance_type")
    if not asked and isinstance(machine, str):
        origin = document.at("resources.instance_type")
        facts.machines = Machines(origin=origin, instance_type=machine, nodes=nodes)
    run = document.get("run")
    if isinstance(run, str):
        follow.script(run, document.name, document.line("run") or 0, facts, variables)


def _accelerators(resources: Any) -> list[tuple[str, int]]:
    """Name and number per node of each accelerator that may be taken: a text, a list, a mapping or alternatives."""
    if not isinstance(resources, dict):
        return []
    stated = resources.get("accelerators")
    if stated is None:
        listed = resources.get("any_of") or resources.get("ordered")
        return [pair for one in listed for pair in _accelerators(one)] if isinstance(listed, list) else []
    if isinstance(stated, dict):
        stated = [key if number is None else f"{key}:{number}" for key, number in stated.items()]
    texts = stated if isinstance(stated, list) else [stated]
    matches = (re.fullmatch(r"\s*([\w.-]+?)(?::(\d{1,3}))?\s*", one) for one in texts if isinstance(one, str))
    return [(match[1], int(match[2] or 1)) for match in matches if match]


READER = Reader(name=NAME, signs=signs, read=read)
