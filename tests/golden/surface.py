"""What users rely on by name: commands with flags, HTTP paths, metrics, environment variables, tasks of the queue.

`python -m tests.golden.surface` adds what is new to `surface.json`.
"""

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.golden.interfaces import commands, metrics, open_interfaces

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
SURFACE = FOLDER / "surface.json"
_VARIABLE = re.compile(r"\bGPUPLAN_[A-Z][A-Z_]*[A-Z]\b")
_TASK = re.compile(r'"(gpuplan\.(?:run|refresh\.\w+|keep\.\w+))"')


def surface() -> dict[str, list[str]]:
    """Every name that there is now, by kind."""
    with TemporaryDirectory() as place, open_interfaces(Path(place)) as interfaces:
        paths = interfaces.http("GET", "/openapi.json", None).answer["paths"]
        figures = metrics(interfaces)
    folders = ("api", "catalog", "planner", "providers", "src/gpuplan")
    code = [path.read_text(encoding="utf-8") for folder in folders for path in (ROOT / folder).rglob("*.py")]
    docs = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")]
    return {
        "commands": sorted(commands()),
        "environment": sorted({name for text in (*code, *docs) for name in _VARIABLE.findall(text)}),
        "http": sorted(f"{method.upper()} {path}" for path, methods in paths.items() for method in methods),
        "metrics": sorted(figures),
        "tasks": sorted({name for text in code for name in _TASK.findall(text)}),
    }


def recorded_surface() -> dict[str, list[str]]:
    """The names that users hold."""
    names: dict[str, list[str]] = json.loads(SURFACE.read_text(encoding="utf-8"))
    return names


if __name__ == "__main__":
    before = recorded_surface() if SURFACE.exists() else {}
    now = surface()
    both = {kind: sorted({*names, *before.get(kind, [])}) for kind, names in now.items()}
    SURFACE.write_text(json.dumps(both, indent=1) + "\n", encoding="utf-8")
