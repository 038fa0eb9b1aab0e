"""List the names that the glossary retires: `python -m tools.retired_names`; exit status 1 if there is any.

Looked at are packages, modules, classes, functions, variables, parameters, fields and keys of dict literals, in code and tests.
`--count` prints how many there are per word and kind, `--words a,b` looks for other words, `PATH ...` looks below these paths only.
"""

import argparse
import ast
import csv
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


def _table(*kinds: str) -> dict[str, str]:
    """`name` and `meaning` of the rows of these kinds in `retired_names.csv`."""
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8") as file:
        return {row["name"]: row["meaning"] for row in csv.DictReader(file) if row["kind"] in kinds}


#: Words that are retired only as the whole name, being part of plain English phrases in longer ones.
WHOLE_ONLY = _table("whole word").keys()
#: Word -> what the glossary says instead. A name is split into its words: `kept_rows` and `KeptRows` hold `kept` and `rows`.
RETIRED = _table("word", "word but in tests", "whole word")
#: Words that a test's name, being a sentence, may use as ordinary English.
ORDINARY_IN_SENTENCES = WHOLE_ONLY | _table("word but in tests").keys()
#: Phrases of several words that are retired as part of a name.
RETIRED_PHRASES = _table("phrase")
#: Names that stay, each with its reason. The key is a name, or `path prefix:name` where it stays below that path only.
ALLOWED = _table("allowed")

#: What is looked at unless paths are named.
FOLDERS = ("api", "catalog", "clients", "planner", "providers", "src", "tests", "tools")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetiredName:
    """A name that holds a retired word: where it is bound, what kind of name it is, and what the glossary says instead."""

    path: str
    line: int
    kind: str
    name: str
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind} {self.name}: {self.word!r} is retired; use {self.instead}"


def words_of(name: str) -> list[str]:
    """The words of a snake_case or CamelCase name, in lower case."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return [word.lower() for word in spaced.split("_") if word]


def retired_word(name: str, path: str = "", only: frozenset[str] | None = None) -> tuple[str, str] | None:
    """The retired word of a name and what the glossary says instead; None for a name that may stand at `path`."""
    if name in ALLOWED or any(path.startswith(start) and name == allowed for start, allowed in _ALLOWED_BELOW):
        return None
    words = words_of(name)
    snake = "_".join(words)
    for phrase, instead in RETIRED_PHRASES.items():
        if (only is None or phrase in only) and f"_{phrase}_" in f"_{snake}_":
            return phrase, instead
    for word in words:
        if word in RETIRED and (only is None or word in only) and (word not in WHOLE_ONLY or len(words) == 1):
            return word, RETIRED[word]
    return None


_ALLOWED_BELOW = tuple(tuple(key.split(":", 1)) for key in ALLOWED if ":" in key)


def names_in(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Every name that a module binds, as (line, kind, name), and every key of a dict literal that is an identifier."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef():
                yield node.lineno, "class", node.name
                for statement in node.body:
                    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                        yield statement.lineno, "field", statement.target.id
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.lineno, "test" if node.name.startswith("test_") else "function", node.name
            case ast.arg():
                yield node.lineno, "parameter", node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, "variable", node.id
            case ast.alias(asname=str(name)):
                yield node.lineno, "variable", name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, "variable", name
            case ast.Dict():
                for key in node.keys:
                    if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier():
                        yield key.lineno, "key", key.value
            case _:
                pass


def retired_names(root: Path, paths: list[str], only: frozenset[str] | None = None) -> Iterator[RetiredName]:
    """The retired names of the modules at `paths`, relative to `root`; each folder is named once."""
    folders: set[str] = set()
    for path in sorted(paths):
        *parents, file = path.split("/")
        for depth, folder in enumerate(parents):
            whole = "/".join(parents[: depth + 1])
            if whole not in folders:
                folders.add(whole)
                if word := retired_word(folder, path, only):
                    yield RetiredName(path=whole, line=1, kind="package", name=folder, word=word[0], instead=word[1])
        module = file.removesuffix(".py")
        if (word := retired_word(module, path, only)) and not (
            module.startswith("test_") and word[0] in ORDINARY_IN_SENTENCES
        ):
            yield RetiredName(path=path, line=1, kind="module", name=module, word=word[0], instead=word[1])
        tree = ast.parse((root / path).read_text(encoding="utf-8"), path)
        # A field is a variable of its class, too.
        reported: set[tuple[int, str]] = set()
        for line, kind, name in names_in(tree):
            if (line, name) in reported:
                continue
            if (word := retired_word(name, path, only)) and not (kind == "test" and word[0] in ORDINARY_IN_SENTENCES):
                reported.add((line, name))
                yield RetiredName(path=path, line=line, kind=kind, name=name, word=word[0], instead=word[1])


def main(arguments: list[str] | None = None) -> int:
    """List retired names of the checkout that this is run in."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.retired_names", description="List names that the glossary retires."
    )
    parser.add_argument("paths", nargs="*", default=FOLDERS)
    parser.add_argument("--count", action="store_true", help="how many there are per word and kind")
    parser.add_argument("--words", help="look for these words only, separated by commas")
    options = parser.parse_args(arguments)
    only = frozenset(options.words.split(",")) if options.words else None
    if unknown := (only or frozenset()) - RETIRED.keys() - RETIRED_PHRASES.keys():
        parser.error(f"--words: the glossary does not retire {', '.join(sorted(unknown))}")
    listed = subprocess.run(
        ["git", "ls-files", "--", "*.py"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    starts = tuple(path.rstrip("/") for path in options.paths)
    paths = [
        path
        for path in listed
        if Path(path).is_file() and any(path == at or path.startswith(at + "/") for at in starts)
    ]
    names = list(retired_names(Path(), paths, only))
    if options.count:
        for (kind, word), count in Counter((name.kind, name.word) for name in names).most_common():
            print(f"{count:6} {kind} {word}")
    else:
        for name in names:
            print(name)
    print(f"{len(names)} retired names in {len(paths)} modules", file=sys.stderr)
    return 1 if names else 0


if __name__ == "__main__":
    sys.exit(main())
