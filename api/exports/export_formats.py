"""All export formats by name, and the export of phases to files."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuplan.api.exports.aws_cli import aws_cli
from gpuplan.api.exports.azure_cli import az
from gpuplan.api.exports.docker_command import docker
from gpuplan.api.exports.dstack import dstack
from gpuplan.api.exports.focus import focus
from gpuplan.api.exports.gcloud import gcloud
from gpuplan.api.exports.handover_reader import read_handover
from gpuplan.api.exports.jobset import jobset
from gpuplan.api.exports.kubernetes import kubernetes
from gpuplan.api.exports.lambda_api import lambda_api
from gpuplan.api.exports.nebius_cli import nebius_cli
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.runpod_api import runpod_api
from gpuplan.api.exports.skypilot import skypilot
from gpuplan.api.exports.slurm import slurm
from gpuplan.api.exports.terraform import terraform
from gpuplan.api.exports.tool_names import run_name
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput

YAML, SCRIPT, JSON, CSV = "application/yaml", "text/x-shellscript", "application/json", "text/csv"
Write = Callable[[Handover, Phase, Wishes], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PerPhase:
    """A format with one phase per file; `own_folder` if its tool reads all files of a folder together."""

    write: Write
    media_type: str
    suffix: str
    own_folder: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """One file: text, media type, and a name of letters, digits, dashes and dots. `phase` is None for the whole plan."""

    text: str
    media_type: str
    file_name: str
    phase: int | None
    own_folder: bool = False


PER_PHASE = {
    "skypilot": PerPhase(write=skypilot, media_type=YAML, suffix="sky.yaml"),
    "dstack": PerPhase(write=dstack, media_type=YAML, suffix="dstack.yml"),
    "terraform": PerPhase(write=terraform, media_type=JSON, suffix="tf.json", own_folder=True),
    "kubernetes": PerPhase(write=kubernetes, media_type=YAML, suffix="k8s.yaml"),
    "jobset": PerPhase(write=jobset, media_type=YAML, suffix="jobset.yaml"),
    "slurm": PerPhase(write=slurm, media_type=SCRIPT, suffix="sbatch"),
    "aws-cli": PerPhase(write=aws_cli, media_type=SCRIPT, suffix="aws.sh"),
    "gcloud": PerPhase(write=gcloud, media_type=SCRIPT, suffix="gcloud.sh"),
    "az": PerPhase(write=az, media_type=SCRIPT, suffix="az.sh"),
    "lambda": PerPhase(write=lambda_api, media_type=SCRIPT, suffix="lambda.sh"),
    "nebius": PerPhase(write=nebius_cli, media_type=SCRIPT, suffix="nebius.sh"),
    "runpod": PerPhase(write=runpod_api, media_type=SCRIPT, suffix="runpod.sh"),
    "docker": PerPhase(write=docker, media_type=SCRIPT, suffix="docker.sh"),
}
#: Formats of the whole plan, which do not start machines.
WHOLE = ("focus", "json")
FORMATS = (*PER_PHASE, *WHOLE)


def exports(
    document: Mapping[str, Any], *, to: str, phase: int | None = None, wishes: Wishes | None = None
) -> tuple[Exported, ...]:
    """The files of an answer of `plan` in one format: one per phase, or only the given phase.

    Raises `UnusableInput` for an unknown format or phase, an invalid plan, and features that the tool lacks.
    """
    return _exports(document, to=to, phase=phase, wishes=wishes, single=False)


def one_export(
    document: Mapping[str, Any], *, to: str, phase: int | None = None, wishes: Wishes | None = None
) -> Exported:
    """The single file of an export; `phase` is required for several phases. Raises `UnusableInput`."""
    return _exports(document, to=to, phase=phase, wishes=wishes, single=True)[0]


def _exports(
    document: Mapping[str, Any], *, to: str, phase: int | None, wishes: Wishes | None, single: bool
) -> tuple[Exported, ...]:
    if to not in FORMATS:
        raise UnusableInput.at("to", message=f"{shown(to)} is not accepted; write one of {', '.join(FORMATS)}")
    handover = read_handover(document)
    if to in WHOLE:
        return (_whole(document, handover, to, phase),)
    count = len(handover.phases)
    if phase is None and single and count > 1:
        message = f"is missing: every phase has its own file, because phases start one after another; give 1 to {count}"
        raise UnusableInput.at("phase", message=message)
    if phase is not None and not 1 <= phase <= count:
        message = (
            f"{shown(phase)} is not accepted; the plan has {'one phase, 1' if count == 1 else f'phases 1 to {count}'}"
        )
        raise UnusableInput.at("phase", message=message)
    asked = [candidate for candidate in handover.phases if phase in (None, candidate.number)]
    return tuple(exported_phase(handover, one, to, wishes or Wishes()) for one in asked)


def exported_phase(handover: Handover, phase: Phase, to: str, wishes: Wishes) -> Exported:
    """One phase in a format of `PER_PHASE`. Raises `UnusableInput` for features that the tool lacks."""
    made = PER_PHASE[to]
    name = f"{run_name(handover, phase)}.{made.suffix}"
    text = made.write(handover, phase, wishes)
    return Exported(
        text=text, media_type=made.media_type, file_name=name, phase=phase.number, own_folder=made.own_folder
    )


def _whole(document: Mapping[str, Any], handover: Handover, to: str, phase: int | None) -> Exported:
    if phase is not None:
        raise UnusableInput.at("phase", message=f"belongs to formats that start a phase; leave it out for {to}")
    if to == "focus":
        return Exported(text=focus(handover), media_type=CSV, file_name=f"{handover.plan_id}.focus.csv", phase=None)
    # As it was read: an answer of another release keeps its own keys.
    try:
        text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    except ValueError:
        raise UnusableInput.at("plan", message="has a figure that is not finite, and no plan has one") from None
    return Exported(text=text, media_type=JSON, file_name=f"{handover.plan_id}.json", phase=None)
