"""Ids of saved answers: `plan-`, or `none-` for an infeasible one, and twenty hexadecimal digits."""

import re

PLANNED = re.compile(r"plan-[0-9a-f]{20}")
SAVED = re.compile(r"(?:plan|none)-[0-9a-f]{20}")
