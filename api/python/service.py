"""The service that answers: opened once per environment and reused, so that only the first question reads the prices."""

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.api.schemas.settings_file import Environment

if TYPE_CHECKING:
    from gpuplan.api.services.composition import Services

#: Environments whose service stays open.
_MOST_SERVICES = 4
#: Of each file: its path, when it was changed, and its size; None for one that cannot be read.
_FileVersion = tuple[str, int, int] | None


def service(
    *, inventory: str | os.PathLike[str] | None = None, settings: str | os.PathLike[str] | None = None
) -> "Services":
    """gpuplan as the environment describes it now; `inventory` and `settings` replace the files that it names.

    A changed variable or an edited file counts from the next question on. A forked process opens the store anew.
    """
    given = {"inventory": inventory, "settings": settings}
    paths = {name: Path(path) for name, path in given.items() if path is not None}
    environment = Environment().model_copy(update=paths)
    files = (environment.inventory, environment.settings, environment.calibration)
    return _cached_services(environment, tuple(map(_file_version, files)), os.getpid())


@lru_cache(maxsize=_MOST_SERVICES)
def _cached_services(environment: Environment, files: tuple[_FileVersion, ...], process: int) -> "Services":
    """The service; `files` and `process` are part of the key alone."""
    from gpuplan.api.services.composition import open_services

    return open_services(environment)


def _file_version(path: Path | None) -> _FileVersion:
    if path is None:
        return None
    try:
        status = path.stat()
    except OSError:  # the service says which file it is and why
        return None
    return str(path), status.st_mtime_ns, status.st_size
