"""gpuplan's command line as a process of its own, in a world whose clouds take any number of calls a second.

The published rates alone would hold a refresh from local servers up for half a minute.
"""

import sys
from dataclasses import replace

from api.cli.main import main
from api.settings import Environment
from providers.sources import Sources

_paced = Environment.sources


def _unpaced(environment: Environment) -> Sources:
    return replace(_paced(environment), paced=False)


if __name__ == "__main__":
    Environment.sources = _unpaced  # type: ignore[assignment, method-assign]
    sys.exit(main(sys.argv[1:]))
