"""Kubernetes jobs of training: PyTorchJob, JobSet, TrainJob and its runtimes: pods, accelerators, and the command inside.

Fields: kubeflow/trainer and kubernetes-sigs/jobset, their API references, read on 2026-11-27. Labels of nodes: those of
NVIDIA's GPU feature discovery, GKE, EKS and CoreWeave.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpuplan.api.imports.facts import Machines, TrainingFacts
from gpuplan.api.imports.key_table import as_scalar
from gpuplan.api.imports.located_document import Located, Path
from gpuplan.api.imports.reader import Follow, Reader, has

NAME = "Kubernetes"
_KINDS = ("PyTorchJob", "JobSet", "TrainJob", "ClusterTrainingRuntime", "TrainingRuntime", "MPIJob", "Job")
#: Labels of nodes whose value names the accelerator.
_LABELS = (
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
    "gpu.nvidia.com/class",
    "gpu.nvidia.com/model",
    "amd.com/gpu.product-name",
)


#: Labels whose value names the machine.
_MACHINE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")


def signs(document: Located) -> int:
    """`apiVersion` and a kind of training."""
    return 10 if has(document, "apiVersion", "kind") == 2 and document.get("kind") in _KINDS else 0


@dataclass(frozen=True, slots=True)
class _Container:
    """A container: how many pods run it, the accelerators of each, and what stands around it."""

    pods: int
    gpus: int
    accelerator: str | None
    content: dict[str, Any]
    path: Path


def read(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    """State pods x accelerators and the time limit, then the facts of the containers' commands."""
    containers = list(_containers(document.value, 1, None, ()))
    pods, per_pod = _machines(document, containers, facts)
    if pods and per_pod:
        facts.put("stated_world_size", pods * per_pod, document.at("kind", because="pods x accelerators"))
    known = {"PET_NNODES": pods, "PET_NPROC_PER_NODE": per_pod, "NNODES": pods}
    environment = {name: str(value) for name, value in known.items() if value}
    seen: set[str] = set()
    for container in containers:
        text, line = _command(container, document)
        if text and text not in seen:
            seen.add(text)
            before = facts.number("stated_world_size")
            follow.script(text, document.name, line, facts, environment | _environment(container.content))
            after = facts.whole("stated_world_size")
            if before is None and after and container.pods > 1 and not container.gpus:
                because = document.at("kind", because="pods x processes")
                facts.replace("stated_world_size", after * container.pods, because)


def _machines(document: Located, containers: list[_Container], facts: TrainingFacts) -> tuple[int, int]:
    """State the pods with accelerators and the time limit; return the pods and the accelerators of each, 0 if unknown."""
    working = [one for one in containers if one.gpus]
    pods, sizes = sum(one.pods for one in working), {one.gpus for one in working}
    seconds = next(iter(_values(document.value, "activeDeadlineSeconds", 0)), None)
    if not working:
        return 0, 0
    if len(sizes) > 1:
        facts.not_understood.append(f"{document.at('kind')}: pods have {sorted(sizes)} accelerators, not one number")
        return 0, 0
    facts.machines = Machines(
        origin=document.at("kind"),
        accelerator=next((one.accelerator for one in working if one.accelerator), None),
        instance_type=_machine(document.value),
        per_node=working[0].gpus,
        nodes=pods,
        hours=seconds / 3600 if isinstance(seconds, int) and 0 < seconds < 10**9 else None,
    )
    return pods, working[0].gpus


def _command(container: _Container, document: Located) -> tuple[str, int]:
    """The commands of a container as a script, and the line before its first."""
    for key in ("args", "command"):
        listed = container.content.get(key)
        if isinstance(listed, list) and listed and "\n" in str(listed[-1]):
            return str(listed[-1]), document.lines.get((*container.path, key, len(listed) - 1), 0)
    words = [
        str(w) for k in ("command", "args") if isinstance(container.content.get(k), list) for w in container.content[k]
    ]
    key = "command" if container.content.get("command") else "args"
    return shlex.join(words), document.lines.get((*container.path, key), 1) - 1


def _environment(content: dict[str, Any]) -> dict[str, str]:
    listed = content.get("env")
    pairs = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return {str(one.get("name")): str(one["value"]) for one in pairs if isinstance(one.get("value"), str | int | float)}


def _accelerators(content: dict[str, Any]) -> int:
    resources = content.get("resources") or content.get("resourcesPerNode")
    limits = resources.get("limits") or resources.get("requests") if isinstance(resources, dict) else None
    stated = [as_scalar(v) for k, v in limits.items() if str(k).endswith("/gpu")] if isinstance(limits, dict) else []
    return next((one for one in stated if isinstance(one, int) and 0 < one < 1000), 0)


def _containers(value: Any, pods: int, accelerator: str | None, path: Path) -> Iterator[_Container]:
    """Every container with the number of its pods."""
    if len(path) > 30:
        return
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _containers(inner, pods, accelerator, (*path, index))
    if not isinstance(value, dict):
        return
    policy = value.get("mlPolicy")
    stated = [value.get(key) for key in ("numNodes", "replicas", "parallelism")]
    for one in [*stated, policy.get("numNodes") if isinstance(policy, dict) else None]:
        number = as_scalar(one)
        pods = pods * number if isinstance(number, int) and 0 < number < 10_000 else pods
    accelerator = _label(value) or accelerator
    if path[-1:] == ("trainer",) and ("command" in value or "args" in value or "resourcesPerNode" in value):
        yield _Container(pods, _accelerators(value) or _processes(value), accelerator, value, path)
        return
    for key, inner in value.items():
        if key == "containers" and isinstance(inner, list):
            for index, one in enumerate(inner):
                if isinstance(one, dict):
                    yield _Container(pods, _accelerators(one), accelerator, one, (*path, key, index))
        elif key != "mlPolicy":
            yield from _containers(inner, pods, accelerator, (*path, str(key)))


def _processes(trainer: dict[str, Any]) -> int:
    number = as_scalar(trainer.get("numProcPerNode"))
    return number if isinstance(number, int) and 0 < number < 1000 else 0


def _label(pod: dict[str, Any]) -> str | None:
    """The accelerator that a pod's node must have, by selector or required affinity."""
    selector = pod.get("nodeSelector")
    stated = [selector.get(label) for label in _LABELS] if isinstance(selector, dict) else []
    for terms in _values(pod.get("affinity"), "matchExpressions", 0):
        for one in terms if isinstance(terms, list) else []:
            if isinstance(one, dict) and one.get("key") in _LABELS and one.get("operator") == "In":
                values = one.get("values")
                stated += values if isinstance(values, list) and len(values) == 1 else []
    return next((one for one in stated if isinstance(one, str) and one), None)


def _machine(value: Any) -> str | None:
    """The one instance type that the selectors of all pods name."""
    selectors = [one for one in _values(value, "nodeSelector", 0) if isinstance(one, dict)]
    named = {str(one[label]) for one in selectors for label in _MACHINE_LABELS if one.get(label)}
    return named.pop() if len(named) == 1 else None


def _values(value: Any, key: str, depth: int) -> Iterator[Any]:
    """The values of a key, at any depth."""
    if depth > 30:
        return
    inside: list[Any] = []
    if isinstance(value, dict):
        if value.get(key) is not None:
            yield value[key]
        inside = list(value.values())
    elif isinstance(value, list):
        inside = value
    for one in inside:
        yield from _values(one, key, depth + 1)


READER = Reader(name=NAME, signs=signs, read=read)
