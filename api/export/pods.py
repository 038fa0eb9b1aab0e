"""The pod that runs on every node of a phase, as Kubernetes has it, for Jobs and JobSets alike.

Nodes are chosen by the labels that the clouds put on them, sources beside each. Own machines have none that gpuplan
knows, so there the pod asks for its devices alone.
"""

from typing import Any

from api.export.handover import Handover, Phase, Wishes
from api.export.launcher import PORT, environment, launch
from api.export.machines import image, machine_and_cards, stack
from api.export.names import labels
from api.export.refusal import booked, need_cloud
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


def pod_template(handover: Handover, phase: Phase, wishes: Wishes, *, address: str, subdomain: str | None) -> Yaml:
    """The template of a pod that finds the first one at `address`. Raises `UnusableInput` for what no pod can be."""
    need_cloud(phase, "Kubernetes", "aws", "gcp", "azure", "local")
    reservation = booked(phase, wishes)
    words = launch(phase, wishes, rank=Expanded("$(JOB_COMPLETION_INDEX)"), address=address)
    count = {stack(phase).resource: str(phase.devices)}
    container: Yaml = {
        "name": "train",
        "image": image(phase, wishes),
        "command": [str(each) if isinstance(each, Expanded) else _literal(each) for each in words],
        "env": [{"name": name, "value": _literal(value)} for name, value in environment(handover, phase).items()],
        "ports": [{"name": "rendezvous", "containerPort": PORT}],
        "resources": {"limits": dict(count), "requests": dict(count)},
        "volumeMounts": [{"name": "shared-memory", "mountPath": SHARED_MEMORY}],
    }
    spec: Yaml = {
        "restartPolicy": "Never",
        **({"subdomain": subdomain} if subdomain else {}),
        **_placed(phase, reservation),
        "containers": [container],
        "volumes": [{"name": "shared-memory", "emptyDir": {"medium": "Memory"}}],
    }
    return {"metadata": {"labels": labels(handover, phase)}, "spec": spec}


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
