"""Where a field stands in the text that a user pasted, so that what is wrong is shown at its line."""

from typing import Any

import yaml

#: PyYAML's nodes carry marks that its stubs leave out.
Node = Any
Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def line_of(text: str, path: tuple[str | int, ...]) -> int | None:
    """The line (from 1) of the field at `path`, or of the nearest part around it that is there; None without any.

    `text` is YAML or JSON that has been read before; what cannot be read has no lines.
    """
    try:
        node: Node = yaml.compose(text, Loader=Loader)
    except yaml.YAMLError:
        return None
    line = None
    for part in path:
        found = _inside(node, part)
        if found is None:
            break
        line, node = found
    return line


def _inside(node: Node, part: str | int) -> tuple[int, Node] | None:
    """The line and the node of a key or a number within a node."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if getattr(key, "value", None) == str(part):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and 0 <= part < len(node.value):
        return node.value[part].start_mark.line + 1, node.value[part]
    return None
