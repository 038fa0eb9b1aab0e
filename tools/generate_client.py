"""`python -m tools.generate_client`: write the generated half of the HTTP client (`clients/python`), which is committed.

`client.py`, the blocking client, is `async_client.py` without `async` and `await`. `answers/` has the JSON of all answers as
typed dictionaries, made from the service's own declarations, so that the client does not depend on gpuplan.

`--check` writes nothing and fails if a file is out of date.

Turns a module that declares answers as dataclasses into one that declares their JSON objects as typed dictionaries.

The rules of the declarations are those of `planner/model/wire.py`.
"""

import argparse
import ast
import importlib.util
import io
import re
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from pathlib import Path

from gpuplan.api.schemas import service_answers

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


ROOT = Path(__file__).resolve().parents[1]
CLIENT = ROOT / "clients" / "python" / "src" / "gpuplan_client"
#: The module that names all answers.
NAMES = Path(service_answers.__file__)
#: Names that differ between the two clients.
BLOCKING = {
    "AsyncClient": "Client",
    "AsyncBaseTransport": "BaseTransport",
    "AsyncIterator": "Iterator",
    "AsyncRetrying": "Retrying",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "aclose": "close",
}
#: Modules of the service whose answers the client has in another module: there users import their types.
PARTS = {"capacity_ladder": "shared", "procurement_sources": "procurement"}
_GENERATED = "# Generated by tools/generate_client.py from {source}: edit there, then `make client`.\n"


def blocking(source: str) -> str:
    """The same module for callers that do not await: each token of `BLOCKING` replaced, `async` and `await` dropped.

    The module's docstring goes too, since it describes the other one.
    """
    lines = source.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for token in reversed(tokens):
        if token.type != tokenize.NAME:
            continue
        (row, start), (_, end) = token.start, token.end
        line = lines[row - 1]
        if token.string in {"async", "await"}:
            lines[row - 1] = line[:start] + line[end:].removeprefix(" ")
        elif token.string in BLOCKING:
            lines[row - 1] = line[:start] + BLOCKING[token.string] + line[end:]
    docstring = next(token for token in tokens if token.type == tokenize.STRING)
    return (
        _GENERATED.format(source="async_client.py")
        + '"""The client that blocks: one method per operation of the service."""\n'
        + "".join(lines[docstring.end[0] :])
    )


def generated() -> dict[str, str]:
    """Every generated file by its path below the client's package."""
    files = {"client.py": blocking((CLIENT / "async_client.py").read_text(encoding="utf-8"))}
    declarations = _declarations()
    for path in declarations:
        if path.stem in PARTS:
            continue
        sources = [path, *(part for part in declarations if PARTS.get(part.stem) == path.stem)]
        if path == NAMES:
            text = path.read_text(encoding="utf-8")
            name, text = "__init__.py", re.sub(r"from gpuplan\.[\w.]+\.", "from gpuplan_client.answers.", text)
        else:
            name, text = path.name, typed_dicts(_joined(sources), "gpuplan_client.answers")
        for part, whole in PARTS.items():
            text = text.replace(f"gpuplan_client.answers.{part} ", f"gpuplan_client.answers.{whole} ")
        shown = ", ".join(str(source.resolve().relative_to(ROOT)) for source in sources)
        files[f"answers/{name}"] = _GENERATED.format(source=shown) + text
    return formatted(files)


def _joined(paths: list[Path]) -> str:
    """The modules as one, with the docstring of the first; a module follows those that it imports."""
    bodies = {path.stem: ast.parse(path.read_text(encoding="utf-8")).body for path in paths}
    docstring = bodies[paths[0].stem][0]
    imports: list[ast.stmt] = []
    rest: dict[str, list[ast.stmt]] = {}
    first: set[str] = set()
    for name, body in bodies.items():
        for statement in body[1:]:
            if isinstance(statement, ast.ImportFrom) and str(statement.module).rsplit(".", 1)[-1] in bodies:
                first.add(str(statement.module).rsplit(".", 1)[-1])
            elif isinstance(statement, ast.ImportFrom | ast.Import):
                imports.append(statement)
            else:
                rest.setdefault(name, []).append(statement)
    ordered = sorted(bodies, key=lambda name: name not in first)
    return ast.unparse(ast.Module([docstring, *imports, *(part for name in ordered for part in rest[name])], []))


def _declarations() -> list[Path]:
    """The modules in which answers are declared: the one that names all answers, and what they import of gpuplan."""
    modules = [NAMES]
    for module in modules:
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("gpuplan."):
                path = Path(str(importlib.util.find_spec(str(node.module)).origin))  # type: ignore[union-attr]
                if path not in modules:
                    modules.append(path)
    return modules


def formatted(files: dict[str, str]) -> dict[str, str]:
    """The files after ruff's formatting with this repository's rules."""
    with tempfile.TemporaryDirectory(dir=CLIENT) as folder:
        for name, text in files.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for arguments in (("check", "--fix-only", "--unsafe-fixes"), ("format",)):
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "ruff",
                    *arguments,
                    "--quiet",
                    "--no-cache",
                    "--config",
                    ROOT / "pyproject.toml",
                    # Also of modules that are not written yet.
                    "--config",
                    'lint.isort.known-first-party = ["gpuplan_client"]',
                    folder,
                ],
                check=True,
            )
        return {name: Path(folder, name).read_text(encoding="utf-8") for name in files}


def stale() -> list[str]:
    """Generated files that are missing, out of date, or obsolete."""
    wanted = generated()
    present = {"client.py", *(f"answers/{path.name}" for path in (CLIENT / "answers").glob("*.py"))}
    return sorted(
        name
        for name in wanted.keys() | present
        if name not in wanted
        or not (CLIENT / name).is_file()
        or (CLIENT / name).read_text(encoding="utf-8") != wanted[name]
    )


def main() -> int:
    """Write the files, or with `--check` compare them. 1 if a file is out of date."""
    parser = argparse.ArgumentParser(prog="python -m tools.generate_client", description="Generate the HTTP client.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    if parser.parse_args().check:
        stale_files = stale()
        if stale_files:
            sys.stderr.write(f"out of date, run `make client`: {', '.join(stale_files)}\n")
        return 1 if stale_files else 0
    wanted = generated()
    (CLIENT / "answers").mkdir(exist_ok=True)
    for left in set((CLIENT / "answers").glob("*.py")) - {CLIENT / name for name in wanted}:
        left.unlink()
    for name, text in wanted.items():
        (CLIENT / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
