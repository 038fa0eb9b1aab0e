"""How long `gpuplan plan` takes as a whole process: start, imports, prices, plan, printing. Prints, asserts nothing.

Run from the repository root: python -m benchmarks.cold_start [RUNS]. The first run loads the embedded prices into
a fresh store and is shown apart; files are in the operating system's cache in all others.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLE = Path(__file__).parent.parent / "examples" / "llama-3-8b.yaml"
COMMANDS = (("version",), ("plan", str(EXAMPLE)), ("plan", str(EXAMPLE), "--json"), ("offers", "--provider", "aws"))


def seconds(command: tuple[str, ...], environment: dict[str, str]) -> float:
    """Wall time of one process, which must end with a plan or an infeasible answer."""
    began = time.perf_counter()
    arguments = [sys.executable, "-m", "api.cli.main", *command]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    if done.returncode not in {0, 4}:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return took


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"GPUPLAN_DATABASE_URL": f"sqlite:///{folder}/gpuplan.sqlite3"}
        print(f"first plan on a fresh store: {seconds(COMMANDS[1], environment):.2f} s")
        print(f"{'command':<24} {'median':>8} {'fastest':>8} {'slowest':>8}   ({runs} runs, seconds)")
        for command in COMMANDS:
            took = [seconds(command, environment) for _ in range(runs)]
            name = " ".join(Path(part).name for part in command)
            print(f"{name:<24.24} {statistics.median(took):8.2f} {min(took):8.2f} {max(took):8.2f}")


if __name__ == "__main__":
    main()
