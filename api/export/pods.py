"""The pod that runs on every node of a phase, as Kubernetes has it, for Jobs and JobSets alike.

Nodes are chosen by the labels that the clouds put on them, sources beside each. Own machines have none that gpuplan
knows, so there the pod asks for its devices alone.
"""

from typing import Any

from api.export.handover import Handover, Phase, Wishes
from api.export.launcher import PORT, launch
from api.export.machines import image, machine_and_cards, stack
from api.export.names import labels, run_name
from api.export.on_node import GRACE_SECONDS, SCRIPT, directory, is_mounted, place, variables
from api.export.refusal import booked, need_cloud
from api.export.run_limit import limit_seconds
from api.export.shell import Expanded
from api.export.tpu import gke_labels

Yaml = dict[str, Any]

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
#: Machines of N1 are had with any card: https://cloud.google.com/kubernetes-engine/docs/how-to/gpus
GKE_CARD = "cloud.google.com/gke-accelerator"
#: https://learn.microsoft.com/azure/aks/spot-node-pool : such nodes are tainted with the same key and value.
AKS_SPOT = "kubernetes.azure.com/scalesetpriority"
#: All of a node's memory is not to be asked for; the shared memory of a pod is what its processes exchange data through.
SHARED_MEMORY = "/dev/shm"  # noqa: S108
SCRIPT_FOLDER, CONTAINER = "/gpuplan", "train"
#: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-scheduling-readiness/
GATE = "gpuplan/set-data.checkpoints"
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
    """A run that its limit has ended, or that has no place for checkpoints, is not started again."""
    codes = {"containerName": CONTAINER, "operator": "In", "values": [LIMIT_REACHED, NOT_CONFIGURED]}
    return {"action": "FailJob", "onExitCodes": codes}


def active_seconds(handover: Handover, phase: Phase, wishes: Wishes) -> int:
    """When the Job is ended: its pods have the rest of the run limit to save a last checkpoint."""
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
) -> Yaml:
    """The template of a pod that finds the first one at `address`; `run_label` holds what all pods of a run share.

    Raises `UnusableInput` for what no pod can be.
    """
    need_cloud(phase, "Kubernetes", "aws", "gcp", "azure", "local")
    reservation = booked(phase, wishes)
    words = launch(phase, wishes, rank=Expanded("$(JOB_COMPLETION_INDEX)"), address=address)
    count = {stack(phase).resource: str(phase.devices)}
    said = variables(handover, phase, wishes, resume=resume)
    started = ["bash", f"{SCRIPT_FOLDER}/run-on-node.sh", *words]
    container: Yaml = {
        "name": CONTAINER,
        "image": image(phase, wishes),
        "command": [str(each) if isinstance(each, Expanded) else _literal(each) for each in started],
        "env": [
            *({"name": name, "value": _literal(value)} for name, value in said.items()),
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
        # A pod with a gate is not scheduled, so that no node is started for it.
        **({} if place(handover, wishes) else {"schedulingGates": [{"name": GATE}]}),
        **({"subdomain": subdomain} if subdomain else {}),
        **_placed(phase, reservation),
        "containers": [container],
        "volumes": [
            {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
            {"name": "script", "configMap": {"name": run_name(handover, phase)}},
            {"name": "checkpoints", **_checkpoints(handover, phase, wishes)},
        ],
    }
    return {"metadata": {"labels": labels(handover, phase)}, "spec": spec}


def _checkpoints(handover: Handover, phase: Phase, wishes: Wishes) -> Yaml:
    """What a node mounts for all its pods, or room from which the script uploads."""
    if is_mounted(handover, wishes):
        return {"hostPath": {"path": directory(handover, phase, wishes), "type": "Directory"}}
    return {"emptyDir": {}}


def about_pods(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    """What a cluster has to have for the checkpoints, and how the run is ended by hand."""
    where = place(handover, wishes)
    found = [
        "End it: kubectl delete -f FILE. To go on from the newest checkpoint: the same, then kubectl apply -f FILE"
    ]
    if where is None:
        found.append(f"Its pods have the gate {GATE}, so none is scheduled")
    elif where.kind == "mount":
        found.append(f"Every node has to mount {where.text}")
    else:
        found.append(
            f"The pods' service account has to be let at {where.text}; or a secret {SECRET} has the variables that rclone reads"
        )
    return found


def _literal(text: str) -> str:
    """Kubernetes expands `$(NAME)` in commands and variables; a doubled dollar stands for itself."""
    return text.replace("$", "$$")


def node_labels(phase: Phase, reservation: str | None = None) -> dict[str, str]:
    """What the nodes of a phase are labelled with by their cloud, but for what differs by who starts them."""
    if phase.provider == "local":
        return {}
    machine, cards = machine_and_cards(phase)
    found = (gke_labels(phase) if phase.is_slice else {INSTANCE: machine}) | {REGION: phase.region}
    if cards:
        found[GKE_CARD] = cards.resource
    if phase.zone:
        # Azure numbers its zones; its nodes carry the region in front.
        name = f"{phase.region}-{phase.zone}" if phase.provider == "azure" else phase.zone
        found[AWS_ZONE_ID if phase.provider == "aws" else ZONE] = name
    if phase.provider == "gcp":
        flags = {"spot": {GKE_SPOT: "true"}, "flex_start": {GKE_FLEX: "true"}}
        found |= flags.get(phase.kind.name, {GKE_RESERVATION: reservation} if reservation else {})
    if phase.provider == "azure" and phase.kind.interruptible:
        found[AKS_SPOT] = "spot"
    return found


def _placed(phase: Phase, reservation: str | None) -> Yaml:
    found: Yaml = {}
    if node_labels(phase, reservation):
        found["nodeSelector"] = node_labels(phase, reservation)
    if phase.provider == "aws":
        managed, karpenter = EKS_KINDS.get(phase.kind.name, EKS_PLAIN)
        either = [("eks.amazonaws.com/capacityType", managed), ("karpenter.sh/capacity-type", karpenter)]
        terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]} for key, value in either]
        needed = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        found["affinity"] = {"nodeAffinity": needed}
    tolerated: list[Yaml] = [{"key": stack(phase).resource, "operator": "Exists", "effect": "NoSchedule"}]
    spot = {"gcp": (GKE_SPOT, "true"), "azure": (AKS_SPOT, "spot")}.get(phase.provider)
    if spot and phase.kind.interruptible:
        tolerated.append({"key": spot[0], "operator": "Equal", "value": spot[1], "effect": "NoSchedule"})
    return found | {"tolerations": tolerated}
