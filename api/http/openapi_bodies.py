"""Request bodies and responses in the OpenAPI document: examples of bodies, and the answers and problems of operations."""

from http import HTTPStatus
from typing import Any

Schema = dict[str, Any]

#: A job that is cheap to plan, with a deadline that leaves a choice.
JOB_EXAMPLE: Schema = {
    "name": "llama-3-8b-lora",
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "200M", "sequence_length": 4096},
    "training": {"method": "lora", "rank": 16, "precision": "bf16"},
    "deadline": "36h",
    "constraints": {"price_kinds": ["on_demand", "spot"], "max_nodes": 8},
}

EXPLICIT_EXAMPLE: Schema = {
    "name": "counted-by-hand",
    "workload": {"kind": "explicit", "total_flops": "1.2e21", "memory_gib": "320 GiB"},
    "deadline": "7d",
    "budget_usd": 20000,
}

ESTIMATE_EXAMPLE: Schema = {
    "job": {"name": "llama-3-8b", "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "15B"}},
    "on": {"accelerator": "H100-80GB-SXM", "gpus": 64, "gpus_per_node": 8, "internode_gbps": 3200},
}

FINISHED_EXAMPLE: Schema = {
    "hours": "31h",
    "throughput": "11800 tokens/s",
    "peak_memory_gib": "61 GiB",
    "preemptions": 1,
}
RUNNING_EXAMPLE: Schema = {"running": True, "share_done": "40%", "hours": 12.5}


def ref(name: str) -> Schema:
    """A reference to one of the document's schemas."""
    return {"$ref": f"#/components/schemas/{name}"}


def document_responses(schema: str, *problems: int, csv: bool = False) -> dict[int | str, dict[str, Any]]:
    """The responses of an operation: 200 with this schema, and `problem_responses`."""
    content: dict[str, Any] = {"application/json": {"schema": ref(schema)}}
    if csv:
        content["text/csv"] = {"schema": {"type": "string"}}
    return {200: {"description": "The answer", "content": content}} | problem_responses(*problems)


def problem_responses(*problems: int) -> dict[int | str, dict[str, Any]]:
    """A problem response for each status; always includes 422 (parameters that are not accepted) and 500."""
    content = {"application/problem+json": {"schema": ref("Problem")}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in (*problems, 422, 500)}


def body_of(schema: Schema, **examples: Schema) -> Schema:
    """A body of this schema, in JSON or YAML, with these examples by name."""
    named = {name: {"value": value} for name, value in examples.items()}
    kinds = ("application/json", "application/yaml")
    return {"required": True, "content": {kind: {"schema": schema, "examples": named} for kind in kinds}}


_IDEMPOTENCY_KEY: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same key with the same request returns the same response; with another request, a 422. Create a new key for each"
    " request, such as `7c1f0a5e-0d3f-4f0e-9a57-2a6f6c1f3b11`.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}


def key_parameter() -> Schema:
    """The header `Idempotency-Key`."""
    return _IDEMPOTENCY_KEY


PLAN_OPERATION: Schema = {
    "requestBody": body_of(ref("JobDocument"), preset=JOB_EXAMPLE, explicit=EXPLICIT_EXAMPLE),
    "parameters": [_IDEMPOTENCY_KEY],
}
ESTIMATE_OPERATION: Schema = {"requestBody": body_of(ref("EstimateDocument"), on_64_h100=ESTIMATE_EXAMPLE)}
IMPORT_EXAMPLE: Schema = {
    "files": {
        "sft.yaml": "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\nfinetuning_type: lora\ncutoff_len: 2048\n"
        "per_device_train_batch_size: 4\ngradient_accumulation_steps: 2\nnum_train_epochs: 2\nbf16: true\n"
    },
    "samples": "50k",
    "gpus": 8,
}
IMPORT_OPERATION: Schema = {"requestBody": body_of(ref("ImportDocument"), llama_factory=IMPORT_EXAMPLE)}
CAPACITY_EXAMPLE: Schema = {"machine": "p5.48xlarge", "nodes": 2, "region": ["us-east-1", "us-west-2"]}
CAPACITY_OPERATION: Schema = {"requestBody": body_of(ref("CapacityDocument"), two_machines=CAPACITY_EXAMPLE)}
ACTUALS_OPERATION: Schema = {
    "requestBody": body_of(ref("ActualsDocument"), finished=FINISHED_EXAMPLE, running=RUNNING_EXAMPLE),
    "parameters": [_IDEMPOTENCY_KEY],
}

WATCH_EXAMPLE: Schema = {"job": JOB_EXAMPLE, "channels": ["team"], "cheaper_by_percent": 10}
WATCH_OPERATION: Schema = {
    "requestBody": body_of(ref("WatchDocument"), cheaper_or_gone=WATCH_EXAMPLE),
    "parameters": [_IDEMPOTENCY_KEY],
}

REFRESH_OPERATION: Schema = {
    "requestBody": body_of(ref("RefreshDocument"), two_clouds={"provider": ["aws", "azure"]}) | {"required": False},
    "parameters": [_IDEMPOTENCY_KEY],
}
