"""Checks of the machine: Python and libraries, solver, disk space, the port of the service."""

import platform
import shutil
import socket
import tempfile
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.api.observability.doctor.finding import Finding, broken, ok, warning
from gpuplan.api.observability.version import gpuplan_version
from gpuplan.catalog.runtime.extras import MODULES_OF, install_hint
from gpuplan.catalog.store.database import database_url, sqlite_file

if TYPE_CHECKING:
    from packaging.requirements import Requirement

#: A catalogue with a year of nightly refreshes is a few hundred MB; a refresh briefly writes part of it twice.
_LOW_BYTES, _FULL_BYTES = 2 * 2**30, 50 * 2**20


def libraries() -> list[Finding]:
    """The release, Python, every required library as installed, and the extras that are not installed."""
    from packaging.requirements import Requirement

    wanted = [
        requirement for requirement in map(Requirement, requires("gpuplan") or ()) if requirement.name != "gpuplan"
    ]
    base = [
        requirement
        for requirement in wanted
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    ]
    lacking = [problem for requirement in base if (problem := _problem(requirement))]
    missing_extras = []
    for extra in (*MODULES_OF, "nvidia"):
        of_extra = [
            requirement
            for requirement in wanted
            if requirement not in base and requirement.marker and requirement.marker.evaluate({"extra": extra})
        ]
        problems = [problem for requirement in of_extra if (problem := _problem(requirement))]
        if any(problem.endswith(" is missing") for problem in problems):
            missing_extras.append(extra)
        else:
            lacking += problems
    release = f"gpuplan {gpuplan_version()} on Python {platform.python_version()}, {platform.machine()}"
    if lacking:
        advice = "reinstall gpuplan with its requirements.txt (requirements-all.txt for all extras)"
        findings = [broken("libraries", f"{release}: {'; '.join(dict.fromkeys(lacking))}", advice)]
    else:
        findings = [ok("libraries", f"{release}; {len(base)} libraries as required")]
    if missing_extras:
        return [
            *findings,
            ok("extras", f"not installed: {', '.join(missing_extras)}; to add one: {install_hint('NAME')}"),
        ]
    return [*findings, ok("extras", "all are installed")]


def _problem(wanted: "Requirement") -> str:
    """What is wrong with a library, empty if nothing."""
    try:
        installed = version(wanted.name)
    except PackageNotFoundError:
        return f"{wanted.name} is missing"
    fits = wanted.specifier.contains(installed, prereleases=True)
    return "" if fits else f"{wanted.name} {installed} is not {wanted.specifier}"


def yaml_reader() -> list[Finding]:
    """Whether YAML is read and written by libyaml: without it nothing reports it, and long files take ten times as
    long.
    """
    import yaml

    if yaml.__with_libyaml__:
        return [ok("yaml", f"PyYAML {yaml.__version__} with libyaml")]
    advice = "install PyYAML's wheel for this platform (pip install --force-reinstall --only-binary :all: PyYAML)"
    return [warning("yaml", f"PyYAML {yaml.__version__} without libyaml: long job files and exports are slow", advice)]


def solver() -> list[Finding]:
    """A model of three columns with a known optimum."""
    import numpy as np

    from gpuplan.planner.strategies.single.choice_model import NotProvenError, choose_one

    advice = "reinstall gpuplan: highspy or pulp does not work here"
    try:
        solution = choose_one(np.array([3.0, 2.0, 1.0]), np.array([1.0, 2.0, 9.0]), deadline_hours=5.0)
    except (NotProvenError, ImportError, OSError) as error:
        return [broken("solver", str(error), advice)]
    if solution is None or solution.objective_usd != 2.0:
        return [broken("solver", f"a model whose optimum is 2 was solved as {solution}", advice)]
    return [ok("solver", f"proves a small model optimal in {solution.milliseconds:.1f} ms")]


def room(url: str | None) -> list[Finding]:
    """Free space of the database and of temporary files."""
    path = sqlite_file(database_url(url))
    places = {"room for temporary files": Path(tempfile.gettempdir())}
    if path is not None:
        places = {"room for the database": _first_existing(path.parent)} | places
    return [_room(name, place) for name, place in places.items()]


def _first_existing(folder: Path) -> Path:
    return next(candidate for candidate in (folder, *folder.parents) if candidate.exists())


def _room(name: str, place: Path) -> Finding:
    free = shutil.disk_usage(place).free
    summary = f"{free / 1e9:.1f} GB free at {place}"
    if free < _FULL_BYTES:
        return broken(name, summary, "free some space, or move it (GPUPLAN_DATABASE_URL, TMPDIR)")
    if free < _LOW_BYTES:
        return warning(name, summary, "a refresh every night needs some GB; free some space in time")
    return ok(name, summary)


def port(host: str, number: int) -> list[Finding]:
    """Whether `gpuplan serve` could listen there."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM)[0]
        socket.create_server(address[:2], family=family).close()
    except OSError as error:
        summary = f"{host}:{number} is not available: {error.strerror or error}"
        return [
            warning("port", summary, "gpuplan may already be serving there; otherwise use gpuplan serve --port ANOTHER")
        ]
    return [ok("port", f"{host}:{number} is free for gpuplan serve")]
