"""Jobs under way, and runs on machines that may be taken away."""

import random
from collections.abc import Iterator
from itertools import cycle

from tests.golden.question import PLAN_ID, START, Document, Question

#: A job of some thirty hours on rented machines that nobody takes away.
_STEADY: Document = {
    "start": START,
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "2B", "sequence_length": 4096},
    "training": {"method": "lora", "precision": "bf16"},
    "deadline": "36h",
    "budget_usd": 20000,
    "constraints": {"max_nodes": 8, "max_phases": 1, "price_kinds": ["on_demand"], "vendors": ["nvidia"]},
}
_SPOT: Document = _STEADY | {"constraints": {"max_nodes": 4, "providers": ["aws", "gcp"], "vendors": ["nvidia"]}}
_ON: Document = {"instance_type": "p4d.24xlarge", "nodes": 1, "provider": "aws", "region": "us-east-1"}

#: How far a job is, and when it stands so.
_SITUATIONS: dict[str, tuple[Document, str]] = {
    "on-time": ({"done": "40%", "spent_usd": 300}, "2026-11-20T12:00Z"),
    "early": ({"done": "80%", "spent_usd": 200}, "2026-11-20T10:00Z"),
    "late": ({"done": "20%", "spent_usd": 500}, "2026-11-21T02:00Z"),
    "slow": ({"done": "30%", "spent_usd": 300, "rate": "9000 tokens/s"}, "2026-11-20T14:00Z"),
    "tokens": ({"done": "1B tokens", "spent_usd": "$250"}, "2026-11-20T14:00Z"),
    "gone": ({"done": "50%", "saved": "48%", "up": False}, "2026-11-20T14:00Z"),
    "too-late": ({"done": "10%"}, "2026-11-21T11:12Z"),
    "spent": ({"done": "30%", "spent_usd": 19990}, "2026-11-20T14:00Z"),
}


def replans() -> Iterator[Question]:
    """What to do with a job that is under way."""
    interfaces = cycle(("http", "mcp", "cli"))
    for what, job in (("steady", _STEADY), ("spot", _SPOT)):
        for name, (running, now) in _SITUATIONS.items():
            yield _replan(f"{what}-{name}", next(interfaces), job, running, now)


def _replan(name: str, interface: str, job: Document, running: Document, now: str) -> Question:
    """Under its plan or, over MCP, which takes no time for now, with nothing done yet and other machines at hand."""
    if interface == "http":
        body = {"plan": PLAN_ID, "running": running, "now": now}
        return Question(family="replan", name=name, interface="http", path="/v1/replan", body=body, planned=job)
    if interface == "mcp":
        body = {"job": job, "running": running | {"on": _ON}, "now": now}
        return Question(family="replan", name=name, interface="http", path="/v1/replan", body=body)
    options = [text for key, value in running.items() for text in (f"--{_OPTIONS.get(key, key)}", _option_text(value))]
    arguments = ["replan", "--plan", PLAN_ID, "--json", "--now", now, *options]
    return Question(family="replan", name=name, interface="cli", arguments=arguments, planned=job)


_OPTIONS = {"spent_usd": "spent"}


def _option_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


RUN: Document = {
    "name": "fine-tune",
    "work": "4h",
    "deadline": "6h",
    "changeover": "15min",
    "step": "15min",
    "on_demand_usd_per_hour": 10,
    "places": [
        {"name": "a", "usd_per_hour": 3, "region": "east"},
        {"name": "b", "usd_per_hour": 2.5, "region": "west", "mean_up": "3h", "mean_down": "1h"},
    ],
    "moving": {"usd": 1, "takes": "5min"},
}
_RUNS: dict[str, Document] = {
    "two-places": RUN,
    "tight": RUN | {"deadline": "4h45min"},
    "loose": RUN | {"deadline": "16h"},
    "one-place": RUN | {"places": [{"name": "a", "usd_per_hour": 3, "mean_up": "3h", "mean_down": "1h"}]},
    "nodes": RUN | {"nodes": 8, "work": "8h", "deadline": "14h", "step": "30min"},
    "checkpoints": RUN | {"checkpoint_write": "2min", "checkpoint_every": "30min"},
    "dear": RUN | {"places": [{"name": "a", "usd_per_hour": 9.8, "mean_up": "1h", "mean_down": "1h"}]},
}
_NOW: dict[str, list[str]] = {
    "start": ["--time", "0", "--work-left", "4h", "--up", "a", "--data-at", "a"],
    "stay": ["--time", "1h", "--work-left", "3h30min", "--up", "a", "--at", "a", "--since", "a=5h"],
    "switch": ["--time", "1h45min", "--work-left", "4h", "--up", "a,b"],
    "on-demand": ["--time", "1h45min", "--work-left", "4h", "--at", "on-demand"],
    "wait": ["--time", "30min", "--work-left", "4h"],
}


def _trace(name: str, seed: int) -> Document:
    """Whether a place had machines, every quarter of an hour for 40 hours."""
    draw, up, data = random.Random(seed), True, []
    for _ in range(160):
        up = up if draw.random() < 0.9 else not up
        data.append(int(up))
    return {"name": name, "metadata": {"gap_seconds": 900}, "data": data}


def spot_policies() -> Iterator[Question]:
    """What to do in a run on interruptible machines, and what that would have cost."""
    for name, run in _RUNS.items():
        yield Question(family="spot-policy", name=name, interface="http", path="/v1/run-policies", body={"run": run})
    for name, now in _NOW.items():
        arguments = ["run-policy", "run.json", *now, "--json"]
        yield Question(
            family="spot-policy", name=f"now-{name}", interface="cli", arguments=arguments, files={"run.json": RUN}
        )
    traces = [_trace("a", 1), _trace("b", 2)]
    fitted = {"run": RUN, "fit": traces}
    yield Question(family="spot-policy", name="fitted", interface="http", path="/v1/run-policies", body=fitted)
    for seed in (1, 7):
        body = {"run": RUN, "traces": traces, "starts": 5, "seed": seed}
        yield Question(family="spot-policy", name=f"replay-{seed}", interface="http", path="/v1/simulations", body=body)
    work = {"kind": "preset", "model": "llama-3-8b", "tokens": "200M", "sequence_length": 4096}
    spot = _SPOT | {
        "workload": work,
        "deadline": "12h",
        "constraints": {"providers": ["aws"], "price_kinds": ["spot"], "max_nodes": 1},
    }
    yield Question(
        family="spot-policy",
        name="of-a-plan",
        interface="cli",
        arguments=["run-policy", "--plan", PLAN_ID, "--json"],
        planned=spot,
    )
