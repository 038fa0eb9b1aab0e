"""Write what users of today's version hold: a database, plan files, a policy. Run once, by the version to keep valid.

`python -m tests.golden.users.make` in the root; the tests beside open what the first release that was recorded wrote, so
it is not run again.
"""

import json
import lzma
import os
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.golden.families.plans import MOVES, SLOW_SPOT, STANDBY
from tests.golden.families.runs import RUN
from tests.golden.interfaces import Interfaces, open_interfaces
from tests.golden.question import START

FOLDER = Path(__file__).parent
TUNING: dict[str, Any] = {
    "name": "tuning",
    "start": START,
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "500M", "sequence_length": 4096},
    "training": {"method": "lora", "precision": "bf16"},
    "deadline": "2d",
    "constraints": {"max_nodes": 4, "vendors": ["nvidia"]},
}
JOBS: dict[str, dict[str, Any]] = {
    "single": TUNING | {"constraints": {"max_nodes": 4, "max_phases": 1, "price_kinds": ["on_demand"]}},
    "behind": TUNING,
    "three-phases": TUNING | {"constraints": {"max_nodes": 4, "vendors": ["nvidia"], "max_phases": 3}},
    "two-phases": {"start": START} | MOVES,
    "standby": {"start": START} | STANDBY,
}
PORTFOLIO: dict[str, Any] = {
    "start": START,
    "slot": "2h",
    "jobs": [{name: value for name, value in TUNING.items() if name != "start"}],
}
SETTINGS: dict[str, Any] = SLOW_SPOT | {
    "channels": [{"name": "ops", "kind": "webhook", "url": "https://ops.invalid/hook", "secret_from": "OPS_SECRET"}]
}


def main() -> None:
    """Write every file into this folder."""
    with TemporaryDirectory() as place, open_interfaces(Path(place)) as interfaces:
        held = _asked(interfaces)
        source = Path(place, "gpuplan.sqlite3")
        with sqlite3.connect(source) as connection, sqlite3.connect(Path(place, "copy")) as copy:
            connection.backup(copy)
        (FOLDER / "gpuplan.sqlite3.xz").write_bytes(lzma.compress(Path(place, "copy").read_bytes(), preset=9))
    for secret, part in (("key", "key"), ("link", "share")):
        del held[part][secret]  # nothing that opens anything is kept, not even in a test
    (FOLDER / "held.json").write_text(json.dumps(held, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _asked(interfaces: Interfaces) -> dict[str, Any]:
    held: dict[str, Any] = {"plans": {}}
    for name, job in JOBS.items():
        files = {"job.json": job, "settings.json": SLOW_SPOT}
        options = ["--settings", "settings.json"] if name == "standby" else []
        answer = interfaces.cli(["plan", "job.json", "--json", *options], files).answer
        (FOLDER / f"plan-{name}.json").write_text(json.dumps(answer, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        held["plans"][name] = answer["plan"]["id"]
    single = held["plans"]["single"]
    held["key"] = interfaces.cli(["keys", "create", "--name", "ci", "--scope", "plan", "--json"], {}).answer
    os.environ["OPS_SECRET"] = "whsec_a2tra2tra2tra2tra2tra2tra2tra2tr"
    watched = {name: value for name, value in TUNING.items() if name != "start"}
    options = ["--channel", "ops", "--settings", "settings.json", "--json"]
    held["watch"] = interfaces.cli(
        ["watch", "add", "job.json", *options], {"job.json": watched, "settings.json": SETTINGS}
    ).answer
    held["share"] = interfaces.http("POST", "/v1/shares", {"plan": single}).answer
    held["actuals"] = interfaces.http("POST", f"/v1/plans/{single}/actuals", {"hours": 9}).answer
    held["run"] = interfaces.http("POST", "/v1/portfolios?iterations=20", PORTFOLIO).answer
    now = ("--time", "1h", "--work-left", "3h30min", "--up", "a", "--at", "a")
    run = {"run.json": RUN}
    interfaces.cli(["run-policy", "run.json", "--save", str(FOLDER / "policy.gpp"), "--json"], run)
    held["advice"] = interfaces.cli(["run-policy", "run.json", *now, "--json"], run).answer
    return held


if __name__ == "__main__":
    main()
