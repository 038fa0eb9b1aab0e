"""Turns a module that declares answers as dataclasses into one that declares their JSON objects as typed dictionaries.

The rules of the declarations are those of `planner/model/wire.py`.
"""

import ast
import re
from collections.abc import Iterator

#: Types of the service by those of its JSON.
_JSON = {"Decimal": "str", "datetime": "str", "tuple": "list"}
_IMPORTS = "from typing import Any, Literal, NotRequired, TypedDict"


def typed_dicts(source: str, package: str) -> str:
    """The module of the client for a module of the service; other modules of answers are those in `package`."""
    docstring, *rest = [part for statement in ast.parse(source).body for part in _declared(statement, package)]
    module = ast.Module([docstring, ast.parse(_IMPORTS).body[0], *rest], [])
    # A text below a field is a docstring, which `unparse` does not know.
    return re.sub(
        r"""^( *)(["'])(?!\2)(.*)\2$""",
        r'\1"""\3"""',
        ast.unparse(ast.fix_missing_locations(module)),
        flags=re.MULTILINE,
    )


def _declared(statement: ast.stmt, package: str) -> Iterator[ast.stmt]:
    """What the client's module has for a statement; nothing for functions, constants and other libraries."""
    match statement:
        case ast.ImportFrom(module=str(name), names=names) if name.startswith("gpuplan."):
            yield ast.ImportFrom(f"{package}.{name.rsplit('.', 1)[1]}", names, 0)
        case ast.TypeAlias(value=value):
            statement.value = _json_type(value)
            yield statement
        case ast.ClassDef():
            yield from _typed_dict(statement)
        case ast.Expr():
            yield statement
        case _:
            pass


def _typed_dict(declared: ast.ClassDef) -> Iterator[ast.stmt]:
    """A class, or a call of `TypedDict` if Python reserves the name of a key."""
    body = [part for part in map(_member, declared.body) if part is not None]
    fields = [part for part in body if isinstance(part, ast.AnnAssign)]
    names = [ast.unparse(part.target) for part in fields]
    if not any(name.endswith("_") for name in names):
        yield ast.ClassDef(declared.name, declared.bases or [ast.Name("TypedDict")], [], body, [], type_params=[])
        return
    if declared.bases:
        raise ValueError(f"{declared.name} inherits fields and renames one; TypedDict has no such form")
    keys: list[ast.expr | None] = [ast.Constant(name.removesuffix("_")) for name in names]
    arguments = [ast.Constant(declared.name), ast.Dict(keys, [part.annotation for part in fields])]
    yield ast.Assign([ast.Name(declared.name)], ast.Call(ast.Name("TypedDict"), arguments, []), lineno=0)
    yield body[0]


def _member(part: ast.stmt) -> ast.stmt | None:
    """A field with the type of its JSON, or a text that describes one."""
    if isinstance(part, ast.Expr):
        return part
    if not isinstance(part, ast.AnnAssign) or ast.unparse(part.annotation).startswith("ClassVar"):
        return None
    annotation = _json_type(part.annotation)
    if _has_default(part.value):
        if not isinstance(annotation, ast.BinOp):
            raise ValueError(f"{ast.unparse(part)} has a default, but is not null where it is absent")
        annotation = ast.Subscript(ast.Name("NotRequired"), annotation.left)
    return ast.AnnAssign(part.target, annotation, None, 1)


def _has_default(value: ast.expr | None) -> bool:
    """Whether a field may be left out; `field(metadata=...)` alone gives it no default."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
        return any(keyword.arg == "default" for keyword in value.keywords)
    return value is not None


def _json_type(annotation: ast.expr) -> ast.expr:
    """The type of the JSON of a field: text for money and times, a list for a tuple."""
    text = ast.unparse(annotation).replace(", ...]", "]")
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = _JSON.get(node.id, node.id)
    return tree.body
