"""A launch command as a document: its flags as keys, and how many processes its launcher starts."""

import re
from dataclasses import dataclass
from typing import Any

from gpuplan.api.imports.facts import Origin, TrainingFacts
from gpuplan.api.imports.located_document import Located, scalar
from gpuplan.api.imports.reader import Follow, reader_of
from gpuplan.api.imports.shell_script import Command, ShellScript
from gpuplan.api.imports.software_stack import state_stack

_LAUNCHERS = re.compile(
    r"(^|/)(torchrun|accelerate|deepspeed|python[\d.]*|srun|mpirun|llamafactory-cli|tune|litgpt|axolotl|bash|swift)$"
)
_CONFIG_FLAGS = ("config", "config_file", "config_name", "deepspeed", "deepspeed_config")
_CONFIG_FILE = re.compile(r"[^=\s]+\.(ya?ml|json)$")


@dataclass(frozen=True, slots=True)
class Launch:
    """The flags of the launcher and of the program, the program, and overrides `a.b=c`."""

    launcher: dict[str, Any]
    program: dict[str, Any]
    name: str
    overrides: dict[str, Any]
    files: tuple[str, ...]


def read_script(
    text: str, name: str, facts: TrainingFacts, follow: Follow, *, line: int = 0, known: dict[str, str]
) -> None:
    """Add the facts of the training commands of a script."""
    script = ShellScript(variables=dict(known))
    for command in script.commands(text):
        words = list(command.words)
        while words and re.match(r"^[A-Za-z_]\w*=", words[0]):
            words = words[1:]
        if words and (_LAUNCHERS.search(words[0]) or words[0] == "eval"):
            _training(Command(tuple(words), command.line + line), name, facts, follow, known)


def _training(command: Command, name: str, facts: TrainingFacts, follow: Follow, known: dict[str, str]) -> None:
    words = command.words
    if words[0] == "eval" or ("-c" in words[:6] and words[0] in ("bash", "srun")):
        inner = " ".join(words[1:]) if words[0] == "eval" else words[-1]
        read_script(inner, name, facts, follow, line=command.line - 1, known=known)
        return
    launch = launch_of(words)
    _world(launch, Origin(file=name, line=command.line), facts)
    for values in (launch.program, launch.overrides):
        document = Located(name=name, value=values, lines=_lines(values, command.line))
        reader = reader_of(document) if values else None
        if reader is not None:
            facts.format = facts.format or reader.name
            reader.read(document, facts, follow)
            state_stack(reader.name, document, facts)
    for file in launch.files:
        follow.file(file, facts)


def _lines(values: dict[str, Any], line: int, path: tuple[str | int, ...] = ()) -> dict[tuple[str | int, ...], int]:
    lines: dict[tuple[str | int, ...], int] = {}
    for key, value in values.items():
        lines[(*path, key)] = line
        if isinstance(value, dict):
            lines |= _lines(value, line, (*path, key))
    return lines


def launch_of(words: tuple[str, ...]) -> Launch:
    """Split a command at its program: flags before it are the launcher's."""
    split = next((i for i, word in enumerate(words) if i and re.search(r"\.py$|(^|/)train_gpt2\w*$", word)), None)
    if split is None:
        module = [i + 1 for i, word in enumerate(words[:-1]) if word in ("-m", "--module")]
        real = [i for i in module if not words[i].startswith("torch.distributed")]
        split = real[0] if real else min(1, len(words) - 1)
    before, after = list(words[:split]), list(words[split + 1 :])
    overrides: dict[str, Any] = {}
    for word in after:
        match = re.match(r"^\+{0,2}([A-Za-z_][\w.]*)=(.*)$", word)
        if match:
            _put(overrides, match[1].split("."), scalar(match[2]) if match[2] else None)
    launcher, program = flags(before), flags(after)
    files = [
        str(value)
        for values in (launcher, program)
        for key in _CONFIG_FLAGS
        if isinstance(value := values.get(key), str)
    ]
    files += [word for word in after if _CONFIG_FILE.fullmatch(word) and not word.startswith("-")]
    named = [
        file for file in files if _CONFIG_FILE.search(file) and "$" not in file and file != program.get("deepspeed")
    ]
    return Launch(launcher, program, words[split] if words else "", overrides, tuple(dict.fromkeys(named)))


def _put(level: dict[str, Any], keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        inner = level.setdefault(key, {})
        if not isinstance(inner, dict):
            return
        level = inner
    level[keys[-1]] = value


def flags(words: list[str]) -> dict[str, Any]:
    """Flags with their values: none is true, one is a value, several are text."""
    made: dict[str, list[str]] = {}
    key = ""
    for word in (part for one in words for part in (one.split() if one.startswith("--") and " " in one else [one])):
        match = re.match(r"^--?([A-Za-z][\w.-]*)(?:=(.*))?$", word, re.DOTALL)
        if match:
            key = match[1].replace("-", "_")
            made[key] = [match[2]] if match[2] is not None else []
        elif key:
            made[key].append(word)
    return {
        name: (scalar(values[0]) if len(values) == 1 and values[0] else " ".join(values) or True)
        for name, values in made.items()
    }


def _world(launch: Launch, origin: Origin, facts: TrainingFacts) -> None:
    total = launch.launcher.get("num_processes")
    per_node = launch.launcher.get("nproc_per_node", launch.launcher.get("num_gpus"))
    nodes = launch.launcher.get("nnodes", launch.launcher.get("num_nodes", 1))
    if isinstance(per_node, int) and isinstance(nodes, int):
        per_node = per_node * nodes
    started = total if isinstance(total, int) else per_node if isinstance(nodes, int) else None
    if not isinstance(started, int) or isinstance(started, bool) or not 0 < started < 10**6:
        return
    known = facts.whole("stated_world_size")
    if known is not None and known != started:
        facts.notes.append(
            f"{origin}: the launcher starts {started} processes, not the {known} stated before, which count"
        )
    facts.put("stated_world_size", started, origin)
