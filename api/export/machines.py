"""How the machines of each stack are given to a container, and with which image they start."""

from dataclasses import dataclass

from api.export.handover import Phase, Wishes
from api.export.refusal import refuse
from catalog.errors import UnusableInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """`resource` is what a Kubernetes device plugin calls a device, `docker` the options that hand devices over.

    `image` is the container that runs the command unless the user names one; None where there is no usual one.
    """

    resource: str
    docker: tuple[str, ...]
    image: str | None = None


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
    # https://docs.habana.ai/en/latest/Installation_Guide/Additional_Installation/Docker_Installation.html
    "habana": Stack(resource="habana.ai/gaudi", docker=("--runtime", "habana", "--env", "HABANA_VISIBLE_DEVICES=all")),
}


def stack(phase: Phase) -> Stack:
    """How the phase's devices reach a container. Raises `UnusableInput` for those that no container is known for."""
    found = STACKS.get(phase.accelerator.stack)
    if found is None:
        raise refuse(phase, f"no container runtime is known for {phase.accelerator.name}")
    return found


def image(phase: Phase, wishes: Wishes) -> str:
    """The container image: the user's, else the usual one of the stack."""
    found = wishes.image or stack(phase).image
    if found is None:
        message = f"is missing: there is no usual image for {phase.accelerator.name}; name the one with your code"
        raise UnusableInput.at("image", message=message)
    return found


def arm(phase: Phase) -> bool:
    """Whether the node's processors are Arm: Grace beside the GPU, or Graviton with T4g."""
    return phase.accelerator.name.startswith(("GB", "GH")) or phase.accelerator.name == "T4g"
