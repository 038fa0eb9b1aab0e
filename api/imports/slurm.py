"""What the `#SBATCH` lines of a script ask of Slurm: nodes, accelerators of each, tasks and the time limit.

Options: SchedMD, `sbatch` manual of Slurm 24.11.
"""

import re
import shlex

from gpuplan.api.imports.facts import Machines, Origin, TrainingFacts
from gpuplan.catalog.model.accelerators import accelerator_family
from gpuplan.catalog.runtime.errors import UnusableInput

_LINE = re.compile(r"^#SBATCH[ \t]+(.+)$", re.MULTILINE)
_SHORT = {
    "N": "nodes",
    "t": "time",
    "G": "gpus",
    "p": "partition",
    "C": "constraint",
    "n": "ntasks",
}
_GPUS = re.compile(r"(?:(?:gres/)?gpu:)?(?:([A-Za-z][\w.-]*):)?(\d{1,4})(?:\(.*\))?")


def state_slurm(text: str, name: str, facts: TrainingFacts) -> dict[str, str]:
    """State the machines of an sbatch script; return the variables that Slurm sets in it. Nothing without `#SBATCH`."""
    options = _options(text)
    if not options:
        return {}
    first = _LINE.search(text)
    origin = Origin(file=name, line=text[: first.start()].count("\n") + 1 if first else None)
    facts.format = facts.format or "sbatch script"
    nodes = _whole(options.get("nodes", "1").partition("-")[2] or options.get("nodes", "1"))
    ranged = "-" in options.get("nodes", "")
    if ranged:
        facts.notes.append(
            f"--nodes {options['nodes'][:20]} is a range, so the processes are not known; its end is priced"
        )
    if "array" in options:
        facts.notes.append(f"--array {options['array'][:20]} starts several such jobs; one of them is planned")
    accelerator, per_node = _accelerators(options, nodes)
    if accelerator is None and per_node:
        accelerator = _by_name(options, facts)
    hours = _hours(options.get("time", ""))
    facts.machines = Machines(origin=origin, accelerator=accelerator, per_node=per_node, nodes=nodes, hours=hours)
    if per_node and nodes and not ranged and ("nodes" in options or "gpus" in options):
        facts.put("stated_world_size", per_node * nodes, origin)
    tasks = _whole(options.get("ntasks-per-node", ""))
    total = _whole(options.get("ntasks", "")) or (tasks * nodes if tasks and nodes else None)
    values = {
        "SLURM_NNODES": nodes,
        "SLURM_JOB_NUM_NODES": nodes,
        "SLURM_GPUS_ON_NODE": per_node,
        "SLURM_GPUS_PER_NODE": per_node,
        "SLURM_NTASKS": total,
        "SLURM_NTASKS_PER_NODE": tasks,
    }
    return {key: str(value) for key, value in values.items() if value}


def _options(text: str) -> dict[str, str]:
    """The long names of options with their values; the first one stays, as values of lists of accelerators do."""
    made: dict[str, str] = {}
    for match in _LINE.finditer(text):
        try:
            words = shlex.split(match[1], comments=True)
        except ValueError:
            words = match[1].split()
        for index, word in enumerate(words):
            long = re.fullmatch(r"--([a-z-]+)(?:=(.*))?", word)
            short = re.fullmatch(r"-([A-Za-z])=?(.*)", word)
            following = words[index + 1] if index + 1 < len(words) else ""
            if long:
                made.setdefault(long[1], following if long[2] is None else long[2])
            elif short and short[1] in _SHORT:
                made.setdefault(_SHORT[short[1]], short[2] or following)
    return made


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[1-9]\d{0,5}", text) else None


def _accelerators(options: dict[str, str], nodes: int | None) -> tuple[str | None, int | None]:
    """Name and number of the accelerators of a node; None for what is not stated."""
    per_node = options.get("gpus-per-node")
    if per_node is None:
        per_node = next((one for one in options.get("gres", "").split(",") if one.startswith("gpu")), None)
        per_node = f"{per_node}:1" if per_node is not None and not re.search(r":\d+(\(.*\))?$", per_node) else per_node
    match = _GPUS.fullmatch(per_node or "")
    if match:
        return match[1], int(match[2]) or None
    match = _GPUS.fullmatch(options.get("gpus-per-task", ""))
    tasks = _whole(options.get("ntasks-per-node", ""))
    if match and tasks:
        return match[1], tasks * int(match[2]) or None
    match = _GPUS.fullmatch(options.get("gpus", ""))
    if match and nodes and int(match[2]) % nodes == 0:
        return match[1], int(match[2]) // nodes or None
    return None, None


def _by_name(options: dict[str, str], facts: TrainingFacts) -> str | None:
    """The accelerator that a required feature or the name of the partition names, if it is one alone."""
    for option in ("constraint", "partition"):
        stated = options.get(option, "")
        parts = [part for part in re.split(r"[&|,\[\]()*]+", stated) if part]
        known: set[str] = {
            name for part in parts for name in [part, *part.split("-"), *part.split("_")] if _is_known(name)
        }
        names: list[str] = [name for name in known if not any(name != other and name in other for other in known)]
        if len(names) == 1:
            facts.notes.append(f"accelerators are taken as {names[0]}, by --{option} {stated[:60]}")
            return names[0]
    return None


def _is_known(name: str) -> bool:
    if len(name) < 2 or not re.search(r"\d", name) or name.isdigit():
        return False
    try:
        accelerator_family(name)
    except UnusableInput:
        return False
    return True


def _hours(text: str) -> float | None:
    """Hours of a time limit of Slurm: minutes, hours:minutes:seconds, days-hours and so on."""
    match = re.fullmatch(r"(?:(\d{1,4})-)?(\d{1,5})(?::(\d{1,2}))?(?::(\d{1,2}))?", text)
    if match is None:
        return None
    days, first, second, third = (int(part or 0) for part in match.groups())
    if match[1] is None and match[3] is None:
        return first / 60
    if match[1] is None and match[4] is None:
        return first / 60 + second / 3600
    return 24 * days + first + second / 60 + third / 3600
