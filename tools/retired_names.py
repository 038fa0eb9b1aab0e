"""List the names that the glossary retires: `python -m tools.retired_names`; exit status 1 if there is any.

Looked at are packages, modules, classes, functions, variables, parameters, fields and keys of dict literals, in code and tests.
`--count` prints how many there are per word and kind, `--words a,b` looks for other words, `PATH ...` looks below these paths only.
"""

import argparse
import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


def _table(text: str) -> dict[str, str]:
    """`name: meaning` per line. A dict literal would list its own keys."""
    return {name: meaning for name, _, meaning in (line.partition(": ") for line in text.strip().splitlines())}


#: Word -> what the glossary says instead. A name is split into its words: `kept_rows` and `KeptRows` hold `kept` and `rows`.
RETIRED = _table("""
asking: identity or authorization
bill: cost_breakdown
bills: cost_breakdowns
bought: priced_configurations
buying: procurement
claim: SubmittedPlan
counted: Audited
course: schedule
courses: schedules
door: interface, or request_verification
doors: interfaces
each: what the thing is
edge: middleware
fallback: standby
fallbacks: capacity ladder, next_choices
found: what the thing is
frontier3: pareto_cost_time_carbon
gate: authentication
held: reserved, lease or stays_optimal
here: what the thing is
holds: reserved, lease or stays_optimal
keeping: retention or maintenance
kept: cache, or warm_solver
kin: migration_class
ledger: field_coverage
lot: offer_group
lots: offer_groups
many: what the things are
more: what the things are
net: standby
nets: standby
netted: StandbyPlan
once: deduplicate or single_flight
opened: ServiceContext
own: owned
pace: rate_limit
packed: serialization
plane: LayoutCandidates
prepared: compiled_statements
pulse: heartbeat
purchases: procurement
questions: services
said: notifications, format_* or redaction
saying: notifications, format_* or redaction
shelf: offer_group
shelves: offer_groups
sift: row_validation
standing: eligibility
straight: linear_bounds, or fast_route
stray: not_found
strays: not_found
telling: notifications, format_* or redaction
there: what the thing is
told: notifications, format_* or redaction
upkeep: retention or maintenance
who: identity
wider: dominated_offer_recheck
""")

#: Words that are retired only as the whole name, being part of plain English phrases in longer ones.
WHOLE_ONLY = {
    "each",
    "more",
    "many",
    "own",
    "who",
    "once",
    "here",
    "there",
    "found",
    "edge",
    "gate",
    "claim",
    "purchases",
}

#: Words that a test's name, being a sentence, may use as ordinary English.
ORDINARY_IN_SENTENCES = WHOLE_ONLY | {
    "counted",
    "held",
    "holds",
    "keeping",
    "kept",
    "opened",
    "prepared",
    "said",
    "told",
    "bought",
}

#: Phrases of several words that are retired as part of a name.
RETIRED_PHRASES = _table("""
whatever_the_hours: deadline_free_bound
sequence_lines: linear_bounds
plan_words: key_value_words
free_time: availability_windows
allowed_time: time_limit
machine_rows: node_counts or machine_candidates
letting_in: authorization
own_machines: owned_machines
""")

#: Names that stay, each with its reason. The key is a name, or `path prefix:name` where it stays below that path only.
ALLOWED = {
    "u_net": "the architecture U-Net",
    "latent_u_net": "the architecture U-Net",
    # What INTERFACES.md and the wire fix: a name may be read from and written to JSON under its old key.
    "fallback": "key of a plan on the wire",
    "held": "key of a settings file",
    "held_spend": "key of a settings file",
    "held_until": "column of a table, and key of a forecast",
    "held_elsewhere": "key of an answer of watch check",
    "last_told": "column of a table, and key of a watch",
    "telling": "column of a table",
    "not_bought": "key of a procurement answer",
    "checkpoints_kept": "key of a settings file",
    "deadline_kept": "key of a run policy",
    "holds_until_usd_per_node_hour": "key of a plan",
    "holds_until": "key of a plan",
    "without_buying": "key of a procurement answer",
    "offers_that_requirements_or_standing_refuse": "key of a verification",
    "planner/model/verification.py:found": "key of a verification",
    "planner/model/replan.py:kept": "key of a replan",
    "planner/model/replan.py:holds": "key of a replan",
    "planner/replan/replan_document.py:holds": "key of a replan",
    "planner/replan/replan_document.py:kept": "key of a replan",
    "api/observability/doctor/finding.py:found": "key of an answer of doctor",
    "api/schemas/watch_answers.py:told": "key of an answer of watch check",
    "api/cli/audit.py:who": "option of the command line",
    "api/cli/audit.py:more": "key of an answer of audit",
    "api/http/api_keys.py:who": "parameter of a path",
    "clients/python/src/gpuplan_client/answers/:found": "key of a verification",
    "clients/python/src/gpuplan_client/answers/:holds": "key of an answer of replan",
    "clients/python/src/gpuplan_client/answers/:kept": "key of an answer of replan",
    "clients/python/src/gpuplan_client/answers/:told": "key of an answer of watch check",
    "clients/python/src/gpuplan_client/:who": "query parameter of GET /v1/audit",
    "tests/api/cli/:told": "key of an answer of watch check",
    "tests/api/web/:once": "field of a form of the page",
    "tools/fitting/:held_out_residuals": "held-out data, the term of statistics",
    "tools/fitting/:held_out_constants": "held-out data, the term of statistics",
    "tools/fitting/:HeldOutConstants": "held-out data, the term of statistics",
}  # fmt: skip

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
