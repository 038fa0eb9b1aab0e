"""Terraform in its JSON syntax: https://developer.hashicorp.com/terraform/language/syntax/json

The configuration is data, so no name can end a string; the two sequences that Terraform expands inside strings are
doubled. Each cloud has a module of its own.
"""

import json
from typing import Any

from api.export.handover import Handover, Phase, Wishes
from api.export.notes import again, heading
from api.export.on_node import PLACEHOLDER, place
from api.export.refusal import need_cloud, need_no_slice
from api.export.terraform_aws import aws_resources
from api.export.terraform_azure import azure_resources
from api.export.terraform_gcp import gcp_resources
from api.export.terraform_text import RESUME

TOOL = "Terraform"
CLOUDS = {"aws": aws_resources, "gcp": gcp_resources, "azure": azure_resources}


def terraform(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as one `.tf.json`. Raises `UnusableInput` for own machines, TPU slices and what is not named."""
    need_no_slice(phase, TOOL)
    need_cloud(phase, TOOL, *CLOUDS)
    notes = [
        *heading(handover, phase, wishes),
        *again(phase),
        "Start: terraform init && { terraform apply || terraform destroy; }",
        "Each machine ends by itself when its part of the run does, and at the run limit. Once it has, or to stop it:",
        f"terraform destroy. To go on from the newest checkpoint: {RESUME}",
    ]
    found: dict[str, Any] = {"//": notes} | CLOUDS[phase.provider](handover, phase, wishes)
    found["output"] = {"teardown": {"value": "terraform destroy"}, "resume": {"value": RESUME}}
    if place(handover, wishes) is None:
        found.setdefault("variable", {})["checkpoints"] = _missing()
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def _missing() -> dict[str, Any]:
    """An input that refuses to plan: nothing starts without a place for checkpoints."""
    message = "There is no place for checkpoints: give the job data.checkpoints, or export again with --checkpoints s3://bucket/path."
    return {
        "type": "string",
        "description": "Where checkpoints are kept; this file was exported without such a place",
        "default": PLACEHOLDER,
        "validation": [{"condition": f'${{var.checkpoints != "{PLACEHOLDER}"}}', "error_message": message}],
    }
