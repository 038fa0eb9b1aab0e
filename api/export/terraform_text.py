"""Text inside Terraform's strings: what it would expand is doubled, what is to be expanded is left alone."""

from collections.abc import Iterable
from typing import Any

from api.export.handover import Handover, Phase, Wishes
from api.export.lifecycle import is_elsewhere
from api.export.names import run_name
from api.export.on_node import place, place_text

#: Machines that ended by themselves are still in Terraform's state.
RESUME = "terraform destroy && terraform apply"


def literal(text: str) -> str:
    """Text that Terraform takes as it stands: https://developer.hashicorp.com/terraform/language/expressions/strings"""
    return text.replace("${", "$${").replace("%{", "%%{")


def plain_text(literal_text: str) -> str:
    """A literal as the text that it stands for."""
    return literal_text.replace("$${", "${").replace("%%{", "%{")


def script(lines: Iterable[str]) -> str:
    """A shell script as a literal."""
    return literal("\n".join(lines) + "\n")


def variable(description: str, *, default: str | None = None) -> dict[str, Any]:
    """An input variable of text, asked for unless it has a default."""
    return {"type": "string", "description": description} | ({} if default is None else {"default": default})


def machine_head(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """What a machine starts with before all else: the run's name, and log-ins for checkpoints in another cloud."""
    text = script(["#!/bin/bash", f'RUN="{run_name(handover, phase)}-$(date +%s)"', 'BOX="$(mktemp -d)"'])
    if is_elsewhere(handover, phase, wishes):
        text += "cat > \"$BOX/credentials\" <<'GPUPLAN_CREDENTIALS'\n${var.credentials}\nGPUPLAN_CREDENTIALS\n"
    return text


def log_ins(handover: Handover, phase: Phase, wishes: Wishes) -> dict[str, Any]:
    """The input that holds these log-ins, where they are needed."""
    if not is_elsewhere(handover, phase, wishes):
        return {}
    what = f"Lines KEY=VALUE that let rclone write to {place_text(handover, wishes)}"
    return {"credentials": variable(what) | {"sensitive": True}}


def is_kept_in(kind: str, handover: Handover, wishes: Wishes) -> bool:
    """Whether the checkpoints are in a bucket of this kind."""
    where = place(handover, wishes)
    return where is not None and where.kind == kind
