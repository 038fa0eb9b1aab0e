"""A scratch folder with a store of its own, in which the commands and programs of one page run in their order."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from gpuplan.api.cli.main import application, main
from gpuplan.api.http.http_service import create_service
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import open_services
from tests.api.conftest import serving
from tests.docs.pages import ROOT, Block, Command, commands
from tests.docs.stand_ins import put_into
from tests.ports import free_port

#: Where the pages say that the service is; here it listens on a port of its own.
SERVICE = "http://127.0.0.1:8080"
#: They last until somebody stops them, so here only their options are read. The service runs in this process.
LASTING = {"serve", "worker", "mcp"}
#: Ids in the pages stand for the last of their kind that was printed.
_ID = re.compile(r"\b(plan|run|portfolio|decision|actual|watch)-[0-9a-f]{6,40}\b")
#: A key as it is shown once, with its id; the rest is anything.
_KEY = re.compile(r"\bgpk_([0-9a-f]{12})_[\w-]{20,}")
_KEY_ID = re.compile(r"(?<![\w-])[0-9a-f]{12}(?![\w-])")
#: Folders that the pages name are in the scratch folder; a PostgreSQL that they name is a file there: the commands are the
#: same, and tests of their own have a real one.
_FOLDER = re.compile(r"(?<![\w.])/backups/")
_POSTGRESQL = re.compile(r"postgresql://[\w@:.]+/(\w+)")
#: Figures with their signs of thousands and decimals; `<` stands before those too small to show.
_FIGURE = re.compile(r"<?\$?\d[\d,.:]*\d|<?\$?\d")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
_OPERATORS = set("|&;<>()")


@dataclass(slots=True)
class Shell:
    """Runs what one page shows, in `folder`."""

    folder: Path
    patch: pytest.MonkeyPatch
    exit_stack: ExitStack
    make_store: Callable[[Path], str]
    seen: dict[str, str] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)
    url: str = ""

    def __post_init__(self) -> None:
        (self.folder / "examples").symlink_to(ROOT / "examples")
        self.patch.chdir(self.folder)
        for name in list(os.environ):
            if name.startswith(("GPUPLAN_", "AWS_", "AZURE_", "GOOGLE_")):
                self.patch.delenv(name)
        self.patch.setenv("GPUPLAN_DATABASE_URL", self.make_store(self.folder))
        self.patch.setenv("COLUMNS", "120")
        put_into(self.folder / "bin", ROOT)
        programs = (str(Path(sys.executable).parent), str(self.folder / "bin"), os.environ["PATH"])
        self.patch.setenv("PATH", os.pathsep.join(programs))

    def run(self, block: Block) -> None:
        """The commands of a block; what they print is held against what the page shows."""
        for command in commands(block):
            where = f"{block.page}:{block.line}: {command.text}"
            code, out = self._ended(command)
            assert code == command.code, f"{where}\nended with {code}\n{out}"
            checker = OutputChecker()
            shown = self._with_seen_ids(command.shown)
            wanted, shown_output = (
                (shown, out) if not command.text.startswith("gpuplan ") else (figureless(shown), figureless(out))
            )
            if shown and not checker.check_output(wanted, shown_output, ELLIPSIS | NORMALIZE_WHITESPACE):
                raise AssertionError(f"{where}\nshown:\n{shown}\nprinted:\n{out}")

    def write(self, block: Block) -> None:
        """A block with a title is the file of that name."""
        path = self.folder / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")

    def execute(self, block: Block) -> str:
        """A program; what it prints. The blocks of a page share their names."""
        self._serve()
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(self._with_seen_ids(block.text), f"{block.page}:{block.line}", "exec"), self.names)
        return output.getvalue()

    def _ended(self, command: Command) -> tuple[int, str]:
        words = shlex.split(command.text)
        if command.text.startswith("export ") or (len(words) == 1 and _ASSIGNED.match(words[0])):
            self._assign(self._with_seen_ids(command.text).removeprefix("export "))
            return 0, ""
        text = self._with_seen_ids(command.text)
        if SERVICE in command.text:
            self._serve()
            text = self._with_seen_ids(command.text)
        operators = set(shlex.shlex(text, posix=True, punctuation_chars=True)) & (
            _OPERATORS | {"&&", "||", ">>", "<<", "$("}
        )
        if text.startswith("gpuplan ") and operators <= {">"} and "$(" not in text:
            code, out = self._gpuplan(shlex.split(os.path.expandvars(text)))
        else:
            done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=60, check=False)
            code, out = done.returncode, done.stdout + done.stderr
        for match in _ID.finditer(out):
            self.seen[match[1]] = match[0]
        for match in _KEY.finditer(out):
            self.seen["key"], self.seen["secret"] = match[1], match[0]
        return code, out

    def _gpuplan(self, words: list[str]) -> tuple[int, str]:
        target = None
        if ">" in words:
            words, target = words[: words.index(">")], words[words.index(">") + 1]
        if words[1] in LASTING:
            options_of(words[1:])
            return 0, ""
        if words[1] == "doctor":  # the usual port may be somebody's on this machine
            words = [*words, "--port", str(free_port())]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words[1:])
        if target is not None:
            Path(target).write_text(out.getvalue(), encoding="utf-8")
        return code, out.getvalue() + err.getvalue()

    def _assign(self, text: str) -> None:
        """As the shell does it, for the commands that follow."""
        done = subprocess.run(["bash", "-ec", f"export {text}; env -0"], capture_output=True, text=True, check=True)
        for assignment in done.stdout.split("\0"):
            name, _, value = assignment.partition("=")
            if name and name not in {"_", "SHLVL", "PWD", "OLDPWD"} and os.environ.get(name) != value:
                self.patch.setenv(name, value)

    def _with_seen_ids(self, text: str) -> str:
        """With ids of this run in place of those of the page, and the service where it is here."""
        replaced = _ID.sub(lambda match: self.seen.get(match[1], match[0]), text)
        replaced = _KEY.sub(lambda match: self.seen.get("secret", match[0]), replaced)
        replaced = _KEY_ID.sub(lambda match: self.seen.get("key", match[0]), replaced)
        replaced = _FOLDER.sub(f"{self.folder}/", replaced)
        replaced = _POSTGRESQL.sub(lambda match: f"sqlite:///{self.folder}/postgresql-{match[1]}.sqlite3", replaced)
        return replaced.replace(SERVICE, self.url) if self.url else replaced

    def _serve(self) -> None:
        if not self.url:
            gpuplan = open_services(Environment(database_url=os.environ["GPUPLAN_DATABASE_URL"]))
            self.exit_stack.callback(gpuplan.store.close)
            client = self.exit_stack.enter_context(serving(create_service(gpuplan)))
            self.url = str(client.base_url).rstrip("/")
            self.patch.setenv("GPUPLAN_URL", self.url)


def figureless(text: str) -> str:
    """With every figure as #, and rules without their length: what a plan costs follows from prices and the day."""
    return re.sub(r"─+", "─", _FIGURE.sub("#", text))


def options_of(words: list[str]) -> None:
    """Reads a command's options without running it; raises what typer says of those that it has not."""
    command: Any = get_command(application())
    while hasattr(command, "commands"):
        if words[0] == "--help":
            return
        if words[0].startswith("-") and command.invoke_without_command:
            break
        assert words[0] in command.commands, f"gpuplan has no command {words[0]!r}"
        command, words = command.commands[words[0]], words[1:]
    if "--help" not in words:
        command.make_context("gpuplan", list(words))
