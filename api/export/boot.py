"""What a cloud machine does when it has started: run the command in a container, on all its devices.

The machine's image has a driver and Docker; the container has the training code. Which rank a machine is and where the
first one stands is said by lines that come before, `NODE_RANK` and `MASTER_ADDR`.
"""

from api.export.handover import Handover, Phase, Wishes
from api.export.launcher import environment, launch
from api.export.machines import arm, image, stack
from api.export.shell import Expanded, command
from catalog.errors import UnusableInput

#: https://docs.aws.amazon.com/dlami/latest/devguide/ : driver, Docker and the container toolkit, by processor.
AMI_PARAMETER = "/aws/service/deeplearning/ami/{arch}/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"
#: Generations that the open driver of that image does not know:
#: https://github.com/NVIDIA/open-gpu-kernel-modules supports Turing and later.
WITHOUT_OPEN_DRIVER = ("Kepler", "Maxwell", "Pascal", "Volta")
#: EC2 takes 16 KiB; the lines that say rank and address are below a tenth of that.
#: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html
MOST_USER_DATA = 14 * 1024
#: https://cloud.google.com/deep-learning-vm/docs/images
GCP_IMAGE = ("deeplearning-platform-release", "common-cu128-ubuntu-2204-nvidia-570")
#: https://learn.microsoft.com/azure/virtual-machines/azure-hpc-vm-images
AZURE_IMAGE = ("microsoft-dsvm", "ubuntu-hpc", "2204", "latest")


def usual_image(phase: Phase) -> bool:
    """Whether the cloud's own image for NVIDIA's devices fits the machine; Amazon alone has one for Arm under its name."""
    if arm(phase) and phase.provider != "aws":
        return False
    return phase.accelerator.stack == "cuda" and phase.accelerator.architecture not in WITHOUT_OPEN_DRIVER


def ec2_boot_lines(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    """The same lines where they fit into the user data of EC2. Raises `UnusableInput` at `command` where they do not."""
    lines = boot_lines(handover, phase, wishes)
    if len("\n".join(lines).encode()) > MOST_USER_DATA:
        message = f"is too long: what an EC2 instance starts with has {MOST_USER_DATA:,} bytes; put it into a script"
        raise UnusableInput.at("command", message=message)
    return lines


def boot_lines(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    """Lines of bash that start the command, once `NODE_RANK` and `MASTER_ADDR` are set."""
    options = [
        ("--detach", "--name", "gpuplan", "--network", "host", "--ipc", "host", "--ulimit", "memlock=-1"),
        stack(phase).docker,
        (Expanded('"${FABRIC[@]}"'),),
        *(("--env", f"{name}={value}") for name, value in environment(handover, phase).items()),
        (image(phase, wishes),),
        tuple(launch(phase, wishes, rank=Expanded('"$NODE_RANK"'), address=Expanded('"$MASTER_ADDR"'))),
    ]
    return [
        "set -euo pipefail",
        "FABRIC=()",
        "if [ -d /dev/infiniband ]; then FABRIC=(--device /dev/infiniband); fi",
        "docker rm --force gpuplan >/dev/null 2>&1 || true",
        command("docker", "run", options=options),
    ]
