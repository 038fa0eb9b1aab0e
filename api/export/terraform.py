"""Terraform in its JSON syntax: https://developer.hashicorp.com/terraform/language/syntax/json

The configuration is data, so no name can end a string; the two sequences that Terraform expands inside strings are
doubled. Each cloud has a module of its own.
"""

import json
from typing import Any

from api.export.handover import Handover, Phase, Wishes
from api.export.notes import again, heading
from api.export.refusal import need_cloud, need_no_slice
from api.export.terraform_aws import aws_resources
from api.export.terraform_azure import azure_resources
from api.export.terraform_gcp import gcp_resources

TOOL = "Terraform"
CLOUDS = {"aws": aws_resources, "gcp": gcp_resources, "azure": azure_resources}


def terraform(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as one `.tf.json`. Raises `UnusableInput` for own machines, TPU slices and what is not named."""
    need_no_slice(phase, TOOL)
    need_cloud(phase, TOOL, *CLOUDS)
    notes = {"//": [*heading(handover, phase), *again(phase), "Start: terraform init && terraform apply"]}
    found: dict[str, Any] = notes | CLOUDS[phase.provider](handover, phase, wishes)
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"
