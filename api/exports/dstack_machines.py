"""Machine types that the backends of dstack 0.22.5 accept, as data.

A type supported by a later release is one more row.
"""

import re

from gpuplan.api.exports.container_stacks import machine_and_cards
from gpuplan.api.exports.plan_handover import Phase
from gpuplan.api.exports.unsupported_features import refuse

RELEASE = "0.22.5"
#: https://github.com/dstackai/dstack: the filters of the backends `aws`, `azure` and `gcp`.
STARTED = {
    "aws": re.compile(r"(p6-b300|p6-b200|p5|p5e|p5en|p4d|p4de|g7|g7e|g6|g6e|gr6|g5|g4dn)\..+"),
    "azure": re.compile(
        r"Standard_(NC\d+s_v3|NC\d+as_T4_v3|ND\d+rs_v2|NV\d+adm?s_A10_v5|NC\d+ads_A100_v4|NC\d+adi?s_H100_v5"
        r"|ND\d+asr_v4|ND\d+amsr_A100_v4|ND\d+isr_H200_v5)"
    ),
    # Other Google types are supported unless their card is in `LEFT_OUT`.
    "gcp": re.compile(r"(?!tpu).+"),
}
LEFT_OUT = ("K80", "P4", "P100")
#: TPUs of one host; https://github.com/dstackai/gpuhunt has the sizes.
TPUS = re.compile(r"tpu-(v2-8|v3-8|v5litepod-[148]|v5p-8|v6e-[148])")


def need_started(phase: Phase) -> str:
    """The machine type. Raises `UnusableInput` for types that dstack does not offer."""
    if phase.is_slice:
        if not TPUS.fullmatch(phase.instance_type):
            why = f"dstack {RELEASE} starts TPUs of one host, and {phase.instance_type} is not one of them"
            raise refuse(phase, f"{why}; export it to gcloud or skypilot")
        return phase.instance_type
    machine, cards = machine_and_cards(phase)
    if not STARTED[phase.provider].fullmatch(phase.instance_type) or (cards and cards.name in LEFT_OUT):
        instead = {"aws": "aws-cli", "azure": "az", "gcp": "gcloud"}[phase.provider]
        raise refuse(
            phase, f"dstack {RELEASE} does not start {phase.instance_type}; export it to {instead} or skypilot"
        )
    return machine
