"""What makes a command start sooner: libraries load only what it needs, garbage is looked for less often, no threads idle.

For a process of the command line alone; whoever imports gpuplan finds everything as it was.
"""

import gc
import importlib
import os
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

#: Reads the logs of solvers that write some, with a parser of CP-SAT's that takes a tenth of a whole plan to load.
#: PuLP imports it always; HiGHS, the one solver here, hands its figures over and is never read so.
_READER_OF_LOGS = "orloge"
#: Nearly all that imports make stays; Python's own 700 has the collector look through it dozens of times.
MOST_NEW_OBJECTS = 50_000


def start_quickly() -> None:
    """To be called before anything else is imported that takes its time."""
    gc.set_threshold(MOST_NEW_OBJECTS, *gc.get_threshold()[1:])
    # Looking for plugins of pydantic reads the metadata of every installed package; none is ours. A user's choice holds.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # The matrices here are small: threads of numpy's BLAS that wait for larger ones take the processor from those who plan.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    load_on_demand(_READER_OF_LOGS)


def load_on_demand(name: str) -> None:
    """Let `import name` cost nothing until something of that package is used; nothing changes where it is loaded or absent.

    `importlib.util.LazyLoader` would not do: the import statement itself already asks its module for an attribute.
    """
    spec = find_spec(name) if name not in sys.modules else None
    if spec is None:
        return
    stand_in = _OnDemand(name)
    stand_in.__spec__ = spec
    stand_in.__path__ = spec.submodule_search_locations or []
    sys.modules[name] = stand_in


class _OnDemand(ModuleType):
    """Stands for a package until an attribute of it is asked for."""

    def __getattr__(self, attribute: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), attribute)
