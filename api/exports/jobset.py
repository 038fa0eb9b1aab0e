"""A JobSet under Kueue: all nodes of a phase start together or not at all, and restart together.

https://jobset.sigs.k8s.io/docs/ and https://kueue.sigs.k8s.io/docs/: the flavour and the two queues belong to the
cluster's operator, who may already have others.
"""

from gpuplan.api.exports.container_stacks import stack
from gpuplan.api.exports.file_comments import heading
from gpuplan.api.exports.kubernetes import RESUME, owned_machine_notes
from gpuplan.api.exports.kubernetes_pods import (
    Yaml,
    about_pods,
    active_seconds,
    node_labels,
    pod_template,
    script_map,
    stop_policy,
)
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.tool_names import labels, run_name
from gpuplan.api.exports.unsupported_features import booked
from gpuplan.api.exports.yaml_text import yaml_text

WORKERS = "node"
#: A slice is the hosts of one node pool: https://cloud.google.com/kubernetes-engine/docs/how-to/tpu-multislice
ONE_POOL = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"}
#: API versions of the newest releases: https://kueue.sigs.k8s.io/docs/reference/ , https://jobset.sigs.k8s.io
KUEUE = "kueue.x-k8s.io/v1beta2"
JOBSET = "jobset.x-k8s.io/v1alpha2"
#: The label that all pods of a JobSet share: https://jobset.sigs.k8s.io/docs/concepts/
RUN_LABEL = "jobset.sigs.k8s.io/jobset-uid"
#: At the run limit a set is not restarted: https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/
STOPPED: Yaml = {
    "name": "ended",
    "action": "FailJobSet",
    "onJobFailureReasons": ["PodFailurePolicy", "DeadlineExceeded"],
}
#: Extra restarts of the set beyond twice the expected preemptions.
SPARE_RESTARTS = 10


def jobset(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a JobSet with its queue. Raises `UnusableInput` for a phase that cannot run in pods."""
    name = run_name(handover, phase)
    notes = ["Start: kubectl apply -f FILE, in a cluster with JobSet and Kueue; remove queues that you already have"]
    run = _set(handover, phase, wishes, name)
    notes = [
        *heading(handover, phase, wishes),
        *owned_machine_notes(phase),
        *notes,
        *about_pods(handover, phase, wishes),
    ]
    return yaml_text([*_queue(phase, wishes, name), script_map(handover, phase), run], notes)


def _set(handover: Handover, phase: Phase, wishes: Wishes, name: str) -> Yaml:
    template = pod_template(
        handover,
        phase,
        wishes,
        address=f"{name}-{WORKERS}-0-0.{name}",
        subdomain=None,
        run_label=RUN_LABEL,
        resume=RESUME,
    )
    job: Yaml = {"completions": phase.nodes, "parallelism": phase.nodes, "completionMode": "Indexed", "backoffLimit": 0}
    job |= {
        "activeDeadlineSeconds": active_seconds(handover, phase, wishes),
        "podFailurePolicy": {"rules": [stop_policy()]},
    }
    metadata: Yaml = {"name": name, "labels": labels(handover, phase) | {"kueue.x-k8s.io/queue-name": name}}
    return {
        "apiVersion": JOBSET,
        "kind": "JobSet",
        "metadata": metadata | ({"annotations": ONE_POOL} if phase.is_slice else {}),
        "spec": {
            "network": {"enableDNSHostnames": True, "subdomain": name},
            "failurePolicy": {"maxRestarts": _restarts(phase), "rules": [STOPPED]},
            "replicatedJobs": [{"name": WORKERS, "replicas": 1, "template": {"spec": job | {"template": template}}}],
        },
    }


def _restarts(phase: Phase) -> int:
    """Twice the expected preemptions of the phase, plus a margin for other failures."""
    return SPARE_RESTARTS + 2 * round(phase.expected_preemptions)


def _queue(phase: Phase, wishes: Wishes, name: str) -> list[Yaml]:
    resource = stack(phase).resource
    quota = {"name": resource, "nominalQuota": str(phase.nodes * phase.devices)}
    flavor: Yaml = {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": name}}
    chosen = node_labels(phase, booked(phase, wishes))
    return [
        flavor | ({"spec": {"nodeLabels": chosen}} if chosen else {}),
        {
            "apiVersion": KUEUE,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": [resource], "flavors": [{"name": name, "resources": [quota]}]}],
            },
        },
        {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": name},
            "spec": {"clusterQueue": name},
        },
    ]
