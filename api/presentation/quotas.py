"""Quotas as the lines of a settings file, with what was not learned as comments."""

import json
from typing import Any

from gpuplan.api.presentation.text_formatting import plain


def quota_lines(answer: dict[str, Any]) -> str:
    """A settings file: when the quotas were read, what was not learned, and the list."""
    lines = [
        f"# The vCPUs that the account may use at once, read from AWS Service Quotas at {answer['meta']['read_at']}.",
        "# What runs already is not subtracted. Local Zones are not limited; Capacity Blocks count as on demand here.",
        *(f"# not learned: {row['region']}: {row['reason']}" for row in answer["not_learned"]),
        "quotas:",
        # JSON is YAML, and quotes every text.
        *(f"  - {json.dumps(quota)}" for quota in answer["quotas"]),
    ]
    return "".join(f"{plain(line)}\n" for line in lines)
