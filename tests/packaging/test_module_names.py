"""gpuplan is imported as `gpuplan.*` alone: in a checkout its folders could be imported by two names."""

import subprocess
import sys

import pytest

from tests.module_names import ROOT, loaded_twice

_TWICE = """
import sys
import catalog.runtime.errors
import gpuplan.catalog.runtime.errors
from tests.module_names import loaded_twice
print(loaded_twice(sys.modules))
"""


def test_a_module_loaded_under_two_names_is_found() -> None:
    done = subprocess.run([sys.executable, "-c", _TWICE], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "'catalog/runtime/errors.py': ['catalog.runtime.errors', 'gpuplan.catalog.runtime.errors']" in done.stdout


def test_no_module_is_loaded_under_two_names_here() -> None:
    assert not loaded_twice(sys.modules)


@pytest.mark.parametrize("package", ["catalog", "providers", "planner", "api"])
def test_the_linter_refuses_a_package_without_its_prefix(package: str) -> None:
    source = f"import {package}.errors\nfrom {package} import errors\nfrom {package}.errors import Refused\n"
    command = [sys.executable, "-m", "ruff", "check", "--select", "TID251", "--output-format", "concise", "--no-cache"]
    done = subprocess.run(
        [*command, "--stdin-filename", "tests/any.py", "-"],
        cwd=ROOT,
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout.count(f"import gpuplan.{package}") == 3


@pytest.mark.parametrize("package", ["catalog", "providers", "planner", "api"])
def test_a_folder_at_the_root_is_the_package_of_its_name(package: str) -> None:
    link = ROOT / "src" / "gpuplan" / package
    assert link.is_symlink()
    assert link.resolve() == ROOT / package
