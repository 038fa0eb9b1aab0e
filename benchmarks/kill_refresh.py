"""What is left of the store when `gpuplan refresh` is killed (SIGKILL) at random moments, 50 unless told otherwise.

Run from the repository root: python -m benchmarks.kill_refresh [RUNS] [SEED]. The cloud is the local Azure of the tests,
in this process. Half of the moments are spread over a whole run, the others lie within the writing of the
snapshot, which starts when the database's log grows. After each kill the store is opened as the next process would:
its current snapshot is read whole and must have the contents that its id stands for, every stored snapshot must be one
that was there before or whole, and the lock must be free. Prints what was left, and how a last refresh ends.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from catalog.snapshot import snapshot_of
from catalog.store import Store

RUNS = 50
SEED = 20261121
_GPUPLAN = (sys.executable, "-m", "api.cli.main", "refresh", "--provider", "azure", "--quiet")
#: A log that grows by more than this since the run began holds the rows of a snapshot.
_WRITING_BYTES = 20_000


def main() -> int:
    """Serve, refresh once to know how long that takes, kill as often as asked, print; 1 if anything was lost."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    pick = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else SEED)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        environment = _served(stack, folder)
        began = time.monotonic()
        _ended(environment)
        usual_seconds = time.monotonic() - began
        found: Counter[str] = Counter()
        for run in range(runs):
            before = _snapshots(environment)
            while_writing = run % 2 == 1
            ended = _killed(environment, folder, pick, usual_seconds, while_writing=while_writing)
            found[f"{ended}, {'while writing' if while_writing else 'at any moment'}"] += 1
            found.update(left(environment, before))
        code = _ended(environment)
        last = left(environment, {})
    print(f"{runs} runs, of {usual_seconds:.1f} s each when they are left alone")
    for what, count in sorted(found.items()):
        print(f"{count:>4}  {what}")
    print(
        f"a last refresh: exit {code}; then {', '.join(f'{count} x {what}' for what, count in Counter(last).items())}"
    )
    lost = [what for what in (*found, *last) if what.startswith("LOST")]
    return 1 if lost or code else 0


def left(environment: dict[str, str], before: dict[str, int]) -> list[str]:
    """What the store holds now in words; those that begin with LOST must not be there."""
    store = Store.open(environment["GPUPLAN_DATABASE_URL"])
    try:
        with store.refreshing():
            said = ["lock free"]
        current = store.current_snapshot_id()
        for each in store.snapshots():
            if each.id in before and each.id != current:
                continue
            rows = store.snapshot(each.id)
            whole = snapshot_of(rows.instance_types, rows.offers).id == each.id and len(rows.offers) == each.offer_count
            said.append("snapshot readable and whole" if whole else f"LOST: half of {each.id[:12]}")
        if not before.keys() <= {each.id for each in store.snapshots()}:
            said.append("LOST: a snapshot that was there")
        said.append("current snapshot is the one before" if current in before else "current snapshot is the new one")
    finally:
        store.close()
    return said


def _snapshots(environment: dict[str, str]) -> dict[str, int]:
    store = Store.open(environment["GPUPLAN_DATABASE_URL"])
    try:
        return {each.id: each.offer_count for each in store.snapshots()}
    finally:
        store.close()


def _ended(environment: dict[str, str]) -> int:
    done = subprocess.run(_GPUPLAN, env=environment, capture_output=True, text=True, check=False)
    print(done.stdout.strip() or done.stderr.strip())
    return done.returncode


def _killed(
    environment: dict[str, str], folder: Path, pick: random.Random, usual_seconds: float, *, while_writing: bool
) -> str:
    """Starts a refresh and kills it at some moment; says whether it had ended before."""
    log = folder / "gpuplan.sqlite3-wal"
    size = log.stat().st_size if log.exists() else 0
    with subprocess.Popen(_GPUPLAN, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        if while_writing:
            while process.poll() is None and not (log.exists() and log.stat().st_size > size + _WRITING_BYTES):
                time.sleep(0.001)
            time.sleep(pick.uniform(0, 0.15))
        else:
            time.sleep(pick.uniform(0, usual_seconds))
        process.send_signal(signal.SIGKILL)
        code = process.wait()
    return "killed" if code == -signal.SIGKILL else f"ended with {code} before it was killed"


def _served(stack: ExitStack, folder: Path) -> dict[str, str]:
    """The environment of a refresh of Azure, whose every row is another one each time: the time of its reading."""
    from tests.clouds.azure import SUBSCRIPTION, azure_cloud

    azure = stack.enter_context(azure_cloud().running())
    foreign = ("GPUPLAN_", "AWS_", "AZURE_", "GOOGLE_", "CLOUDSDK_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return kept | {
        "GPUPLAN_DATABASE_URL": f"sqlite:///{folder / 'gpuplan.sqlite3'}",
        "GPUPLAN_AZURE_RETAIL_ENDPOINT": azure.url,
        "GPUPLAN_AZURE_ARM_ENDPOINT": azure.url,
        "GPUPLAN_ANONYMOUS": "1",
        "AZURE_SUBSCRIPTION_ID": SUBSCRIPTION,
    }


if __name__ == "__main__":
    sys.exit(main())
