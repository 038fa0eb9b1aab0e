"""The pod template of a phase's nodes, for Jobs and JobSets.

Nodes are selected by the labels of their cloud, with sources below. Labels of owned machines are unknown, so there the
pod requests only its devices.
"""

from collections.abc import Mapping

from gpuplan.api.exports.container_stacks import image, machine_and_cards, stack
from gpuplan.api.exports.launch_command import PORT, launch
from gpuplan.api.exports.node_script import GRACE_SECONDS, SCRIPT, directory, is_mounted, place, variables
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.run_limit import limit_seconds
from gpuplan.api.exports.shell_script import Expanded
from gpuplan.api.exports.tool_names import labels, run_name
from gpuplan.api.exports.tpu_names import gke_labels
from gpuplan.api.exports.unsupported_features import booked, need_cloud
from gpuplan.catalog.parsing.json_object import JsonObject

Yaml = JsonObject

INSTANCE = "node.kubernetes.io/instance-type"
REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
#: https://docs.aws.amazon.com/eks/latest/userguide/ : nodes carry the id beside the name.
AWS_ZONE_ID = "topology.k8s.aws/zone-id"
#: https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html and https://karpenter.sh/docs/concepts/scheduling/
EKS_KINDS = {"spot": ("SPOT", "spot"), "capacity_block": ("CAPACITY_BLOCK", "reserved")}
EKS_PLAIN = ("ON_DEMAND", "on-demand")
#: https://cloud.google.com/kubernetes-engine/docs : spot VMs, flex-start, and reservations.
GKE_SPOT, GKE_FLEX, GKE_RESERVATION = (
    "cloud.google.com/gke-spot",
    "cloud.google.com/gke-flex-start",
    "cloud.google.com/reservation-name",
)
#: N1 machines accept any card: https://cloud.google.com/kubernetes-engine/docs/how-to/gpus
GKE_CARD = "cloud.google.com/gke-accelerator"
#: https://learn.microsoft.com/azure/aks/spot-node-pool : such nodes are tainted with the same key and value.
AKS_SPOT = "kubernetes.azure.com/scalesetpriority"
#: Shared memory of a pod, for the data exchange of its processes.
SHARED_MEMORY = "/dev/shm"  # noqa: S108
SCRIPT_FOLDER, CONTAINER = "/gpuplan", "train"
#: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-scheduling-readiness/
SCHEDULING_GATE = "gpuplan/set-data.checkpoints"
#: Log-ins for checkpoints in another cloud.
SECRET = "gpuplan-checkpoints"  # noqa: S105
#: As `run-on-node.sh` exits.
LIMIT_REACHED, NOT_CONFIGURED = 75, 78


def script_map(handover: Handover, phase: Phase) -> Yaml:
    """The ConfigMap with the script that every pod starts."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": run_name(handover, phase), "labels": labels(handover, phase)},
        "data": {"run-on-node.sh": SCRIPT},
    }


def stop_policy() -> Yaml:
    """Do not restart a run that reached its limit or has no checkpoint location."""
    codes = {"containerName": CONTAINER, "operator": "In", "values": [LIMIT_REACHED, NOT_CONFIGURED]}
    return {"action": "FailJob", "onExitCodes": codes}


def active_seconds(handover: Handover, phase: Phase, wishes: Wishes) -> int:
    """The Job's deadline in seconds; the rest of the run limit is for a last checkpoint."""
    return limit_seconds(handover, phase, wishes) - GRACE_SECONDS


def pod_template(
    handover: Handover,
    phase: Phase,
    wishes: Wishes,
    *,
    address: str,
    subdomain: str | None,
    run_label: str,
    resume: str,
    selected: Mapping[str, str] | None = None,
) -> Yaml:
    """The template of a pod that finds the first one at `address`; `run_label` holds what all pods of a run share.

    `selected` are the labels of its nodes, those of the phase unless a queue chooses among several places. Raises `UnusableInput` for a phase that cannot run in pods.
    """
    need_cloud(phase, "Kubernetes", "aws", "gcp", "azure", "local")
    reservation = booked(phase, wishes)
    words = launch(phase, wishes, rank=Expanded("$(JOB_COMPLETION_INDEX)"), address=address)
    count = {stack(phase).resource: str(phase.devices)}
    environment = variables(handover, phase, wishes, resume=resume)
    started = ["bash", f"{SCRIPT_FOLDER}/run-on-node.sh", *words]
    container: Yaml = {
        "name": CONTAINER,
        "image": image(phase, wishes),
        "command": [str(part) if isinstance(part, Expanded) else _literal(part) for part in started],
        "env": [
            *({"name": name, "value": _literal(value)} for name, value in environment.items()),
            {"name": "GPUPLAN_RUN", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{run_label}']"}}},
        ],
        "envFrom": [{"secretRef": {"name": SECRET, "optional": True}}],
        "ports": [{"name": "rendezvous", "containerPort": PORT}],
        "resources": {"limits": dict(count), "requests": dict(count)},
        "volumeMounts": [
            {"name": "shared-memory", "mountPath": SHARED_MEMORY},
            {"name": "script", "mountPath": SCRIPT_FOLDER},
            {"name": "checkpoints", "mountPath": directory(handover, phase, wishes)},
        ],
    }
    spec: Yaml = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        # A gated pod is not scheduled, so no node starts for it.
        **({} if place(handover, wishes) else {"schedulingGates": [{"name": SCHEDULING_GATE}]}),
        **({"subdomain": subdomain} if subdomain else {}),
        **_placed(phase, node_labels(phase, reservation) if selected is None else selected),
        "containers": [container],
        "volumes": [
            {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
            {"name": "script", "configMap": {"name": run_name(handover, phase)}},
            {"name": "checkpoints", **_checkpoints(handover, phase, wishes)},
        ],
    }
    return {"metadata": {"labels": labels(handover, phase)}, "spec": spec}


def _checkpoints(handover: Handover, phase: Phase, wishes: Wishes) -> Yaml:
    """The volume of checkpoints: the node's mount, or scratch space that the script uploads from."""
    if is_mounted(handover, wishes):
        return {"hostPath": {"path": directory(handover, phase, wishes), "type": "Directory"}}
    return {"emptyDir": {}}


def about_pods(handover: Handover, wishes: Wishes) -> list[str]:
    """Notes on the cluster's access to checkpoints, and how to stop the run."""
    where = place(handover, wishes)
    comments = ["Stop: kubectl delete -f FILE. Resume from the newest checkpoint: the same, then kubectl apply -f FILE"]
    if where is None:
        comments.append(f"Its pods have the gate {SCHEDULING_GATE}, so they are not scheduled")
    elif where.kind == "mount":
        comments.append(f"Every node must mount {where.text}")
    else:
        comments.append(
            f"The pods' service account needs access to {where.text}; or a secret {SECRET} must have the variables that rclone reads"
        )
    return comments


def _literal(text: str) -> str:
    """Kubernetes expands `$(NAME)` in commands and variables; a doubled dollar is a literal one."""
    return text.replace("$", "$$")


def node_labels(phase: Phase, reservation: str | None = None) -> dict[str, str]:
    """The cloud's labels of a phase's nodes, without labels that depend on the node provisioner."""
    if phase.provider == "local":
        return {}
    machine, cards = machine_and_cards(phase)
    labels = (gke_labels(phase) if phase.is_slice else {INSTANCE: machine}) | {REGION: phase.region}
    if cards:
        labels[GKE_CARD] = cards.resource
    if phase.zone:
        # Azure numbers its zones; its nodes carry the region in front.
        name = f"{phase.region}-{phase.zone}" if phase.provider == "azure" else phase.zone
        labels[AWS_ZONE_ID if phase.provider == "aws" else ZONE] = name
    if phase.provider == "gcp":
        flags = {"spot": {GKE_SPOT: "true"}, "flex_start": {GKE_FLEX: "true"}}
        labels |= flags.get(phase.kind.name, {GKE_RESERVATION: reservation} if reservation else {})
    if phase.provider == "azure" and phase.kind.interruptible:
        labels[AKS_SPOT] = "spot"
    return labels


def _placed(phase: Phase, selected: Mapping[str, str]) -> Yaml:
    yaml: Yaml = {}
    if selected:
        yaml["nodeSelector"] = dict(selected)
    if phase.provider == "aws":
        managed, karpenter = EKS_KINDS.get(phase.kind.name, EKS_PLAIN)
        either = [("eks.amazonaws.com/capacityType", managed), ("karpenter.sh/capacity-type", karpenter)]
        terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]} for key, value in either]
        needed = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        yaml["affinity"] = {"nodeAffinity": needed}
    tolerated: list[Yaml] = [{"key": stack(phase).resource, "operator": "Exists", "effect": "NoSchedule"}]
    spot = {"gcp": (GKE_SPOT, "true"), "azure": (AKS_SPOT, "spot")}.get(phase.provider)
    if spot and phase.kind.interruptible:
        tolerated.append({"key": spot[0], "operator": "Equal", "value": spot[1], "effect": "NoSchedule"})
    return yaml | {"tolerations": tolerated}
