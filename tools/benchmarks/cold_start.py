"""How long `gpuplan plan` takes as a whole process: start, imports, prices, plan, printing. Prints, asserts nothing.

Run from the repository root: python -m tools.benchmarks.cold_start [RUNS]. The first run loads the embedded prices into
a fresh store and is shown apart; files are in the operating system's cache in all others. Bytecode is kept between
runs in a folder of this benchmark's own, as an installed wheel has it; without it (a checkout where
PYTHONDONTWRITEBYTECODE is set) each run compiles every module anew, which is shown beside it. Processor time stands
beside the clock's, since others at work on the same cores distort it less.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "llama-3-8b.yaml"
COMMANDS = (("version",), ("plan", str(EXAMPLE)), ("plan", str(EXAMPLE), "--json"), ("offers", "--provider", "aws"))


def seconds(command: tuple[str, ...], environment: dict[str, str]) -> tuple[float, float]:
    """Wall and processor time of one process, which must end with a plan or an infeasible answer."""
    began, before = time.perf_counter(), _processor_seconds()
    arguments = [sys.executable, "-m", "gpuplan.api.cli.main", *command]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    took = time.perf_counter() - began, _processor_seconds() - before
    if done.returncode not in {0, 4}:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return took


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with tempfile.TemporaryDirectory() as folder:
        plain = os.environ | {"GPUPLAN_DATABASE_URL": f"sqlite:///{folder}/gpuplan.sqlite3"}
        plain.pop("PYTHONDONTWRITEBYTECODE", None)
        compiled = plain | {"PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        # Libraries have theirs in any case; only this checkout's own modules are compiled each time.
        compiling = plain | {"PYTHONDONTWRITEBYTECODE": "1"}
        seconds(COMMANDS[1], compiled | {"GPUPLAN_DATABASE_URL": f"sqlite:///{folder}/other.sqlite3"})
        print(f"first plan on a fresh store: {seconds(COMMANDS[1], compiled)[0]:.2f} s")
        print(f"{'command':<40} {'median':>8} {'fastest':>8} {'slowest':>8} {'processor':>10}   ({runs} runs, seconds)")
        for command, environment, how in (
            *((command, compiled, "") for command in COMMANDS),
            (COMMANDS[1], compiling, " (compiling)"),
        ):
            seconds(command, environment)
            walls, processor = zip(*(seconds(command, environment) for _ in range(runs)), strict=True)
            name = " ".join(Path(part).name for part in command) + how
            figures = f"{statistics.median(walls):8.2f} {min(walls):8.2f} {max(walls):8.2f}"
            print(f"{name:<40.40} {figures} {min(processor):10.2f}")


if __name__ == "__main__":
    main()
