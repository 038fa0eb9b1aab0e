"""Entry point of the command line: run a command, turn every failure into an exit code and one clear line.

Exit codes: 0 success, 2 unusable input, 3 a provider or the store failed, 4 infeasible, 130 interrupted, 141 the
reader closed the pipe; 1 is a crash, hence a bug. Only the module of the command that is asked for is imported, so that
a plan does not load the libraries of others.
"""

import errno
import gc
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup
from typer.main import get_command

from gpuplan.api.cli.standard_output import answers, reserved_for_answers, silence_libraries
from gpuplan.api.presentation.text_formatting import plain
from gpuplan.catalog.runtime.errors import ProviderFailure, StoreFailure, UnusableInput
from gpuplan.catalog.runtime.extras import needed_module

EXIT_UNUSABLE = 2
EXIT_STORE = 3
#: Errors of a write to standard output when the disk or the user's quota is full.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
#: Set by the script of `--install-completion` when a shell requests completions.
_COMPLETION = "_GPUPLAN_COMPLETE"
#: Objects after which a command searches for cycles. Those of imports and a plan stay to its end, and searching them at
#: Python's own threshold takes a tenth of it.
COMMAND_OBJECTS = 300_000
#: Where each command is, in the order in which `--help` lists them.
_COMMANDS = {
    "plan": "plan.plan",
    "methods": "methods.methods",
    "afford": "afford.afford",
    "check": "check.check",
    "why": "why.why",
    "replan": "replan.replan",
    "portfolio": "portfolio.portfolio",
    "buy": "procurement.buy",
    "run-policy": "spot_policy.run_policy",
    "simulate": "spot_policy.simulate",
    "estimate": "estimate.estimate",
    "offers": "offers.offers",
    "accelerators": "offers.accelerators",
    "capacity": "capacity.capacity",
    "quotas": "quotas.quotas",
    "presets": "presets.presets",
    "history": "history.history",
    "diff": "history.diff",
    "refresh": "refresh.refresh",
    "show": "plan.show",
    "export": "export.export",
    "verify": "verify.verify",
    "actuals": "actuals.actuals",
    "profile": "profile.profile",
    "serve": "serve.serve",
    "doctor": "doctor.doctor",
    "mcp": "mcp.mcp",
    "worker": "worker.worker",
    "audit": "audit.audit",
    "import": "imported_jobs.import_file",
    "calibrate": "calibrate.calibrate",
}
#: What makes the groups of commands.
_GROUPS = {
    "local": "owned_machines.local_commands",
    "costs": "costs.costs_commands",
    "watch": "watch.watch_commands",
    "slack": "slack.slack_commands",
    "keys": "api_keys.keys_commands",
    "db": "database.db_commands",
}


def _version(asked: bool) -> None:
    if asked:
        print_version()
        raise typer.Exit


def application(only: str | None = None) -> typer.Typer:
    """All commands, in the order in which `--help` lists them; or `only` one, so that no other's libraries are loaded."""
    app = typer.Typer(
        name="gpuplan",
        help="Find the provably cheapest way to run a training job on hardware you own or rent.",
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(whole)
    for name, place in _COMMANDS.items():
        if only in (None, name):
            app.command(name)(_loaded(place))
    for name, place in _GROUPS.items():
        if only in (None, name):
            app.add_typer(_loaded(place)(), name=name)
    if only in (None, "version"):
        app.command("version")(print_version)
    return app


def _loaded(place: str) -> Callable[..., Any]:
    """The function at a place such as `offers.accelerators`."""
    module, name = place.split(".")
    function: Callable[..., Any] = getattr(import_module(f"gpuplan.api.cli.{module}"), name)
    return function


def whole(
    *,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, help="Show the version and exit.", callback=_version)
    ] = False,
) -> None:
    """Find the provably cheapest way to run a training job on hardware you own or rent."""


def print_version() -> None:
    """Show the version of gpuplan."""
    from gpuplan.api.observability.version import gpuplan_version

    answers().write(f"gpuplan {gpuplan_version()}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Only a bug raises an exception."""
    own_process = arguments is None
    if own_process:
        _set_library_defaults()
        gc.set_threshold(COMMAND_OBJECTS)
    _replace_unencodable_characters()
    _open_closed_streams()
    with reserved_for_answers(own_process=own_process):
        code = _ended(list(sys.argv[1:] if arguments is None else arguments))
    if own_process:
        _exit_despite_hanging_threads(code)
    return code


def _set_library_defaults() -> None:
    """Environment variables of libraries that a command loads later. A value that the user has set stays."""
    # The search for pydantic plugins reads the metadata of every installed package, and gpuplan has none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # The matrices of a plan are small, so that further BLAS threads only take processor time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _ended(given: list[str]) -> int:
    try:
        code = _run(given or ["--help"])
        answers().flush()
    except UnusableInput as error:
        from gpuplan.api.schemas.argument_names import at_argument

        return _fail(EXIT_UNUSABLE, *(str(at_argument(fault)) for fault in error.faults))
    except typer.TyperException as error:
        return _fail(EXIT_UNUSABLE, error.format_message())
    except ModuleNotFoundError as error:
        return _fail(EXIT_UNUSABLE, f"{given[0]} needs {needed_module(error)}")
    except (StoreFailure, ProviderFailure) as error:
        return _fail(EXIT_STORE, str(error))
    except BrokenPipeError:
        _discard_unwritten_output()
        return EXIT_BROKEN_PIPE
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        _discard_unwritten_output()
        return _fail(EXIT_STORE, f"the answer could not be written to standard output: {error.strerror}")
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return code


def _exit_despite_hanging_threads(code: int) -> None:
    """Exit at once if a cloud never answered: the SDKs' pool threads are not daemons, so the interpreter would wait."""
    gather = sys.modules.get("gpuplan.providers.refresh.parallel_fetch")
    if gather is not None and gather.left_behind():
        answers().flush()
        sys.stderr.flush()
        os._exit(code)


def _discard_unwritten_output() -> None:
    """Discard unwritten output: the interpreter flushes it again at exit and would report the closed pipe or full disk."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), answers().fileno())


def _open_closed_streams() -> None:
    """Open the null device for a standard stream that the process was started without."""
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _run(arguments: list[str]) -> int:
    """Parse and invoke. A command or `--help` ends with a code by raising `Exit`."""
    named = arguments[0] in {*_COMMANDS, *_GROUPS, "version"} and _COMPLETION not in os.environ
    group = get_command(application(arguments[0] if named else None))
    if not isinstance(group, TyperGroup):
        raise TypeError("the application has several commands and so must be a group")
    silence_libraries(group)
    if _COMPLETION in os.environ:
        group.main(arguments, prog_name="gpuplan")
    try:
        with group.make_context("gpuplan", arguments) as context:
            group.invoke(context)
    except typer.Exit as stop:
        return stop.exit_code
    return 0


def _fail(code: int, *lines: str) -> int:
    for line in lines:
        sys.stderr.write(f"gpuplan: {plain(line)}\n")
    return code


def _replace_unencodable_characters() -> None:
    """Replace characters outside the terminal's encoding instead of failing half-way through an answer."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
