"""The FSDP part of accelerate and axolotl files: strategy, version, offload, checkpointing.

Keys: huggingface/accelerate `src/accelerate/utils/dataclasses.py` (FullyShardedDataParallelPlugin), read on 2026-11-27.
"""

from typing import Any

from gpuplan.api.imports.facts import TrainingFacts
from gpuplan.api.imports.key_table import as_scalar
from gpuplan.api.imports.located_document import Located

STRATEGIES = {
    "1": "full_shard",
    "2": "shard_grad_op",
    "3": "no_shard",
    "4": "hybrid_shard",
    "5": "hybrid_shard_zero2",
    "FULL_SHARD": "full_shard",
    "SHARD_GRAD_OP": "shard_grad_op",
    "NO_SHARD": "no_shard",
    "HYBRID_SHARD": "hybrid_shard",
    "HYBRID_SHARD_ZERO2": "hybrid_shard_zero2",
}


def state_sharding(document: Located, key: str, facts: TrainingFacts, *, version: Any = None) -> None:
    """State sharding, offload and checkpointing of the part at `key`; keys may carry the prefix `fsdp_`."""
    part = document.under(key)

    def get(name: str) -> Any:
        return as_scalar(part.first(f"fsdp_{name}", name))

    def at(name: str) -> Any:
        return part.at(f"fsdp_{name}", name)

    given = part.first("fsdp_version") or version
    second = str(given) == "2"
    strategy = STRATEGIES.get(str(get("sharding_strategy")).upper(), "")
    mesh = facts.text("sharding")
    if second and not mesh.startswith("fsdp2"):
        shards = get("reshard_after_forward")
        kind = "shard_grad_op" if shards is False else "full_shard"
        origin = at("reshard_after_forward") if shards is not None else document.at(key)
        if not mesh or "fsdp full" in mesh:
            facts.replace("sharding", f"fsdp2 {kind}", origin)
    elif strategy:
        facts.put("sharding", f"fsdp {strategy}", at("sharding_strategy"))
    if isinstance(get("offload_params"), bool):
        facts.put("offload", "parameters" if get("offload_params") else "none", at("offload_params"))
    if get("activation_checkpointing") is True:
        facts.put("checkpointing", "full", at("activation_checkpointing"))
    elif get("activation_checkpointing") is False:
        facts.put("checkpointing", "none", at("activation_checkpointing"))
