"""An Indexed Job with a headless Service through which its pods find the first: plain Kubernetes, nothing to install.

https://kubernetes.io/docs/tasks/job/job-with-pod-to-pod-communication/
"""

from api.export.handover import Handover, Phase, Wishes
from api.export.launcher import PORT
from api.export.names import labels, run_name
from api.export.notes import heading
from api.export.pods import Yaml, about_pods, active_seconds, pod_template, script_map, stop_policy
from api.export.yaml_text import yaml_text

#: Pods that fail of themselves; those that the cloud takes away are not counted.
BACKOFF_LIMIT = 6
#: The Job that a pod is of: https://kubernetes.io/docs/reference/labels-annotations-taints/
RUN_LABEL = "batch.kubernetes.io/controller-uid"
RESUME = "kubectl delete -f FILE && kubectl apply -f FILE"


def kubernetes(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a Service and a Job. Raises `UnusableInput` for what cannot run in a pod."""
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
    notes = [*heading(handover, phase, wishes), *own_machines(phase), *together(phase)]
    notes += ["Start: kubectl apply -f FILE", *about_pods(handover, phase, wishes)]
    return yaml_text(documents, notes)


def job_spec(handover: Handover, phase: Phase, wishes: Wishes, *, address: str, subdomain: str | None) -> Yaml:
    """A Job of one pod per node; a node that is taken away does not count as a failure."""
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
    """What a plain Job does not do."""
    if phase.nodes == 1:
        return []
    alone = ["A Job starts its pods one by one and restarts them one by one: a JobSet starts and restarts all together"]
    if phase.is_slice:
        alone.append(
            "Its pods belong on one slice: have one node pool of that topology, or use a JobSet, which sees to it"
        )
    return alone


def own_machines(phase: Phase) -> list[str]:
    """What cannot be asked of a cluster of own machines."""
    if phase.provider != "local":
        return []
    return [f"Own machines carry no label that is known here: see that the pods land on {phase.instance_type}"]
