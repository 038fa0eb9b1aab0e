"""Example documents that fill in the forms: four jobs under a quota, a small laboratory over three years, and jobs."""

import json
from pathlib import Path

from gpuplan.catalog.parsing.json_object import JsonObject

_FOLDER = Path(__file__).parent / "example_documents"
PORTFOLIO = (_FOLDER / "portfolio.yaml").read_text(encoding="utf-8")
FORECAST = (_FOLDER / "forecast.yaml").read_text(encoding="utf-8")
#: `title` and `job` by name, in the order of the page.
JOBS: dict[str, JsonObject] = json.loads((_FOLDER / "jobs.json").read_text(encoding="utf-8"))
