"""gpuplan's command line as a process of its own, in a world whose clouds take any number of calls a second.

The published rates alone would hold a refresh from local servers up for half a minute.
"""

import resource
import sys
from dataclasses import replace

from gpuplan.api.cli.main import main
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.providers.cloud_endpoints import Sources

ROOM_BYTES = 102_400
_paced = Environment.sources


def unpaced(environment: Environment) -> Sources:
    """The clouds as they are, but for their rates."""
    return replace(_paced(environment), paced=False)


def unpaced_world() -> None:
    """For a process that does nothing else."""
    Environment.sources = unpaced  # type: ignore[assignment, method-assign]


def unpaced_world_without_room() -> None:
    """The same on a disk that has room for a lock and for reading, not for a snapshot."""
    unpaced_world()
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM_BYTES, resource.RLIM_INFINITY))


if __name__ == "__main__":
    unpaced_world()
    sys.exit(main(sys.argv[1:]))
