"""The size of the data set that a configuration names: a file within the root, or, where asked, by the hub's size API.

Size API: https://huggingface.co/docs/dataset-viewer/size, read on 2026-11-27.
"""

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gpuplan.api.imports.dataset_count import DatasetSize, count_dataset, is_countable
from gpuplan.api.imports.facts import TrainingFacts
from gpuplan.api.imports.model_lookup import is_model_id
from gpuplan.catalog.runtime.errors import UnusableInput

_TIMEOUT = 10.0
_HUB = "https://huggingface.co"
#: `train[:20%]` and `train[:5000]` of the datasets library.
_SLICE = re.compile(r"(?P<split>[\w.-]+)\[:(?P<to>\d{1,12})(?P<percent>%?)\]")


def named_size(facts: TrainingFacts, folder: Path, root: Path, *, online: bool) -> DatasetSize | None:
    """The size of the one data set that facts name; None if there are several, or none that can be counted.

    Files are looked up in `folder` and `root`, and read only under `root`. Raises `UnusableInput` if the hub does not tell.
    """
    if len(facts.dataset_files) == 1:
        for base in (folder, root):
            path = Path(os.path.normpath(base / facts.dataset_files[0]))
            if is_countable(path) and path.resolve().is_relative_to(root):
                return count_dataset(path)
    name, _, detail = facts.text("dataset").partition(" ")
    several = len(facts.dataset_files) > 1 or "," in facts.text("dataset")
    return hub_size(name, detail) if online and is_model_id(name) and not several else None


def hub_size(name: str, detail: str = "") -> DatasetSize:
    """The size of a split of a data set on the hub; `detail` is a split, a slice of one, or a configuration.

    The bytes are those of all columns in memory. Raises `UnusableInput`.
    """
    sliced = _SLICE.fullmatch(detail)
    wanted = sliced["split"] if sliced else detail
    splits = _splits(name)
    listed = [one for one in splits if one["split"] == wanted] or [
        one for one in splits if one["config"] == (wanted or "default") and one["split"].startswith("train")
    ]
    listed = listed or ([one for one in splits if one["split"] == "train"] if not wanted else [])
    if len(listed) != 1:
        names = ", ".join(sorted({f"{one['config']}/{one['split']}" for one in splits}))[:300]
        message = f"the hub lists {names or 'nothing'} for {name}; give --samples or --tokens"
        raise UnusableInput.at("dataset", message=message)
    rows, text_bytes = float(listed[0]["num_rows"]), float(listed[0]["num_bytes_memory"])
    most = rows
    if sliced:
        most = rows * int(sliced["to"]) / 100 if sliced["percent"] else float(sliced["to"])
    share = min(1.0, most / rows)
    return DatasetSize(name=f"{name} {detail}".strip(), samples=rows * share, text_bytes=text_bytes * share)


def _splits(name: str) -> list[dict[str, Any]]:
    import httpx

    url = f"{_size_endpoint()}/size"
    try:
        reply = httpx.get(url, params={"dataset": name}, timeout=_TIMEOUT, follow_redirects=True)
    except httpx.HTTPError as error:
        raise UnusableInput.at("dataset", message=f"{url} does not answer: {type(error).__name__}") from None
    if reply.status_code != httpx.codes.OK:
        message = f"{url} answers {reply.status_code} for {name}; give --samples, --tokens or --data"
        raise UnusableInput.at("dataset", message=message)
    try:
        rows = reply.json()["size"]["splits"]
        return [
            one
            for one in rows
            if isinstance(one["config"], str) and isinstance(one["split"], str)
            if one["num_rows"] > 0 and one["num_bytes_memory"] > 0
        ]
    except (ValueError, KeyError, TypeError):
        raise UnusableInput.at("dataset", message=f"{url} gives no sizes for {name}; give --samples") from None


def _size_endpoint() -> str:
    """The host of the size API: as the datasets library has it, a subdomain of the hub; a bare address serves it itself."""
    endpoint = (os.environ.get("HF_ENDPOINT") or _HUB).rstrip("/")
    host = urlsplit(endpoint).hostname or ""
    is_address = host == "localhost" or ":" in host or host.replace(".", "").isdigit()
    return endpoint if is_address else endpoint.replace("://", "://datasets-server.", 1)
