"""How tools name the machines of neoclouds, as data: SkyPilot 0.14, dstack 0.22, and the providers' own interfaces.

SkyPilot's and dstack's names are those of their catalogues (skypilot-org/skypilot-catalog v8, dstackai/gpuhunt).
"""

import re

from gpuplan.api.exports.plan_handover import Phase, seller
from gpuplan.api.exports.unsupported_features import refuse
from gpuplan.catalog.model.regions import is_place_unknown

#: Providers whose machines SkyPilot starts by gpuplan's name, with the character in place of a blank.
SKYPILOT = {"lambda": "", "nebius": "_", "oci": "", "verda": ""}
#: Those whose clusters SkyPilot does not end by itself (https://github.com/skypilot-org/skypilot, sky/clouds/nebius.py), so
#: that only managed jobs end them, and those that it starts one by one (sky/clouds/verda.py).
SKYPILOT_JOBS_ONLY, SKYPILOT_ALONE = {"nebius"}, {"verda"}
#: The backends of dstack that start machines by gpuplan's name, and whether dstack joins several of them.
DSTACK = {
    "crusoe": False,
    "digitalocean": False,
    "lambda": False,
    "nebius": True,
    "oci": True,
    "runpod": False,
    "verda": False,
}
#: `NVIDIA H100 80GB HBM3 x8`, and with `community` a machine of RunPod's community cloud.
_PODS = re.compile(r"(?P<gpu>.+) x(?P<count>\d+)(?P<community> community)?")
#: `gpu-h100-sxm 8gpu-128vcpu-1600gb`: a platform of Nebius and its preset.
_PRESET = re.compile(r"(?P<platform>[a-z0-9-]+) (?P<preset>[a-z0-9-]+)")
_API_NAME = re.compile(r"[A-Za-z0-9._-]+")


def skypilot_name(phase: Phase) -> str:
    """The name of a neocloud's machine in SkyPilot. Raises `UnusableInput` if SkyPilot does not start it."""
    name = phase.instance_type.replace(" ", SKYPILOT[phase.provider] or " ")
    _need_name(phase, name)
    if phase.nodes > 1 and phase.provider in SKYPILOT_ALONE:
        raise refuse(phase, f"SkyPilot joins no machines of {seller(phase.provider)}; plan again with max_nodes: 1")
    return name


def dstack_name(phase: Phase) -> str:
    """The name of a neocloud's machine in dstack. Raises `UnusableInput` if dstack does not start it."""
    if phase.nodes > 1 and not DSTACK[phase.provider]:
        raise refuse(phase, f"dstack joins no machines of {seller(phase.provider)}; plan again with max_nodes: 1")
    if phase.provider == "runpod":
        return runpod_gpu(phase)[0]
    if phase.provider == "nebius":
        return " ".join(nebius_preset(phase))
    _need_name(phase, phase.instance_type)
    return phase.instance_type


def runpod_gpu(phase: Phase) -> tuple[str, int, str]:
    """RunPod's id of the GPU, how many of them, and the cloud. Raises `UnusableInput` for another name."""
    match = _PODS.fullmatch(phase.instance_type)
    if match is None:
        raise refuse(phase, f"{phase.instance_type} is no GPU of RunPod and a number, such as NVIDIA L40S x4")
    return match["gpu"], int(match["count"]), "COMMUNITY" if match["community"] else "SECURE"


def nebius_preset(phase: Phase) -> tuple[str, str]:
    """The platform and the preset. Raises `UnusableInput` for another name."""
    match = _PRESET.fullmatch(phase.instance_type)
    if match is None:
        raise refuse(phase, f"{phase.instance_type} is no platform of Nebius and a preset")
    return match["platform"], match["preset"]


def stated_region(phase: Phase) -> str:
    """The region, empty where the provider does not state one."""
    return "" if is_place_unknown(phase.region) else phase.region


def _need_name(phase: Phase, name: str) -> None:
    if not _API_NAME.fullmatch(name):
        raise refuse(phase, f"{phase.instance_type} is the name of a price, not of a machine; start one by hand")
