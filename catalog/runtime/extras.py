"""Extras: which `gpuplan[...]` installs a module that the base install leaves out."""

from importlib.util import find_spec

from gpuplan.catalog.runtime.errors import UnusableInput

#: Top-level modules of the libraries of each extra in pyproject.toml. A module of several extras is named once.
MODULES_OF = {
    "aws": ("boto3", "botocore"),
    "azure": ("azure",),
    "gcp": ("google", "requests"),
    "mcp": ("mcp", "mcp_types"),
    "nebius": ("grpc",),
    "service": (
        "croniter",
        "fastapi",
        "jinja2",
        "jwt",
        "limits",
        "opentelemetry",
        "orjson",
        "procrastinate",
        "prometheus_client",
        "psycopg",
        "starlette",
        "structlog",
        "uvicorn",
        "zxcvbn",
    ),
    "slack": ("PIL", "aiohttp", "slack_bolt", "slack_sdk"),
}
_EXTRAS = {module: extra for extra, modules in MODULES_OF.items() for module in modules}


def install_hint(extra: str) -> str:
    """How to install an extra."""
    return f"pip install 'gpuplan[{extra}]' (in a checkout: make extras)"


def needed_module(error: ModuleNotFoundError) -> str:
    """What to install for a module that could not be imported, as in `boto3: pip install 'gpuplan[aws]'`.

    Raises `error` again if the module belongs to no extra, which is a bug.
    """
    extra = _EXTRAS.get((error.name or "").partition(".")[0])
    if extra is None:
        raise error
    return f"{error.name}: {install_hint(extra)}"


def require_extra(what: str, module: str) -> None:
    """Raises `UnusableInput` if `what` needs a top-level module that is not installed; imports nothing."""
    if find_spec(module) is None:
        raise UnusableInput.at(message=f"{what} needs {module}: {install_hint(_EXTRAS[module])}")
