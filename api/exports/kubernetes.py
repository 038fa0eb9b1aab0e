"""An Indexed Job with a headless Service for plain Kubernetes, without extensions.

https://kubernetes.io/docs/tasks/job/job-with-pod-to-pod-communication/
"""

from gpuplan.api.exports.file_comments import heading
from gpuplan.api.exports.kubernetes_pods import Yaml, about_pods, active_seconds, pod_template, script_map, stop_policy
from gpuplan.api.exports.launch_command import PORT
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.tool_names import labels, run_name
from gpuplan.api.exports.yaml_text import yaml_text

#: Allowed pod failures; preempted pods are not counted.
BACKOFF_LIMIT = 6
#: The Job that a pod is of: https://kubernetes.io/docs/reference/labels-annotations-taints/
RUN_LABEL = "batch.kubernetes.io/controller-uid"
RESUME = "kubectl delete -f FILE && kubectl apply -f FILE"


def kubernetes(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a Service and a Job. Raises `UnusableInput` for a phase that cannot run in pods."""
    name = run_name(handover, phase)
    marked = labels(handover, phase)
    service: Yaml = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": marked},
        "spec": {
            "clusterIP": "None",
            "selector": {"job-name": name},
            "publishNotReadyAddresses": True,
            "ports": [{"name": "rendezvous", "port": PORT}],
        },
    }
    job: Yaml = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": marked},
        "spec": job_spec(handover, phase, wishes, address=f"{name}-0.{name}", subdomain=name),
    }
    documents = [script_map(handover, phase), *([service] if phase.nodes > 1 else []), job]
    notes = [*heading(handover, phase, wishes), *owned_machine_notes(phase), *together(phase)]
    notes += ["Start: kubectl apply -f FILE", *about_pods(handover, wishes)]
    return yaml_text(documents, notes)


def job_spec(handover: Handover, phase: Phase, wishes: Wishes, *, address: str, subdomain: str | None) -> Yaml:
    """A Job with one pod per node; a preempted node does not count as a failure."""
    single = None if phase.nodes == 1 else subdomain
    return {
        "completionMode": "Indexed",
        "completions": phase.nodes,
        "parallelism": phase.nodes,
        "backoffLimit": BACKOFF_LIMIT,
        "activeDeadlineSeconds": active_seconds(handover, phase, wishes),
        "podFailurePolicy": {
            "rules": [
                stop_policy(),
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            ]
        },
        "template": pod_template(
            handover, phase, wishes, address=address, subdomain=single, run_label=RUN_LABEL, resume=RESUME
        ),
    }


def together(phase: Phase) -> list[str]:
    """Notes on features that a plain Job lacks."""
    if phase.nodes == 1:
        return []
    alone = ["A Job starts its pods one by one and restarts them one by one: a JobSet starts and restarts all together"]
    if phase.is_slice:
        alone.append(
            "Its pods must be on one slice: provide one node pool of that topology, or use a JobSet, which ensures it"
        )
    return alone


def owned_machine_notes(phase: Phase) -> list[str]:
    """A note on owned machines, whose node labels are unknown."""
    if phase.provider != "local":
        return []
    return [f"Labels of owned machines are unknown: make sure that the pods run on {phase.instance_type}"]
