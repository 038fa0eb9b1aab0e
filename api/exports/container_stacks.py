"""Container settings by accelerator stack: device options, default image, and card names."""

import re
from dataclasses import dataclass

from gpuplan.api.exports.plan_handover import Phase, Wishes
from gpuplan.api.exports.unsupported_features import refuse
from gpuplan.catalog.runtime.errors import UnusableInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """`resource` is the device name of the Kubernetes plugin, `docker` the options that pass devices to a container.

    `image` is the default container image; None if there is no common one.
    """

    resource: str
    docker: tuple[str, ...]
    image: str | None = None


#: PyTorch's images with CUDA 12.8 leave these out, those with 12.6 have them; neither has Kepler:
#: https://github.com/pytorch/pytorch/releases/tag/v2.8.0
OLDER = dict.fromkeys(("Maxwell", "Pascal", "Volta"), "pytorch/pytorch:2.8.0-cuda12.6-cudnn9-runtime") | {
    "Kepler": None
}
#: The part after the plus of `n1-standard-16+2xT4`, whose cards are requested separately.
_CARDS = re.compile(r"([1-9]\d?)x([A-Z]\d+)")
STACKS = {
    # https://github.com/NVIDIA/k8s-device-plugin, https://hub.docker.com/r/pytorch/pytorch
    "cuda": Stack(
        resource="nvidia.com/gpu", docker=("--gpus", "all"), image="pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime"
    ),
    # https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html
    "rocm": Stack(
        resource="amd.com/gpu", docker=("--device", "/dev/kfd", "--device", "/dev/dri"), image="rocm/pytorch:latest"
    ),
    # https://awsdocs-neuron.readthedocs-hosted.com/en/latest/containers/ : each device is mapped by its number
    "neuron": Stack(resource="aws.amazon.com/neuron", docker=("--privileged",)),
    # https://cloud.google.com/kubernetes-engine/docs/how-to/tpus
    "xla": Stack(resource="google.com/tpu", docker=("--privileged",)),
    # https://docs.habana.ai/en/latest/Installation_Guide/Additional_Installation/Docker_Installation.html
    "habana": Stack(resource="habana.ai/gaudi", docker=("--runtime", "habana", "--env", "HABANA_VISIBLE_DEVICES=all")),
}


def stack(phase: Phase) -> Stack:
    """The container settings of the phase's devices. Raises `UnusableInput` if none are known."""
    known = STACKS.get(phase.accelerator.stack)
    if known is None:
        raise refuse(phase, f"no container runtime is known for {phase.accelerator.name}")
    return known


def image(phase: Phase, wishes: Wishes) -> str:
    """The container image: the user's, else the default of the stack."""
    chosen = wishes.image or _usual(phase)
    if chosen is None:
        message = f"is missing: there is no default image for {phase.accelerator.name}; name the image with your code"
        raise UnusableInput.at("image", message=message)
    return chosen


def _usual(phase: Phase) -> str | None:
    """PyTorch's images with CUDA are for x86 alone: https://hub.docker.com/r/pytorch/pytorch/tags"""
    if phase.accelerator.stack != "cuda":
        return stack(phase).image
    return None if arm(phase) else OLDER.get(phase.accelerator.architecture, stack(phase).image)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards:
    """The cards that a machine of N1 gets: `count` of `name`, such as `T4`."""

    count: int
    name: str

    @property
    def resource(self) -> str:
        """As Google names them: https://cloud.google.com/compute/docs/gpus/add-gpus"""
        return f"nvidia-tesla-{self.name.lower()}"


def machine_and_cards(phase: Phase) -> tuple[str, Cards | None]:
    """The machine type, and its cards if requested separately. Raises `UnusableInput` for malformed names."""
    machine, plus, cards = phase.instance_type.partition("+")
    if not plus or phase.provider == "local":
        return phase.instance_type, None
    match = _CARDS.fullmatch(cards)
    if match is None or phase.provider != "gcp":
        raise refuse(phase, f"{phase.instance_type} is not a machine with cards such as n1-standard-16+2xT4")
    return machine, Cards(count=int(match[1]), name=match[2])


def arm(phase: Phase) -> bool:
    """Whether the node's processors are Arm: Grace beside the GPU, or Graviton with T4g."""
    return phase.accelerator.name.startswith(("GB", "GH")) or phase.accelerator.name == "T4g"
