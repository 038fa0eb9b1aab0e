"""Escapes text for Terraform strings, except intended expressions."""

from collections.abc import Iterable

from gpuplan.api.exports.machine_lifecycle import is_elsewhere
from gpuplan.api.exports.node_script import place, place_text
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.tool_names import run_name
from gpuplan.catalog.parsing.json_object import JsonObject

#: Machines that ended by themselves are still in Terraform's state.
RESUME = "terraform destroy && terraform apply"


def literal(text: str) -> str:
    """Text escaped so that Terraform takes it literally: https://developer.hashicorp.com/terraform/language/expressions/strings"""
    return text.replace("${", "$${").replace("%{", "%%{")


def plain_text(literal_text: str) -> str:
    """The text of a literal."""
    return literal_text.replace("$${", "${").replace("%%{", "%{")


def script(lines: Iterable[str]) -> str:
    """A shell script as a literal."""
    return literal("\n".join(lines) + "\n")


def variable(description: str, *, default: str | None = None) -> JsonObject:
    """A text input variable, required unless it has a default."""
    return {"type": "string", "description": description} | ({} if default is None else {"default": default})


def machine_head(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The first lines of the user data: the run's name, and credentials for checkpoints in another cloud."""
    text = script(["#!/bin/bash", f'RUN="{run_name(handover, phase)}-$(date +%s)"', 'BOX="$(mktemp -d)"'])
    if is_elsewhere(handover, phase, wishes):
        text += "cat > \"$BOX/credentials\" <<'GPUPLAN_CREDENTIALS'\n${var.credentials}\nGPUPLAN_CREDENTIALS\n"
    return text


def log_ins(handover: Handover, phase: Phase, wishes: Wishes) -> JsonObject:
    """The input with these credentials, if needed."""
    if not is_elsewhere(handover, phase, wishes):
        return {}
    what = f"Lines KEY=VALUE that let rclone write to {place_text(handover, wishes)}"
    return {"credentials": variable(what) | {"sensitive": True}}


def is_stored_in(kind: str, handover: Handover, wishes: Wishes) -> bool:
    """Whether the checkpoints are in a bucket of this kind."""
    where = place(handover, wishes)
    return where is not None and where.kind == kind
