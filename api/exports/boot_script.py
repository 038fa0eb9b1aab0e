"""The boot script of a cloud machine: runs the command in a container with all devices.

The machine's image has a driver and Docker; the container has the training code. Earlier lines set the rank
(`NODE_RANK`) and the address of the first node (`MASTER_ADDR`).
"""

from gpuplan.api.exports.container_stacks import arm, image, stack
from gpuplan.api.exports.launch_command import launch
from gpuplan.api.exports.node_script import SAVE_SECONDS, directory, is_mounted, script_lines, variables
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.run_limit import limit_seconds
from gpuplan.api.exports.shell_script import Expanded, command, here_document
from gpuplan.catalog.runtime.errors import UnusableInput

#: https://docs.aws.amazon.com/dlami/latest/devguide/ : driver, Docker and the container toolkit, by processor.
AMI_PARAMETER = "/aws/service/deeplearning/ami/{arch}/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"
#: Generations without support in the open driver of that image:
#: https://github.com/NVIDIA/open-gpu-kernel-modules supports Turing and later.
WITHOUT_OPEN_DRIVER = ("Kepler", "Maxwell", "Pascal", "Volta")
#: EC2 accepts 16 KiB; the lines with rank and address are below a tenth of that.
#: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html
MOST_USER_DATA = 14 * 1024
#: https://cloud.google.com/deep-learning-vm/docs/images
GCP_IMAGE = ("deeplearning-platform-release", "common-cu128-ubuntu-2204-nvidia-570")
#: https://learn.microsoft.com/azure/virtual-machines/azure-hpc-vm-images
AZURE_IMAGE = ("microsoft-dsvm", "ubuntu-hpc", "2204", "latest")
#: https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token and
#: https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-set-vms/delete
AZURE_END = (
    "end_machine() {",
    "  local token machine asked=http://169.254.169.254/metadata",
    '  token="$(curl -sS -H Metadata:true "$asked/identity/oauth2/token?api-version=2018-02-01&resource=https://management.azure.com/")"',
    '  token="${token#*\\"access_token\\":\\"}"',
    '  machine="$(curl -sS -H Metadata:true "$asked/instance/compute/resourceId?api-version=2021-02-01&format=text")"',
    '  curl -sS -X DELETE -H "Authorization: Bearer ${token%%\\"*}" "https://management.azure.com$machine?api-version=2024-07-01"',
    "}",
)
#: Role that lets a machine delete itself, limited to the resource group of its run.
AZURE_ROLE = "Virtual Machine Contributor"


def usual_image(phase: Phase) -> bool:
    """Whether the cloud's default image for NVIDIA devices fits the machine; only Amazon has a named one for Arm."""
    if arm(phase) and phase.provider != "aws":
        return False
    return phase.accelerator.stack == "cuda" and phase.accelerator.architecture not in WITHOUT_OPEN_DRIVER


def ec2_boot_lines(handover: Handover, phase: Phase, wishes: Wishes, *, resume: str) -> list[str]:
    """The boot lines for EC2. Raises `UnusableInput` at `command` if they exceed the limit of user data."""
    lines = boot_lines(handover, phase, wishes, resume=resume)
    if len("\n".join(lines).encode()) > MOST_USER_DATA:
        message = f"is too long: the user data of an EC2 instance has at most {MOST_USER_DATA:,} bytes; put the command into a script"
        raise UnusableInput.at("command", message=message)
    return lines


def boot_lines(handover: Handover, phase: Phase, wishes: Wishes, *, resume: str) -> list[str]:
    """Lines of bash that run the command once `RUN`, `BOX`, `NODE_RANK` and `MASTER_ADDR` are set, and end the machine.

    The machine ends with its part of the run, and at the run limit in any case.
    """
    return [
        "set -euo pipefail",
        *_end(phase, limit_seconds(handover, phase, wishes)),
        "trap end_machine EXIT",
        *(
            [
                'if [ -d /opt/dlami/nvme ]; then mkdir /opt/dlami/nvme/gpuplan; ln -s /opt/dlami/nvme/gpuplan "$BOX/local"; fi'
            ]
            if phase.provider == "aws" and not is_mounted(handover, wishes)
            else []
        ),
        *container_lines(handover, phase, wishes, resume=resume),
    ]


def container_lines(handover: Handover, phase: Phase, wishes: Wishes, *, resume: str) -> list[str]:
    """Lines of bash that run the command in a container; the last one is `docker run`."""
    checkpoint_directory = directory(handover, phase, wishes)
    folder = checkpoint_directory if is_mounted(handover, wishes) else '"$BOX"/local'
    environment = variables(handover, phase, wishes, resume=resume)
    options = [
        ("--name", "gpuplan", "--network", "host", "--ipc", "host", "--ulimit", "memlock=-1"),
        ("--stop-timeout", str(SAVE_SECONDS)),
        stack(phase).docker,
        (Expanded('"${FABRIC[@]}"'),),
        ("--volume", Expanded('"$BOX:/gpuplan:ro"'), "--volume", Expanded(f"{folder}:{checkpoint_directory}")),
        ("--env-file", Expanded('"$BOX/credentials"')),
        *(("--env", f"{name}={value}") for name, value in environment.items()),
        ("--env", Expanded('"GPUPLAN_NODE=$NODE_RANK"'), "--env", Expanded('"GPUPLAN_RUN=$RUN"')),
        (image(phase, wishes), "bash", "/gpuplan/run-on-node.sh"),
        tuple(launch(phase, wishes, rank=Expanded('"$NODE_RANK"'), address=Expanded('"$MASTER_ADDR"'))),
    ]
    return [
        'mkdir -p "$BOX/local"',
        'touch "$BOX/credentials"',
        *here_document('"$BOX/run-on-node.sh"', script_lines(), mark="GPUPLAN_ON_NODE"),
        "FABRIC=()",
        "if [ -d /dev/infiniband ]; then FABRIC=(--device /dev/infiniband); fi",
        "docker rm --force gpuplan >/dev/null 2>&1 || true",
        command("docker", "run", options=options),
    ]


def _end(phase: Phase, limit: int) -> list[str]:
    """`end_machine`, and the run limit.

    On EC2 a shutdown terminates the instance, as requested at its start. On Compute Engine it stops the charges, and the
    instance is deleted at the limit. Azure keeps charging, so there the machine deletes itself by the role of its
    identity: https://learn.microsoft.com/azure/virtual-machines/states-billing
    """
    if phase.provider != "azure":
        return [f"shutdown -h +{limit // 60}", "end_machine() { shutdown -h now; }"]
    return [*AZURE_END, f"(sleep {limit} && end_machine) > /dev/null 2>&1 &"]
