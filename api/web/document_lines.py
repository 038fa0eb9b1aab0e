"""Finds the line of a field in pasted text, to show faults at their lines."""

from typing import Any

import yaml

#: PyYAML's nodes have marks that its type stubs lack.
Node = Any
Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def line_of(text: str, path: tuple[str | int, ...]) -> int | None:
    """The line (from 1) of the field at `path`, or of its nearest existing parent; None if there is none.

    `text` is YAML or JSON. The result is None if it cannot be parsed.
    """
    try:
        node: Node = yaml.compose(text, Loader=Loader)
    except yaml.YAMLError:
        return None
    line = None
    for part in path:
        inner = _inside(node, part)
        if inner is None:
            break
        line, node = inner
    return line


def _inside(node: Node, part: str | int) -> tuple[int, Node] | None:
    """The line and node of a key or index within a node."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if getattr(key, "value", None) == str(part):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and 0 <= part < len(node.value):
        return node.value[part].start_mark.line + 1, node.value[part]
    return None
