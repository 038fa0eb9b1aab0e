"""Kubernetes jobs of training: PyTorchJob, JobSet, TrainJob and its runtimes: pods, accelerators, and the command inside.

Fields: kubeflow/trainer and kubernetes-sigs/jobset, their API references, read on 2026-11-27.
"""

import shlex
from collections.abc import Iterator
from typing import Any

from gpuplan.api.imports.facts import Machines, TrainingFacts
from gpuplan.api.imports.key_table import as_scalar
from gpuplan.api.imports.located_document import Located
from gpuplan.api.imports.reader import Follow, Reader, has

NAME = "Kubernetes"
_KINDS = ("PyTorchJob", "JobSet", "TrainJob", "ClusterTrainingRuntime", "TrainingRuntime", "MPIJob", "Job")


def signs(document: Located) -> int:
    """`apiVersion` and a kind of training."""
    return 10 if has(document, "apiVersion", "kind") == 2 and document.get("kind") in _KINDS else 0


def read(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    """State pods x accelerators, then the facts of the containers' commands."""
    world = 0
    for pods, container in _containers(document.value, 1, 0):
        limits = container.get("resources")
        limits = limits.get("limits") or limits.get("requests") if isinstance(limits, dict) else None
        gpus = [as_scalar(v) for k, v in limits.items() if str(k).endswith("/gpu")] if isinstance(limits, dict) else []
        number = next((one for one in gpus if isinstance(one, int) and 0 < one < 1000), 0)
        if number:
            world += pods * number
            facts.machines = Machines(origin=document.at("kind"), per_node=number, nodes=pods)
        words = [w for key in ("command", "args") if isinstance(container.get(key), list) for w in container[key]]
        text = words[-1] if len(words) > 2 and "\n" in str(words[-1]) else shlex.join(str(word) for word in words)
        if text:
            before = facts.number("stated_world_size")
            follow.script(str(text), document.name, document.line("spec") or 0, facts, {})
            after = facts.whole("stated_world_size")
            if not number and before is None and after and pods > 1:
                facts.replace("stated_world_size", after * pods, document.at("kind", because="pods x processes"))
    if world:
        facts.put("stated_world_size", world, document.at("kind", because="pods x accelerators"))


def _containers(value: Any, pods: int, depth: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every container with the number of its pods."""
    if depth > 30:
        return
    if isinstance(value, dict):
        for key in ("numNodes", "replicas", "parallelism"):
            number = as_scalar(value.get(key))
            pods = pods * number if isinstance(number, int) and 0 < number < 10_000 else pods
        policy = value.get("mlPolicy")
        number = as_scalar(policy.get("numNodes")) if isinstance(policy, dict) else None
        pods = pods * number if isinstance(number, int) and 0 < number < 10_000 else pods
        for key, inner in value.items():
            if key == "containers" and isinstance(inner, list):
                yield from ((pods, one) for one in inner if isinstance(one, dict))
            elif key != "mlPolicy":
                yield from _containers(inner, pods, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _containers(inner, pods, depth + 1)


READER = Reader(name=NAME, signs=signs, read=read)
