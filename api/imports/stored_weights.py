"""`model.safetensors.index.json`: how many bytes a model's weights have, and how many parameters that makes."""

import json

from gpuplan.api.imports.facts import Origin, TrainingFacts

INDEX = "model.safetensors.index.json"
#: The index of DeepSeek-V3, with 256 experts in 58 layers, has 9 MB.
MOST_INDEX_BYTES = 32 * 2**20
_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
#: Counted and stored parameters differ by no more where the count is of the whole model.
_SAME = 0.01


def state_stored_weights(content: bytes, facts: TrainingFacts) -> None:
    """State the bytes of an index, and compare their parameters with those that the dimensions give."""
    total = _total_bytes(content)
    if total is None:
        facts.not_understood.append(f"{INDEX} states no metadata.total_size")
        return
    note = f"{INDEX}: {total:,} bytes of weights"
    size = _BYTES.get(facts.text("stored_dtype"))
    if size is None:
        facts.notes.append(note)
        return
    stored, of_dimensions = total / size, facts.number("parameters_total")
    note += f", which are {stored / 1e9:.3f} B parameters in {facts.text('stored_dtype')}"
    whole = (of_dimensions or 0) + sum(facts.beside.values())
    if of_dimensions is None:
        facts.put("parameters_total", round(stored), Origin(file=INDEX, because="bytes of all weights"))
    elif min(abs(stored / whole - 1), abs(stored / of_dimensions - 1)) > _SAME:
        note += f", {100 * (stored / whole - 1):+.0f} % from the dimensions"
    facts.notes.append(note)


def _total_bytes(content: bytes) -> int | None:
    try:
        document = json.loads(content) if len(content) <= MOST_INDEX_BYTES else None
    except (ValueError, RecursionError):
        return None
    metadata = document.get("metadata") if isinstance(document, dict) else None
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    if isinstance(total, bool) or not isinstance(total, int | float) or not 0 < total < 1e17:
        return None
    return int(total)
