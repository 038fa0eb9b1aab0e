"""A script for the Azure CLI: https://learn.microsoft.com/cli/azure/vmss#az-vmss-create

One uniform scale set in one placement group, so that its machines share one InfiniBand fabric:
https://learn.microsoft.com/azure/virtual-machines/setup-infiniband. Host names end in the rank,
as six base-36 digits counted from 0.
"""

from gpuplan.api.exports.boot_script import AZURE_IMAGE, AZURE_ROLE, boot_lines, usual_image
from gpuplan.api.exports.file_comments import commented, heading
from gpuplan.api.exports.machine_lifecycle import (
    RESUME,
    SHARED,
    boot_file,
    credentials,
    exit_status,
    settings,
    user_data,
)
from gpuplan.api.exports.node_script import place, place_text
from gpuplan.api.exports.places_in_order import asks_in_order, order_notes, phases_to_try, start_in_order
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.shell_script import Expanded, command
from gpuplan.api.exports.tool_names import run_name, tags
from gpuplan.api.exports.unsupported_features import booked, need_cloud, refuse

TOOL = "the Azure CLI"
_RUNNING = "instanceView.statuses[?code=='PowerState/running' || code=='PowerState/starting']"
#: Commands that list the scale set of a run, and delete its resource group.
FUNCTIONS = [
    "machines_left() {",
    '  az vmss list-instances --resource-group "$RUN" --name "$NAME" --expand instanceView --output tsv \\',
    f'    --query "length([?{_RUNNING}])"',
    "}",
    "# shellcheck disable=SC2329",
    "teardown() {",
    "  local there",
    '  there="$(az group exists --name "$RUN")" || return 1',
    '  if [ "$there" = true ]; then az group delete --name "$RUN" --yes; fi',
    "}",
    'by_hand() { echo "  az group delete --name $RUN --yes"; }',
]
#: https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-placement-groups
MOST_IN_A_GROUP = 100


def az(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a script. Raises `UnusableInput` for other clouds and for more nodes than a placement group allows."""
    check_scale_set(phase, wishes, TOOL)
    name = run_name(handover, phase)
    phases = phases_to_try(handover, phase)
    usual = ":".join(AZURE_IMAGE)
    boot = [*rank_lines(name), *boot_lines(handover, phase, wishes, resume=RESUME)]
    lines = [
        *settings(handover, phase, wishes, name),
        f"NAME={name}",
        *FUNCTIONS,
        *exit_status(handover, wishes),
        *SHARED,
        *credentials(handover, phase, wishes),
        *_identity(handover, wishes),
        f'IMAGE="${{IMAGE:-{usual}}}"'
        if usual_image(phase)
        else f'IMAGE="${{IMAGE:?name an image with Docker and the driver of {phase.accelerator.name}}}"',
        *boot_file(boot),
        *user_data(handover, phase, wishes, _client(handover, wishes)),
        'SCOPE="/subscriptions/$(az account show --query id --output tsv)/resourceGroups/$RUN"',
    ]
    if not asks_in_order(handover, phase):
        lines += ["begin", *_created(handover, phase, wishes), "watch_run"]
    else:
        lines += start_in_order(
            handover, phases, wishes, where=lambda _: [], start=lambda tried: _created(handover, tried, wishes)
        )
    notes = [
        *heading(handover, phase, wishes),
        *order_notes(handover, phases),
        "Start: bash FILE. It runs until the run ends and then deletes the resource group; on a signal it does so at once.",
        "Keep it running (tmux, systemd-run). If it is killed, every machine still deletes itself when its part ends,",
        "which requires permission to assign roles (Owner, or User Access Administrator)",
        *(
            [
                "IDENTITY_ID is needed: the id of a managed identity that may write the checkpoints (Storage Blob Data Contributor)"
            ]
            if _needs_identity(handover, wishes)
            else []
        ),
    ]
    return "#!/bin/bash\n" + commented(notes) + "\n".join(lines) + "\n"


def _created(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    """The commands that start all machines, in a resource group of the run."""
    name = run_name(handover, phase)
    marked = [f"{key}={value}" for key, value in tags(handover, phase).items()]
    options: list[tuple[str, ...]] = [
        ("--resource-group", Expanded('"$RUN"'), "--name", name),
        ("--location", phase.region, *(("--zones", phase.zone) if phase.zone else ())),
        ("--orchestration-mode", "Uniform", "--single-placement-group", "true", "--disable-overprovision"),
        ("--vm-sku", phase.instance_type, "--instance-count", str(phase.nodes)),
        ("--computer-name-prefix", name),
        ("--image", Expanded('"$IMAGE"')),
        *_priority(phase),
        ("--admin-username", "gpuplan", "--generate-ssh-keys"),
        (
            "--assign-identity",
            "[system]",
            *((Expanded('"$IDENTITY_ID"'),) if _needs_identity(handover, wishes) else ()),
        ),
        ("--identity-role", AZURE_ROLE, "--identity-scope", Expanded('"$SCOPE"')),
        ("--custom-data", Expanded('"$WORK/user-data"')),
        ("--tags", *marked),
    ]
    group = ("az", "group", "create", "--name", Expanded('"$RUN"'), "--location", phase.region)
    return [command(*group, options=[("--tags", *marked)]), command("az", "vmss", "create", options=options)]


def _needs_identity(handover: Handover, wishes: Wishes) -> bool:
    where = place(handover, wishes)
    return where is not None and where.kind == "abfs"


def _identity(handover: Handover, wishes: Wishes) -> list[str]:
    """The managed identity that gives the machines access to the checkpoints, and its client id."""
    if not _needs_identity(handover, wishes):
        return []
    what = f"name the resource id of a managed identity that may write {place_text(handover, wishes)}"
    return [
        f': "${{IDENTITY_ID:?{what}}}"',
        'CLIENT_ID="$(az identity show --ids "$IDENTITY_ID" --query clientId --output tsv)"',
    ]


def _client(handover: Handover, wishes: Wishes) -> list[str]:
    """Selects the machine's identity for checkpoints by AZURE_CLIENT_ID, which Azure's libraries read."""
    if not _needs_identity(handover, wishes):
        return []
    return ['printf \'echo AZURE_CLIENT_ID=%s > "$BOX/credentials"\\n\' "$CLIENT_ID"']


def check_scale_set(phase: Phase, wishes: Wishes, tool: str) -> None:
    """Refuse phases that do not fit one scale set."""
    need_cloud(phase, tool, "azure")
    booked(phase, wishes)
    if phase.nodes > MOST_IN_A_GROUP:
        reason = f"{phase.nodes} nodes are more than the {MOST_IN_A_GROUP} that share one fabric on Azure"
        raise refuse(phase, f"{reason}; plan again with constraints.max_nodes")


def rank_lines(name: str) -> list[str]:
    """Rank and first node by the host names of a uniform scale set."""
    return ["NODE_RANK=$((36#${HOSTNAME: -6}))", f"MASTER_ADDR={name}000000"]


def _priority(phase: Phase) -> list[tuple[str, ...]]:
    """Options of spot machines: preempted ones are deleted, because deallocated ones still pay for disks."""
    if not phase.kind.interruptible:
        return [("--priority", "Regular")]
    return [("--priority", "Spot", "--eviction-policy", "Delete", "--max-price", "-1")]
