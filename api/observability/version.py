"""The version of gpuplan."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def gpuplan_version() -> str:
    """The installed version, or `unknown` when run from a checkout that is not installed."""
    try:
        return version("gpuplan")
    except PackageNotFoundError:
        return "unknown"
