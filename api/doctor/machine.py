"""The machine: Python and libraries, the solver, room on disks, the port of the service."""

import platform
import shutil
import socket
import tempfile
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from api.doctor.finding import Finding, broken, ok, warning
from api.version import gpuplan_version
from catalog.database import database_url, sqlite_file

#: A catalogue with a year of nights is a few hundred MB; a refresh writes some of it twice for a moment.
_LOW_BYTES, _FULL_BYTES = 2 * 2**30, 50 * 2**20


def libraries() -> list[Finding]:
    """The release, Python, and every library that it needs, as installed."""
    from packaging.requirements import Requirement

    lacking = []
    count = 0
    for text in requires("gpuplan") or ():
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        count += 1
        try:
            there = version(wanted.name)
        except PackageNotFoundError:
            lacking.append(f"{wanted.name} is missing")
        else:
            if not wanted.specifier.contains(there, prereleases=True):
                lacking.append(f"{wanted.name} {there} is not {wanted.specifier}")
    release = f"gpuplan {gpuplan_version()} on Python {platform.python_version()}, {platform.machine()}"
    if lacking:
        return [
            broken("libraries", f"{release}: {'; '.join(lacking)}", "install gpuplan anew with its requirements.txt")
        ]
    return [ok("libraries", f"{release}; {count} libraries as required")]


def yaml_reader() -> list[Finding]:
    """Whether YAML is read and written by libyaml: without it nothing says so, and long files take ten times as long."""
    import yaml

    if yaml.__with_libyaml__:
        return [ok("yaml", f"PyYAML {yaml.__version__} with libyaml")]
    advice = "install PyYAML's wheel for this platform (pip install --force-reinstall --only-binary :all: PyYAML)"
    return [warning("yaml", f"PyYAML {yaml.__version__} without libyaml: long job files and exports are slow", advice)]


def solver() -> list[Finding]:
    """A model of three columns, whose optimum is known."""
    import numpy as np

    from planner.optimise.single import NotProvenError, choose_one

    advice = "install gpuplan anew: highspy or pulp do not work here"
    try:
        found = choose_one(np.array([3.0, 2.0, 1.0]), np.array([1.0, 2.0, 9.0]), deadline_hours=5.0)
    except (NotProvenError, ImportError, OSError) as error:
        return [broken("solver", str(error), advice)]
    if found is None or found.objective_usd != 2.0:
        return [broken("solver", f"a model whose optimum is 2 was solved as {found}", advice)]
    return [ok("solver", f"proves a small model optimal in {found.milliseconds:.1f} ms")]


def room(url: str | None) -> list[Finding]:
    """Free space where the database is, and for temporary files."""
    path = sqlite_file(database_url(url))
    places = {"room for temporary files": Path(tempfile.gettempdir())}
    if path is not None:
        places = {"room for the database": _first_there(path.parent)} | places
    return [_room(name, place) for name, place in places.items()]


def _first_there(folder: Path) -> Path:
    return next(each for each in (folder, *folder.parents) if each.exists())


def _room(name: str, place: Path) -> Finding:
    free = shutil.disk_usage(place).free
    found = f"{free / 1e9:.1f} GB free at {place}"
    if free < _FULL_BYTES:
        return broken(name, found, "free some space, or move it (GPUPLAN_DATABASE_URL, TMPDIR)")
    if free < _LOW_BYTES:
        return warning(name, found, "a refresh every night needs some GB; free some space in time")
    return ok(name, found)


def port(host: str, number: int) -> list[Finding]:
    """Whether `gpuplan serve` could listen there."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM)[0]
        socket.create_server(address[:2], family=family).close()
    except OSError as error:
        found = f"{host}:{number} cannot be listened on: {error.strerror or error}"
        return [warning("port", found, "gpuplan may be serving there already; else gpuplan serve --port ANOTHER")]
    return [ok("port", f"{host}:{number} is free for gpuplan serve")]
