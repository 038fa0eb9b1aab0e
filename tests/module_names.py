"""Which files of ours are loaded as more than one module."""

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = tuple(ROOT / name for name in ("catalog", "providers", "planner", "api", "clients"))
#: What a program is called, beside the name that others import it by.
PROGRAMS = {"__main__", "__mp_main__"}


def loaded_twice(modules: Mapping[str, ModuleType]) -> dict[str, list[str]]:
    """The names of each file of our packages that has more than one, links resolved."""
    names: dict[str, list[str]] = {}
    for name, module in list(modules.items()):
        file = getattr(module, "__file__", None)
        if name in PROGRAMS or not isinstance(file, str):
            continue
        path = Path(file).resolve()
        if any(path.is_relative_to(package) for package in PACKAGES):
            names.setdefault(str(path.relative_to(ROOT)), []).append(name)
    return {path: sorted(name) for path, name in names.items() if len(name) > 1}
