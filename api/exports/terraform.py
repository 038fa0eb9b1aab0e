"""Terraform in its JSON syntax: https://developer.hashicorp.com/terraform/language/syntax/json

The configuration is JSON, so no name can end a string; the two sequences that Terraform expands inside strings are
escaped. Every cloud has its own module.
"""

import json

from gpuplan.api.exports.file_comments import again, heading
from gpuplan.api.exports.node_script import PLACEHOLDER, place
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.terraform_aws import aws_resources
from gpuplan.api.exports.terraform_azure import azure_resources
from gpuplan.api.exports.terraform_gcp import gcp_resources
from gpuplan.api.exports.terraform_text import RESUME
from gpuplan.api.exports.unsupported_features import need_cloud, need_no_slice
from gpuplan.catalog.parsing.json_object import JsonObject

TOOL = "Terraform"
CLOUDS = {"aws": aws_resources, "gcp": gcp_resources, "azure": azure_resources}


def terraform(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as one `.tf.json`. Raises `UnusableInput` for owned machines, TPU slices and missing reservations."""
    need_no_slice(phase, TOOL)
    need_cloud(phase, TOOL, *CLOUDS)
    notes = [
        *heading(handover, phase, wishes),
        *again(phase),
        "Start: terraform init && { terraform apply || terraform destroy; }",
        "Every machine ends with its part of the run, and at the run limit. Afterwards, or to stop the run:",
        f"terraform destroy. Resume from the newest checkpoint: {RESUME}",
    ]
    module: JsonObject = {"//": notes} | CLOUDS[phase.provider](handover, phase, wishes)
    module["output"] = {"teardown": {"value": "terraform destroy"}, "resume": {"value": RESUME}}
    if place(handover, wishes) is None:
        module.setdefault("variable", {})["checkpoints"] = _missing()
    return json.dumps(module, indent=2, ensure_ascii=False) + "\n"


def _missing() -> JsonObject:
    """An input whose validation fails: nothing starts without a checkpoint location."""
    message = "There is no checkpoint location: give the job data.checkpoints, or export again with --checkpoints s3://bucket/path."
    return {
        "type": "string",
        "description": "Checkpoint location; this file was exported without one",
        "default": PLACEHOLDER,
        "validation": [{"condition": f'${{var.checkpoints != "{PLACEHOLDER}"}}', "error_message": message}],
    }
