"""A launch command as a document: its flags as keys, and how many processes its launcher starts."""

import re
from dataclasses import dataclass, field
from typing import Any

from gpuplan.api.imports.facts import Origin, TrainingFacts
from gpuplan.api.imports.located_document import Located, scalar
from gpuplan.api.imports.reader import Follow, Overrides, reader_of
from gpuplan.api.imports.shell_script import Command, ShellScript
from gpuplan.api.imports.shell_words import Variables
from gpuplan.api.imports.software_stack import state_stack

_LAUNCHERS = re.compile(
    r"(^|/)(torchrun|accelerate|deepspeed|python[\d.]*|srun|mpirun|mpiexec|horovodrun|llamafactory-cli|tune|litgpt|axolotl"
    r"|bash|sh|swift|trl|composer|torchx|ray)$"
)
#: Programs that start another one, which is their last argument.
_STARTERS = re.compile(
    r"(^|/)(nohup|time|exec|env|uv|poetry|pdm|pipenv|conda|micromamba|singularity|apptainer|docker|podman|enroot|numactl|nsys"
    r"|ncu|timeout|stdbuf|nice|sudo|command|xvfb-run|rlaunch)$"
)
_NAMES_FILE = ("config", "config_file", "config_name", "deepspeed", "deepspeed_config", "train_config", "cfg", "yaml")
_CONFIG_FILE = re.compile(r"[^=\s]+\.(ya?ml|json)$")
_OVERRIDE = re.compile(r"\+{0,2}([A-Za-z_][\w.]*)=(.*)$", re.DOTALL)
_SETTING = re.compile(r"([A-Za-z_]\w*)=(.*)$", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A command: flags of the launcher and of the program, overrides `a.b=c`, and the configurations that it names.

    `unknown` are words that may hold arguments and that nothing states.
    """

    launcher: dict[str, Any]
    program: dict[str, Any] = field(default_factory=dict)
    overrides: dict[str, Any] = field(default_factory=dict)
    launcher_files: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    def stated(self) -> dict[str, Any]:
        """Flags and overrides by dotted path, without those that name the configuration."""
        flagged = {
            key: value for key, value in self.program.items() if key not in _NAMES_FILE or value not in self.files
        }
        return flagged | self.overrides


def read_script(
    text: str, name: str, facts: TrainingFacts, follow: Follow, *, line: int = 0, known: dict[str, str]
) -> None:
    """Add the facts of the training commands of a script."""
    script = ShellScript(variables=Variables(values=dict(known)), source=follow.included_text, written=follow.written)
    for command in script.commands(text):
        placed = Command(command.words, command.line + line, command.document)
        _command(placed, name, facts, follow, script)
    facts.notes += [f"{name}: {note}" for note in script.notes]
    if not facts.facts.keys() - {"stated_world_size"}:
        facts.not_understood.append(f"{name}: none of its commands is a training run of a known tool")


def _command(command: Command, name: str, facts: TrainingFacts, follow: Follow, script: ShellScript) -> None:
    words = list(command.words)
    while words and (match := _SETTING.match(words[0])):
        if match[1] == "CUDA_VISIBLE_DEVICES":
            script.variables.set(match[1], match[2])
        words = words[1:]
    if words and _STARTERS.search(words[0]):
        words = next((words[i:] for i in range(1, len(words)) if _LAUNCHERS.search(words[i])), [])
    if words and (_LAUNCHERS.search(words[0]) or words[0] == "eval"):
        launched = Command(tuple(words), command.line, command.document)
        _training(launched, name, facts, follow, script)


def _training(command: Command, name: str, facts: TrainingFacts, follow: Follow, script: ShellScript) -> None:
    words = command.words
    shell = next(
        (
            i
            for i in range(1, len(words))
            if words[i] in ("-c", "-lc", "-ec", "-xc") and re.search(r"(^|/)(ba)?sh$", words[i - 1])
        ),
        None,
    )
    if words[0] == "eval" or (shell is not None and shell + 1 < len(words)):
        inner = " ".join(words[1:]) if words[0] == "eval" or shell is None else words[shell + 1]
        if shell is not None:
            _world(Launch(launcher=flags(list(words[1:shell]))), Origin(file=name, line=command.line), facts, "")
        nested = ShellScript(
            variables=script.variables, source=script.source, written=script.written, depth=script.depth + 1
        )
        for one in nested.commands(inner) if nested.depth < _DEEPEST else ():
            _command(Command(one.words, command.line + one.line - 1), name, facts, follow, nested)
        return
    launch = launch_of(words)
    origin = Origin(file=name, line=command.line)
    _world(launch, origin, facts, script.variables.get("CUDA_VISIBLE_DEVICES") or "")
    if re.search(r"(^|/)accelerate$", words[0]):
        _read_flags(Overrides(values=_of_accelerate(launch.launcher), origin=origin), name, command.line, facts, follow)
    over = Overrides(values=launch.stated(), origin=origin)
    flags_first = not launch.files
    if flags_first:
        understood = _read_flags(over, name, command.line, facts, follow)
    for file in (*launch.launcher_files, *launch.files):
        mine = over if file in launch.files and over.values else None
        follow.file(file, facts, mine)
    if not flags_first and not over.used:
        understood = _read_flags(over, name, command.line, facts, follow)
    if over.used or understood:
        for word in launch.unknown:
            where = f"{name}:{command.line}"
            facts.not_understood.append(f"{where}: {word[:60]} may hold arguments, and nothing here states it")


def _of_accelerate(options: dict[str, Any]) -> dict[str, Any]:
    """Flags of `accelerate launch` as keys of its configuration."""
    kinds = {"use_deepspeed": "DEEPSPEED", "use_fsdp": "FSDP", "multi_gpu": "MULTI_GPU"}
    made: dict[str, Any] = {"distributed_type": next((kind for key, kind in kinds.items() if options.get(key)), None)}
    inner = ("zero_stage", "gradient_accumulation_steps", "offload_optimizer_device", "offload_param_device")
    if options.get("use_deepspeed"):
        made |= {f"deepspeed_config.{key}": options[key] for key in (*inner, "deepspeed_config_file") if key in options}
    made |= {f"fsdp_config.{key}": value for key, value in options.items() if key.startswith("fsdp_")}
    made |= {key: options[key] for key in ("mixed_precision",) if key in options}
    return made if len(made) > 1 or made["distributed_type"] else {}


def _read_flags(over: Overrides, name: str, line: int, facts: TrainingFacts, follow: Follow) -> bool:
    """Add the facts of flags that stand alone; False if no format knows them."""
    nested: dict[str, Any] = {}
    for dotted, value in over.values.items():
        _put(nested, dotted.split("."), value)
    document = Located(name=name, value=nested, lines=_lines(nested, line))
    reader = reader_of(document) if nested else None
    if reader is None:
        return False
    facts.format = facts.format or reader.name
    reader.read(document, facts, follow)
    state_stack(reader.name, document, facts)
    return True


#: Deepest nesting of shells inside shells.
_DEEPEST = 5


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
        split = real[0] if real else _recipe(words) or min(1, len(words) - 1)
    before, after = list(words[:split]), list(words[split + 1 :])
    if "--" in after:
        # What stands behind is for the launcher that the program starts.
        before, after = before + after[after.index("--") + 1 :], after[: after.index("--")]
    overrides: dict[str, Any] = {}
    for word in after:
        match = _OVERRIDE.match(word)
        if match:
            overrides[match[1]] = scalar(match[2]) if match[2] else None
    launcher, program = flags(before), flags([word for word in after if not is_argument_variable(word)])
    if _recipe(words):
        overrides |= {"tune_recipe": words[split]} | ({"tune_config": program["config"]} if "config" in program else {})
    folder, stem = program.get("config_path"), program.get("config_name")
    hydra = [f"{folder.rstrip('/')}/{stem}.yaml"] if isinstance(folder, str) and isinstance(stem, str) else []
    files = [*hydra, *(value for key in _NAMES_FILE if isinstance(value := program.get(key), str))]
    files += [word for word in after if _CONFIG_FILE.fullmatch(word) and not word.startswith("-")]
    of_launcher = [value for key in _NAMES_FILE if isinstance(value := launcher.get(key), str)]
    sharding = [program.get(key) for key in ("deepspeed", "deepspeed_config")]
    named = [
        file for file in files if _CONFIG_FILE.search(file) and "$" not in file and file != program.get("deepspeed")
    ]
    first = [file for file in named if file not in sharding]
    return Launch(
        launcher=launcher,
        program=program,
        overrides=overrides,
        launcher_files=tuple(
            dict.fromkeys(file for file in of_launcher if _CONFIG_FILE.search(file) and "$" not in file)
        ),
        files=tuple(dict.fromkeys([*first, *named])),
        unknown=tuple(word for word in after if is_argument_variable(word)),
    )


def _recipe(words: tuple[str, ...]) -> int | None:
    """Where the recipe of `tune run` stands: the first word behind `run` that is no flag, nor its value."""
    if not re.search(r"(^|/)tune$", words[0]) or "run" not in words[:2]:
        return None
    return next(
        (i for i in range(2, len(words)) if not words[i].startswith("-") and not _takes_value(words[i - 1])), None
    )


def _takes_value(word: str) -> bool:
    return word.startswith("--") and "=" not in word


def is_argument_variable(word: str) -> bool:
    """Whether a word is a variable that nothing states and whose name says that it holds arguments."""
    return (
        re.fullmatch(r"\$\{?(\w*(ARG|OPT|FLAG|EXTRA|PARAM|CMD|OPTIONS)\w*|@|\*)(\[[@*]\])?(:[-=+?])?\}?", word.upper())
        is not None
    )


def _put(level: dict[str, Any], keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        inner = level.setdefault(key, {})
        if not isinstance(inner, dict):
            return
        level = inner
    level[keys[-1]] = value


def flags(words: list[str]) -> dict[str, Any]:
    """Flags with their values: none is true, one is a value, several are text; a later flag replaces an earlier one."""
    made: dict[str, list[str]] = {}
    key = ""
    for word in (part for one in words for part in (one.split() if one.startswith("--") and " " in one else [one])):
        match = re.match(r"^--?([A-Za-z][\w.-]*)(?:=(.*))?$", word, re.DOTALL)
        if match:
            key = match[1].replace("-", "_")
            made[key] = [match[2]] if match[2] is not None else []
        elif key and not (made[key] and _OVERRIDE.match(word)):
            made[key].append(word)
    return {
        name: (scalar(values[0]) if len(values) == 1 and values[0] else " ".join(values) or True)
        for name, values in made.items()
    }


def _world(launch: Launch, origin: Origin, facts: TrainingFacts, devices: str) -> None:
    options = launch.launcher
    total = next((options[key] for key in ("num_processes", "np", "n", "ntasks") if key in options), None)
    per_node = options.get("nproc_per_node", options.get("num_gpus", options.get("ntasks_per_node")))
    nodes = options.get("nnodes", options.get("num_nodes", options.get("nodes", 1)))
    if isinstance(nodes, str) and (match := re.fullmatch(r"(\d+):(\d+)", nodes)):
        nodes = int(match[2]) if match[1] == match[2] else None
    if total is None and per_node is None and re.fullmatch(r"\d+(,\d+){1,63}", devices):
        total = devices.count(",") + 1
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
