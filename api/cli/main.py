"""The command line's edge: run a command, turn every way to fail into an exit code and one clear line.

0 done, 2 unusable input, 3 a provider or store failed, 4 infeasible, 130 interrupted, 141 the reader went
away; 1 is left to crashes, which are bugs. Commands import what they need when they run, so that a plan on
a cold machine does not pay for the service's libraries.
"""

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TextIO

import typer
from typer.core import TyperGroup
from typer.main import get_command

from api.cli import (
    actuals,
    audit,
    buy,
    calibrate,
    db,
    doctor,
    estimate,
    export,
    history,
    keys,
    local,
    mcp,
    offers,
    plan,
    portfolio,
    profile,
    refresh,
    replan,
    serve,
    slack,
    spot,
    verify,
    watch,
    why,
    worker,
)
from api.cli.quick_start import start_quickly
from api.cli.standard_output import answers, keep_libraries_off, kept_for_answers
from api.render.text import plain
from catalog.errors import ProviderFailure, StoreFailure, UnusableInput

EXIT_UNUSABLE = 2
EXIT_STORE = 3
#: What a write to standard output fails with when the disk or the user's share of it is full.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


def _version(asked: bool) -> None:
    if asked:
        print_version()
        raise typer.Exit


def application() -> typer.Typer:
    """All commands, in the order in which `--help` lists them."""
    app = typer.Typer(
        name="gpuplan",
        help="The provably cheapest way to run a training job on hardware you own or rent.",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    for command in (
        plan.plan,
        why.why,
        replan.replan,
        portfolio.portfolio,
        buy.buy,
        spot.run_policy,
        spot.simulate,
        estimate.estimate,
        offers.offers,
        offers.accelerators,
        history.history,
        history.diff,
        refresh.refresh,
        plan.show,
        export.export,
        verify.verify,
        actuals.actuals,
        profile.profile,
        serve.serve,
        doctor.doctor,
        mcp.mcp,
        worker.worker,
        audit.audit,
    ):
        app.command()(command)
    app.callback()(whole)
    app.command()(calibrate.calibrate)
    app.add_typer(local.local_commands(), name="local")
    app.add_typer(watch.watch_commands(), name="watch")
    app.add_typer(slack.slack_commands(), name="slack")
    app.add_typer(keys.keys_commands(), name="keys")
    app.add_typer(db.db_commands(), name="db")
    app.command("version")(print_version)
    return app


def whole(
    *,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, help="Show the version and exit.", callback=_version)
    ] = False,
) -> None:
    """The provably cheapest way to run a training job on hardware you own or rent."""


def print_version() -> None:
    """The version of gpuplan."""
    from api.version import gpuplan_version

    answers().write(f"gpuplan {gpuplan_version()}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; nothing but a bug gets past this function."""
    own_process = arguments is None
    if own_process:
        start_quickly()
    _write_what_the_terminal_can_show()
    _open_what_is_closed()
    with kept_for_answers(own_process=own_process):
        code = _ended(list(sys.argv[1:] if arguments is None else arguments))
    if own_process:
        _leave_what_hangs(code)
    return code


def _ended(given: list[str]) -> int:
    try:
        code = _run(given or ["--help"])
        answers().flush()
    except UnusableInput as error:
        return _fail(EXIT_UNUSABLE, *(str(fault) for fault in error.faults))
    except typer.TyperException as error:
        return _fail(EXIT_UNUSABLE, error.format_message())
    except (StoreFailure, ProviderFailure) as error:
        return _fail(EXIT_STORE, str(error))
    except BrokenPipeError:
        _drop_what_is_left()
        return EXIT_BROKEN_PIPE
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        _drop_what_is_left()
        return _fail(EXIT_STORE, f"the answer could not be written to standard output: {error.strerror}")
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return code


def _leave_what_hangs(code: int) -> None:
    """End at once where a cloud never answered: the SDKs' pools are no daemons, so the interpreter would wait for them."""
    gather = sys.modules.get("providers.gather")
    if gather is not None and gather.left_behind():
        answers().flush()
        sys.stderr.flush()
        os._exit(code)


def _drop_what_is_left() -> None:
    """The interpreter flushes the answer once more at exit and would complain about the closed pipe or the full disk."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), answers().fileno())


def _open_what_is_closed() -> None:
    """A process may be started without standard output or error; what it says there then goes nowhere."""
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _run(arguments: list[str]) -> int:
    """Parse and invoke; `Exit` is how a command or `--help` ends with a code."""
    group = get_command(application())
    if not isinstance(group, TyperGroup):
        raise TypeError("the application has several commands and so must be a group")
    keep_libraries_off(group)
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


def _write_what_the_terminal_can_show() -> None:
    """Replace what the terminal's encoding lacks instead of failing half-way through an answer."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
