"""Quotas as the lines of a settings file, with what was not learned as comments."""

import json

from gpuplan.api.presentation.text_formatting import plain
from gpuplan.api.schemas.quota_answers import QuotasAnswer
from gpuplan.planner.model.wire import wire

#: What the lines of a provider do not say.
NOTES = {
    "aws": "# aws: vCPUs by Service Quotas. Local Zones are not limited; Capacity Blocks count as on demand here.",
    "gcp": (
        "# gcp: GPUs by Compute Engine and Cloud Quotas. Superchips (A4X) and TPUs are in neither list and are not limited "
        "here: see Cloud TPU under IAM, Quotas."
    ),
    "azure": "# azure: vCPUs by family and region. Families that are not listed here are limited by those of the region.",
}


def quota_lines(answer: QuotasAnswer) -> str:
    """A settings file: when the quotas were read, what was not learned, and the list."""
    providers = dict.fromkeys(row.provider for row in answer.quotas)
    lines = [
        f"# What the account may use at once, as its cloud stated at {wire(answer.meta.read_at)}; running machines count too.",
        *(NOTES[provider] for provider in providers),
        *(
            f"# {row.provider} {row.region}: as read at {wire(row.read_at)}; gpuplan quotas --fresh reads again"
            for row in answer.meta.reused
        ),
        *(f"# not learned: {row.provider} {row.region}: {row.reason}" for row in answer.not_learned),
        "quotas:",
        # JSON is YAML, and quotes every text.
        *(f"  - {json.dumps(wire(quota))}" for quota in answer.quotas),
    ]
    return "".join(f"{plain(line)}\n" for line in lines)
