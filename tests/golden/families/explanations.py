"""Jobs without a plan, estimates, why, the frontier, and whether a plan is right."""

from collections.abc import Iterator
from itertools import cycle
from typing import Any

from tests.golden.question import PLAN_ID, START, Document, Question, plan_question

_LLAMA: Document = {"kind": "preset", "model": "llama-3-8b", "tokens": "500M", "sequence_length": 4096}
_TUNING: Document = {
    "start": START,
    "workload": _LLAMA,
    "training": {"method": "lora", "precision": "bf16"},
    "deadline": "2d",
    "constraints": {"max_nodes": 8},
}
_LARGE: Document = {
    "start": START,
    "workload": {"kind": "preset", "model": "llama-3-70b", "tokens": "1B"},
    "deadline": "4d",
    "constraints": {"max_nodes": 16},
}
_VISION: Document = {
    "start": START,
    "workload": {"kind": "preset", "model": "resnet-50", "samples": "115M"},
    "deadline": "20h",
    "constraints": {"max_nodes": 4, "vendors": ["nvidia"]},
}
_JOBS = {"tuning": _TUNING, "large": _LARGE, "vision": _VISION}

#: Requirements that no hardware keeps.
_IMPOSSIBLE: dict[str, Document] = {
    "no-time": _LARGE | {"deadline": "1h"},
    "no-money": _LARGE | {"budget_usd": 1},
    "no-time-no-money": _LARGE | {"deadline": "1h", "budget_usd": 1},
    "too-sure": _TUNING
    | {"deadline": "90min", "confidence": 0.9999, "constraints": {"max_nodes": 1, "vendors": ["amd"]}},
    "too-small": _LARGE | {"constraints": {"max_nodes": 1, "accelerators": ["T4"]}},
    "too-few": _LARGE | {"constraints": {"max_accelerators": 2}, "deadline": "2d"},
    "no-such-price": _TUNING | {"constraints": {"price_kinds": ["savings_plan_1y"]}},
    "only-owned": _TUNING | {"constraints": {"providers": ["local"]}},
    "no-carbon": _TUNING | {"constraints": {"carbon_budget_kg": 0.001}},
    "fp8-on-ampere": _TUNING | {"training": {"precision": "fp8"}, "constraints": {"accelerators": ["A100-40GB"]}},
    "one-slow-type": _VISION | {"constraints": {"instance_types": ["g4dn.xlarge"], "max_nodes": 1}, "deadline": "6h"},
    "far-region": _LARGE | {"constraints": {"regions": ["aws:af-south-1"], "max_nodes": 4}},
    "china": _TUNING | {"constraints": {"partitions": ["china"], "providers": ["azure"]}},
    "time-wanted": _LARGE | {"objective": "time", "budget_usd": 20},
    "carbon-wanted": _LARGE | {"objective": "carbon", "deadline": "1h"},
    "phases": _LARGE | {"deadline": "12h", "constraints": {"max_nodes": 1, "max_phases": 1}},
}

#: Configurations to estimate: accelerator, how many, and what else is given.
_CONFIGURATIONS: dict[str, tuple[str, int, Document]] = {
    "h100": ("H100", 8, {}),
    "h100-64": ("H100", 64, {"gpus_per_node": 8, "internode_gbps": 3200, "micro_batch": 2}),
    "b200": ("B200", 16, {}),
    "gb200": ("GB200", 8, {}),
    "a100": ("A100 80GB", 4, {}),
    "a100-40": ("A100-40GB-SXM", 16, {"internode_gbps": 400}),
    "v100": ("V100", 8, {}),
    "t4": ("T4", 1, {}),
    "l40s": ("L40S", 4, {}),
    "rtx-4090": ("RTX 4090", 2, {}),
    "mi300x": ("MI300X", 8, {}),
    "tpu-v5e": ("TPU-v5e", 16, {}),
    "tpu-v6e": ("TPU-v6e", 32, {}),
    "trainium": ("Trainium1", 16, {}),
    "layout": ("H100", 16, {"layout": {"tensor": 4, "pipeline": 2, "zero_stage": 1, "checkpointing": "full"}}),
    "sharded": ("A100 80GB", 8, {"layout": {"zero_stage": 3, "checkpointing": "selective"}}),
}
_ESTIMATED: dict[str, Document] = {
    "tuning": _TUNING,
    "large": _LARGE | {"training": {"precision": "auto"}},
    "vision": _VISION | {"constraints": {}, "training": {"precision": "auto"}},
}


def infeasible() -> Iterator[Question]:
    """Jobs that have no plan: what conflicts, and what would have to give."""
    interfaces = cycle(("http", "mcp", "cli"))
    for name, job in _IMPOSSIBLE.items():
        yield plan_question("infeasible", name, next(interfaces), job)


def estimates() -> Iterator[Question]:
    """Jobs on given machines."""
    interfaces, jobs = cycle(("mcp", "cli", "http", "http")), cycle(_ESTIMATED.items())
    for name, (accelerator, gpus, extra) in _CONFIGURATIONS.items():
        for _ in range(2):
            what, job = next(jobs)
            yield _estimate(f"{name}-{what}", next(interfaces), job, {"accelerator": accelerator, "gpus": gpus} | extra)


def _estimate(name: str, interface: str, job: Document, on: Document) -> Question:
    if interface == "http":
        body = {"job": job, "on": on}
        return Question(family="estimates", name=name, interface="http", path="/v1/estimates", body=body)
    if interface == "mcp":
        return Question(family="estimates", name=name, interface="mcp", path="estimate", body={"job": job} | on)
    options: list[str] = []
    words = {"tensor": "tp", "pipeline": "pp"}
    for field, value in on.items():
        text = str(value)
        if isinstance(value, dict):
            text = ",".join(f"{words[part]}={size}" for part, size in value.items() if part in words)
        options += ["--on" if field == "accelerator" else f"--{field.replace('_', '-')}", text]
    arguments = ["estimate", "job.json", "--json", *options]
    return Question(family="estimates", name=name, interface="cli", arguments=arguments, files={"job.json": job})


def why() -> Iterator[Question]:
    """Why a plan is what it is, why not something else, what having something is worth."""
    interfaces = cycle(("cli", "http", "mcp"))
    asked: list[tuple[str, str, str | None]] = [
        ("tuning", "not", None),
        ("tuning", "not", "H100"),
        ("tuning", "not", "A100"),
        ("tuning", "not", "gcp"),
        ("tuning", "not", "on_demand"),
        ("tuning", "not", "p4d.24xlarge"),
        ("tuning", "with", "RTX 4090"),
        ("vision", "not", None),
        ("vision", "not", "spot"),
        ("vision", "not", "us-east-1"),
        ("vision", "with", "google"),
        ("vision", "with", "H100"),
        ("large", "not", None),
        ("large", "not", "azure"),
        ("large", "not", "B200"),
    ]
    for job, relation, name in asked:
        yield _why(f"{job}-{relation}-{name}".replace(" ", "-"), next(interfaces), _JOBS[job], relation, name)
    yield _why("infeasible-not-H100", "http", _IMPOSSIBLE["no-time"], "not", "H100")


def _why(name: str, interface: str, job: Document, relation: str, named: str | None) -> Question:
    if interface == "cli":
        option = [] if named is None else [f"--{relation}", named]
        arguments = ["why", "job.json", "--json", *option]
        return Question(family="why", name=name, interface="cli", arguments=arguments, files={"job.json": job})
    if interface == "http":
        body = {"job": job} if named is None else {"job": job, relation: named}
        return Question(family="why", name=name, interface="http", path="/v1/why", body=body)
    words: dict[str, Any] = {} if named is None else {"not" if relation == "not" else "with": named}
    return Question(family="why", name=name, interface="mcp", path="why", body={"job": job, "detail": "full"} | words)


def frontiers() -> Iterator[Question]:
    """Every best trade of cost against time."""
    for name, job in _JOBS.items():
        for objective in ("cost", "carbon"):
            wanted = job | {"objective": objective}
            key = f"{name}-{objective}"
            if name == "vision":
                yield plan_question("frontier", key, "cli", wanted, arguments=["--frontier"])
            elif name == "large":
                path = "/v1/plans?frontier=true"
                yield Question(family="frontier", name=key, interface="http", path=path, body=wanted)
            else:
                body = {"job": wanted, "frontier": True, "detail": "full"}
                yield Question(family="frontier", name=key, interface="mcp", path="plan", body=body)


def verified() -> Iterator[Question]:
    """Plans that were saved, and read, verified, handed over or summed up again."""
    for name, job in _JOBS.items():
        if name == "large":
            yield Question(
                family="verify", name=name, interface="cli", arguments=["verify", PLAN_ID, "--json"], planned=job
            )
        yield Question(
            family="saved", name=name, interface="http", method="GET", path=f"/v1/plans/{PLAN_ID}", planned=job
        )
        yield Question(
            family="saved", name=f"{name}-shown", interface="cli", arguments=["show", PLAN_ID, "--json"], planned=job
        )
        yield Question(family="saved", name=f"{name}-summary", interface="mcp", path="plan", body={"job": job})
