"""`make newest` takes off every upper bound that pyproject.toml sets, and nothing else is bounded."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_newest_versions_of_all_bounded_libraries_are_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    declared = [*project["dependencies"], *(dependency for extra in extras for dependency in extra)]
    bounded = {re.split(r"[\[<>=]", dependency)[0].lower() for dependency in declared if "<" in dependency}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    unbound = re.search(r"^BOUNDED := (.*)$", makefile, re.MULTILINE)
    assert unbound is not None
    assert set(unbound[1].split()) == bounded
    assert {"highspy", "pulp"} <= bounded
    assert "printf '%s\\n' $(BOUNDED)" in makefile
