"""Flags of llm.c's `train_gpt2cu`: the batch `-d` is in tokens.

Flags: karpathy/llm.c `train_gpt2.cu` (error_usage), read on 2026-11-27.
"""

from gpuplan.api.imports.derived_facts import data_parallel_world
from gpuplan.api.imports.facts import Amount, Origin, TrainingFacts
from gpuplan.api.imports.key_table import Key, as_scalar, read_keys, readable, size
from gpuplan.api.imports.located_document import Located
from gpuplan.api.imports.reader import Follow, Reader, has

NAME = "llm.c"

TABLE = (
    Key(fact="micro_batch", keys=("b",), read=size, default=4),
    Key(fact="sequence_length", keys=("t",), read=size, default=1024),
    Key(fact="model_name", keys=("e",)),
)


def signs(document: Located) -> int:
    """Its flags of one letter."""
    return 10 if has(document, "b", "t", "d", "e", "i") >= 4 and has(document, "z", "r", "n") >= 2 else 0


def read(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    """State the flags."""
    read_keys(TABLE, document, facts, NAME)
    depth = str(document.get("e") or "")
    if depth.startswith("d") and depth[1:].isdigit() and 0 < int(depth[1:]) < 1000:
        facts.put("layers", int(depth[1:]), document.at("e"))
    batch = readable(size, document.get("d"), "d", document, facts)
    micro, length, world = facts.number("micro_batch"), facts.number("sequence_length"), data_parallel_world(facts)
    if isinstance(batch, int):
        facts.put("global_batch", Amount(batch, "tokens"), document.at("d"))
        if micro and length and world and batch % (micro * length * world) == 0:
            facts.put("gradient_accumulation", int(batch / micro / length / world), document.at("d"))
    stage, recompute, every = (as_scalar(document.get(key)) for key in ("z", "r", "n"))
    if stage in (0, 1):
        facts.put("sharding", f"zero {int(stage)}", document.at("z"))
    if recompute in (0, 1, 2):
        facts.put("checkpointing", "selective" if recompute else "none", document.at("r"))
    if isinstance(every, int) and not isinstance(every, bool) and every > 0:
        facts.put("save_interval", f"{every} steps", document.at("n"))
    data = str(document.get("i") or "").split("/")
    if len(data) > 1:
        facts.put("dataset", data[-2][:200], document.at("i"))
    facts.put("method", "full", Origin(default_of=NAME))


READER = Reader(name=NAME, signs=signs, read=read)
