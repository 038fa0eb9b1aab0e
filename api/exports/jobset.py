"""A JobSet under Kueue: all nodes of a phase start together or not at all, and restart together.

https://jobset.sigs.k8s.io/docs/ and https://kueue.sigs.k8s.io/docs/: the flavour and the two queues belong to the
cluster's operator, who may already have others.
"""

from collections.abc import Sequence

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
from gpuplan.api.exports.places_in_order import phases_to_try
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
    places = _places(handover, phase, wishes)
    run = _set(handover, phase, wishes, name, places)
    notes = [
        *heading(handover, phase, wishes),
        *owned_machine_notes(phase),
        *notes,
        *_order(places, phase),
        *about_pods(handover, wishes),
    ]
    return yaml_text([*_queue(phase, name, places), script_map(handover, phase), run], notes)


def _places(handover: Handover, phase: Phase, wishes: Wishes) -> list[dict[str, str]]:
    """Labels of the nodes of the phase, then of those of the ladder's next places in its region, where its cluster is."""
    labels_ = [
        node_labels(tried, booked(phase, wishes))
        for tried in phases_to_try(handover, phase)
        if tried.region == phase.region
    ]
    return [place for i, place in enumerate(labels_) if place not in labels_[:i]]


def _order(places: Sequence[dict[str, str]], phase: Phase) -> list[str]:
    """How Kueue chooses among several places: https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/"""
    if len(places) == 1:
        return []
    return [
        f"The queue has a flavour for each of {len(places)} places of the capacity ladder in {phase.region}, in order. Kueue",
        "admits to the first one with free quota: if no nodes come, set its nominalQuota to 0, and apply the JobSet again",
    ]


def _set(handover: Handover, phase: Phase, wishes: Wishes, name: str, places: Sequence[dict[str, str]]) -> Yaml:
    template = pod_template(
        handover,
        phase,
        wishes,
        address=f"{name}-{WORKERS}-0-0.{name}",
        subdomain=None,
        run_label=RUN_LABEL,
        resume=RESUME,
        # Kueue adds the labels of the flavour that it admits to.
        selected={key: value for key, value in places[0].items() if all(place.get(key) == value for place in places)},
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


def _queue(phase: Phase, name: str, places: Sequence[dict[str, str]]) -> list[Yaml]:
    resource = stack(phase).resource
    quota = {"name": resource, "nominalQuota": str(phase.nodes * phase.devices)}
    names = [name if number == 1 else f"{name}-place-{number}" for number in range(1, len(places) + 1)]
    flavors = [{"name": flavor, "resources": [dict(quota)]} for flavor in names]
    return [
        *(
            {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": flavor}}
            | ({"spec": {"nodeLabels": chosen}} if chosen else {})
            for flavor, chosen in zip(names, places, strict=True)
        ),
        {
            "apiVersion": KUEUE,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": [resource], "flavors": flavors}],
            },
        },
        {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": name},
            "spec": {"clusterQueue": name},
        },
    ]
