"""What a wheel holds, whichever way it is built: one top-level package, with everything that is in the repository."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"][
    "wheel"
]
PACKAGES = ("catalog", "providers", "planner", "api")


def build(target: str, source: Path, out: Path) -> Path:
    """The archive that hatchling builds from `source`."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(out)],
        cwd=source,
        check=True,
        capture_output=True,
    )
    [made] = out.iterdir()
    return made


def content(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


@pytest.fixture(scope="module")
def wanted() -> set[str]:
    """Every file of our packages, by its place in the wheel."""
    left_out = [ROOT / item for item in WHEEL["exclude"]]
    files = {
        f"gpuplan/{path.relative_to(ROOT).as_posix()}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and not any(path.is_relative_to(item) for item in left_out)
    }
    return files | {"gpuplan/__init__.py", "gpuplan/py.typed"}


@pytest.fixture(scope="module")
def from_checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


def test_a_wheel_of_the_checkout_holds_all_of_gpuplan_and_nothing_else(from_checkout: Path, wanted: set[str]) -> None:
    result = content(from_checkout)
    assert {name for name in result if not name.startswith("gpuplan-0")} == wanted
    assert {name.partition("/")[0] for name in result} == {
        "gpuplan",
        from_checkout.name.removesuffix("-py3-none-any.whl") + ".dist-info",
    }


def test_a_wheel_of_the_source_distribution_is_the_same(from_checkout: Path, tmp_path: Path) -> None:
    archive = build("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path / "source", filter="data")
    [source] = (tmp_path / "source").iterdir()
    assert content(build("wheel", source, tmp_path / "wheel")) == content(from_checkout)


def test_a_wheel_of_what_the_dockerfile_copies_is_the_same(from_checkout: Path, tmp_path: Path) -> None:
    stage = (ROOT / "Dockerfile").read_text(encoding="utf-8").partition("\nFROM ")[2].partition("\nFROM ")[0]
    for line in re.findall(r"^COPY (.+)$", stage, re.MULTILINE):
        *sources, target = line.split()
        for source in sources:
            place = tmp_path / "src" / target
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                place = place / Path(source).name
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, place)
    assert content(build("wheel", tmp_path / "src", tmp_path / "wheel")) == content(from_checkout)


def test_the_installed_wheel_plans_without_the_checkout(from_checkout: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(from_checkout) as wheel:
        wheel.extractall(tmp_path / "site")
    job = ROOT / "examples" / "resnet-50.yaml"
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); import gpuplan.api.cli.main as cli;"
        f"assert cli.__file__.startswith({str(tmp_path)!r}), cli.__file__;"
        f"sys.exit(cli.main(['plan', {str(job)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "GPUPLAN_DATABASE_URL": f"sqlite:///{tmp_path / 'own.sqlite3'}",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Cheapest for" in done.stdout


def test_the_clients_wheel_holds_the_client_alone_and_says_that_it_is_typed(tmp_path: Path) -> None:
    result = content(build("wheel", ROOT / "clients" / "python", tmp_path))
    assert {name.partition("/")[0] for name in result if ".dist-info" not in name} == {"gpuplan_client"}
    assert {"gpuplan_client/py.typed", "gpuplan_client/client.py", "gpuplan_client/answers/plan.py"} <= result
