"""A JobSet under Kueue: all nodes of a phase start together or not at all, and restart together.

https://jobset.sigs.k8s.io/docs/ and https://kueue.sigs.k8s.io/docs/: the flavour and the two queues are for whoever
runs the cluster, who may have others already.
"""

from api.export.handover import Handover, Phase, Wishes
from api.export.kubernetes import RESUME, own_machines
from api.export.machines import stack
from api.export.names import labels, run_name
from api.export.notes import heading
from api.export.pods import Yaml, about_pods, active_seconds, node_labels, pod_template, script_map, stop_policy
from api.export.refusal import booked
from api.export.yaml_text import yaml_text

WORKERS = "node"
#: A slice is the hosts of one node pool: https://cloud.google.com/kubernetes-engine/docs/how-to/tpu-multislice
ONE_POOL = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"}
#: Both are served by their newest releases: https://kueue.sigs.k8s.io/docs/reference/ , https://jobset.sigs.k8s.io
KUEUE = "kueue.x-k8s.io/v1beta2"
JOBSET = "jobset.x-k8s.io/v1alpha2"
#: What all pods of a JobSet share: https://jobset.sigs.k8s.io/docs/concepts/
RUN_LABEL = "jobset.sigs.k8s.io/jobset-uid"
#: At the run limit a set is not restarted: https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/
STOPPED: Yaml = {
    "name": "ended",
    "action": "FailJobSet",
    "onJobFailureReasons": ["PodFailurePolicy", "DeadlineExceeded"],
}
#: Restarts of the whole set when a node is lost, on top of those expected: as many again, and some.
SPARE_RESTARTS = 10


def jobset(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a JobSet with its queue. Raises `UnusableInput` for what cannot run in a pod."""
    name = run_name(handover, phase)
    notes = ["Start: kubectl apply -f FILE, in a cluster with JobSet and Kueue; leave out queues that you have"]
    run = _set(handover, phase, wishes, name)
    notes = [*heading(handover, phase, wishes), *own_machines(phase), *notes, *about_pods(handover, phase, wishes)]
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
    """As many interruptions as the plan expects of the phase, twice, and some for what else fails."""
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
