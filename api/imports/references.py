"""References inside a configuration, `${a.b}` and `${multiply:4, ${.width}}`, replaced by what they name.

The syntax is that of OmegaConf (omry/omegaconf, documentation of 2.3). Only references inside the file and products are
evaluated; `${oc.env:NAME}` takes its stated default, because the environment is not read. What cannot be evaluated stays.
"""

import re
from dataclasses import replace
from typing import Any

from gpuplan.api.imports.facts import TrainingFacts
from gpuplan.api.imports.located_document import Located, scalar

_INNER = re.compile(r"\$\{([^${}]{1,300})\}")
#: Rounds of replacement, so that a circle ends.
_ROUNDS = 8
#: Longest text that a replacement may make.
_LONGEST = 2000


def resolved(document: Located, facts: TrainingFacts) -> Located:
    """The same document with references replaced."""
    return replace(document, value=_walk(document.value, document.value, ()))


def _walk(value: Any, root: Any, path: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {key: _walk(inner, root, (*path, str(key))) for key, inner in value.items()}
    if isinstance(value, list):
        return [_walk(inner, root, (*path, str(index))) for index, inner in enumerate(value)]
    return _replaced(value, root, path) if isinstance(value, str) and "${" in value else value


def _replaced(text: str, root: Any, path: tuple[str, ...]) -> Any:
    for _ in range(_ROUNDS):
        whole = _INNER.fullmatch(text)
        if whole:
            value = _named(whole[1], root, path)
            if value is None or isinstance(value, dict | list):
                return text
            if not (isinstance(value, str) and "${" in value):
                return value
            text = value
            continue
        after = _INNER.sub(lambda match: _as_text(match, root, path), text)
        if after == text or len(after) > _LONGEST:
            return text
        text = after
        if "${" not in text:
            return text
    return text


def _as_text(match: re.Match[str], root: Any, path: tuple[str, ...]) -> str:
    value = _named(match[1], root, path)
    return match[0] if value is None or isinstance(value, dict | list) else str(value)


def _named(name: str, root: Any, path: tuple[str, ...]) -> Any:
    """What one reference names; None if nothing here states it."""
    resolver, colon, arguments = name.partition(":")
    if colon:
        parts = [scalar(part.strip()) if part.strip() else None for part in arguments.split(",")]
        if resolver in {"multiply", "mul"} and all(isinstance(part, int | float) for part in parts):
            product: float = 1
            for part in parts:
                product *= part  # type: ignore[operator]
            return product if abs(product) < 1e18 else None
        return parts[1] if resolver in {"oc.env", "env"} and len(parts) > 1 else None
    if name.startswith("."):
        up = len(name) - len(name.lstrip("."))
        return _at(root, (*path[: len(path) - up], *name.lstrip(".").split(".")))
    keys = tuple(name.split("."))
    value = _at(root, keys)
    # Groups of Hydra are packages, so that their own name stands before references from outside.
    return _at(root, keys[1:]) if value is None and len(keys) > 1 else value


def _at(root: Any, keys: tuple[str, ...]) -> Any:
    value = root
    for key in keys:
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value
