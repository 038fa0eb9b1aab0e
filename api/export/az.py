"""A script for the Azure CLI: https://learn.microsoft.com/cli/azure/vmss#az-vmss-create

One scale set of the uniform kind in one placement group, which is what puts its machines on one InfiniBand fabric:
https://learn.microsoft.com/azure/virtual-machines/setup-infiniband. The host names end in a number of six digits to
the base 36, counted from 0, and so say the rank.
"""

from api.export.boot import AZURE_IMAGE, boot_lines, usual_image
from api.export.handover import Handover, Phase, Wishes
from api.export.names import run_name, tags
from api.export.notes import again, commented, heading
from api.export.refusal import booked, need_cloud, refuse
from api.export.shell import Expanded, command, here_document

TOOL = "the Azure CLI"
#: https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-placement-groups
MOST_IN_A_GROUP = 100


def az(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a script. Raises `UnusableInput` for other clouds and for more nodes than one placement group takes."""
    check_scale_set(phase, wishes, TOOL)
    name = run_name(handover, phase)
    marked = [f"{key}={value}" for key, value in tags(handover, phase).items()]
    group = ("--name", name, "--location", phase.region)
    options: list[tuple[str, ...]] = [
        ("--resource-group", name, "--name", name),
        ("--location", phase.region, *(("--zones", phase.zone) if phase.zone else ())),
        ("--orchestration-mode", "Uniform", "--single-placement-group", "true", "--disable-overprovision"),
        ("--vm-sku", phase.instance_type, "--instance-count", str(phase.nodes)),
        ("--computer-name-prefix", name),
        ("--image", Expanded('"$IMAGE"')),
        *_priority(phase),
        ("--admin-username", "gpuplan", "--generate-ssh-keys"),
        ("--custom-data", Expanded('"$WORK/boot"')),
        ("--tags", *marked),
    ]
    usual = ":".join(AZURE_IMAGE)
    lines = [
        "set -euo pipefail",
        f'IMAGE="${{IMAGE:-{usual}}}"'
        if usual_image(phase)
        else f'IMAGE="${{IMAGE:?name an image with Docker and the driver of {phase.accelerator.name}}}"',
        'WORK="$(mktemp -d)"',
        "trap 'rm -rf \"$WORK\"' EXIT",
        *here_document('"$WORK/boot"', ["#!/bin/bash", *rank_lines(name), *boot_lines(handover, phase, wishes)]),
        command("az", "group", "create", *group, options=[("--tags", *marked)]),
        command("az", "vmss", "create", options=options),
    ]
    notes = [*heading(handover, phase), *again(phase), f"Start: bash FILE; end it all: az group delete --name {name}"]
    return "#!/bin/bash\n" + commented(notes) + "\n".join(lines) + "\n"


def check_scale_set(phase: Phase, wishes: Wishes, tool: str) -> None:
    """Refuse what one scale set of Azure cannot be."""
    need_cloud(phase, tool, "azure")
    booked(phase, wishes)
    if phase.nodes > MOST_IN_A_GROUP:
        reason = f"{phase.nodes} nodes are more than the {MOST_IN_A_GROUP} that share one fabric on Azure"
        raise refuse(phase, f"{reason}; plan again with constraints.max_nodes")


def rank_lines(name: str) -> list[str]:
    """Rank and first node by the host names of a uniform scale set."""
    return ["NODE_RANK=$((36#${HOSTNAME: -6}))", f"MASTER_ADDR={name}000000"]


def _priority(phase: Phase) -> list[tuple[str, ...]]:
    """Machines that are taken away keep their number and come back when there is room: hence deallocated, not deleted."""
    if not phase.kind.interruptible:
        return [("--priority", "Regular")]
    return [("--priority", "Spot", "--eviction-policy", "Deallocate", "--max-price", "-1")]
