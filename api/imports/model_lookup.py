"""The configuration of a model by its Hugging Face id: the user's hub cache, then, where asked, the hub."""

import os
import re
from pathlib import Path

from gpuplan.api.imports.facts import Origin, TrainingFacts
from gpuplan.api.imports.located_document import MOST_BYTES, decoded
from gpuplan.api.imports.reading import read_text
from gpuplan.api.imports.stored_weights import INDEX, MOST_INDEX_BYTES, state_stored_weights
from gpuplan.catalog.runtime.errors import UnusableInput

#: An id on the hub: owner and name.
_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
#: Seconds to wait for the hub.
_TIMEOUT = 10.0


def is_model_id(text: str) -> bool:
    """Whether text is spelled as an id on the hub."""
    return _ID.fullmatch(text) is not None and ".." not in text


def model_facts(model: str, *, online: bool) -> TrainingFacts:
    """Facts of a model by id: its name, and its dimensions if they are in the cache or, with `online`, on the hub."""
    facts = _cached(model) or (_fetched(model) if online else None)
    if facts is None:
        facts = TrainingFacts(format="model id", files=[model])
    facts.facts.pop("model_name", None)
    facts.put("model_name", model, Origin(file=model))
    return facts


def _cached(model: str) -> TrainingFacts | None:
    home = os.environ.get("HF_HOME") or str(Path.home() / ".cache" / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub")
    folder = cache / f"models--{model.replace('/', '--')}" / "snapshots"
    for path in sorted(folder.glob("*/config.json"))[:1]:
        content = _bytes_of(path, MOST_BYTES)
        facts = read_text(decoded(content, "config.json"), f"{model}/config.json")
        index = path.parent / INDEX
        if index.is_file():
            state_stored_weights(_bytes_of(index, MOST_INDEX_BYTES), facts)
        return facts
    return None


def _bytes_of(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise UnusableInput.at("from", message=f"cannot read {str(path)!r}: {error.strerror}") from None


def _fetched(model: str) -> TrainingFacts:
    import httpx

    endpoint = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
    try:
        with httpx.stream(
            "GET", f"{endpoint}/{model}/resolve/main/config.json", timeout=_TIMEOUT, follow_redirects=True
        ) as reply:
            if reply.status_code != httpx.codes.OK:
                message = (
                    f"{endpoint} answers {reply.status_code} for {model}; it may be gated: download its config.json"
                )
                raise UnusableInput.at("from", message=message)
            content = b""
            for part in reply.iter_bytes():
                content += part
                if len(content) > MOST_BYTES:
                    break
    except httpx.HTTPError as error:
        raise UnusableInput.at("from", message=f"{endpoint} does not answer: {type(error).__name__}") from None
    return read_text(decoded(content, "config.json"), f"{model}/config.json")
