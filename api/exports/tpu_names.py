"""Google's names for TPU slices: host software and GKE node labels."""

from gpuplan.api.exports.plan_handover import Phase
from gpuplan.api.exports.unsupported_features import refuse
from gpuplan.catalog.model.tpu_slices import tpu_slices

#: https://cloud.google.com/tpu/docs/runtimes: the software of a TPU host, by generation.
RUNTIMES = {
    "TPU-v2": "tpu-ubuntu2204-base",
    "TPU-v3": "tpu-ubuntu2204-base",
    "TPU-v4": "tpu-ubuntu2204-base",
    "TPU-v5e": "v2-alpha-tpuv5-lite",
    "TPU-v5p": "v2-alpha-tpuv5",
    "TPU-v6e": "v2-alpha-tpuv6e",
}
#: https://cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus: GKE's name of each generation.
GKE_NAMES = {
    "TPU-v4": "tpu-v4-podslice",
    "TPU-v5e": "tpu-v5-lite-podslice",
    "TPU-v5p": "tpu-v5p-slice",
    "TPU-v6e": "tpu-v6e-slice",
    "TPU-v7": "tpu7x",
}
GKE_GENERATION, GKE_TOPOLOGY = "cloud.google.com/gke-tpu-accelerator", "cloud.google.com/gke-tpu-topology"


def accelerator_type(phase: Phase) -> str:
    """Cloud TPU's name of the slice: `v5litepod-16` for `tpu-v5litepod-16`."""
    return phase.instance_type.removeprefix("tpu-")


def gke_labels(phase: Phase) -> dict[str, str]:
    """Node labels of the slice's hosts. Raises `UnusableInput` for slices that GKE does not have."""
    topology = next((tpu_slice.topology for tpu_slice in tpu_slices() if tpu_slice.name == phase.instance_type), None)
    name = GKE_NAMES.get(phase.accelerator.name)
    if name is None or topology is None:
        raise refuse(phase, f"GKE has no nodes of {phase.instance_type}; export it to gcloud")
    return {GKE_GENERATION: name, GKE_TOPOLOGY: topology}
