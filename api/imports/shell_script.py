"""The commands of a bash script, with variables, arrays and arithmetic filled in; nothing is ever executed.

Quotes and words are those of `shlex`. Conditions on known values choose their branch; loops, functions and what a command
would print are not evaluated, and stay as they are written, so that a reader can say which value nothing here states.
"""

import ast
import operator
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_ASSIGNMENT = re.compile(
    r"^(?:export\s+|local\s+|readonly\s+|declare\s+(?:-\w+\s+)*)?([A-Za-z_]\w*)(\+?)=(.*)$", re.DOTALL
)
_ARITHMETIC = re.compile(r"\$\(\(([^()]*(?:\([^()]*\)[^()]*)*)\)\)")
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(\[[@*]\])?(?:(:?[-=])([^${}]*))?\}|\$([A-Za-z_]\w*)")
_TEST = re.compile(r"^\s*(?:el)?if\s+(?:\[\[?|test)\s+(.*?)\s*\]?\]?\s*;?\s*(?:then)?\s*$", re.DOTALL)
#: Most lines, and the longest text that one value may become.
_MOST_LINES = 20_000
_LONGEST = 100_000
#: Rounds of replacement, for values that hold variables themselves.
_ROUNDS = 6
_BLOCKS = {"while": "done", "for": "done", "until": "done", "case": "esac"}
_NUMBERS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command: its words, and the line that it starts at."""

    words: tuple[str, ...]
    line: int


@dataclass(slots=True)
class ShellScript:
    """Reads a script line by line; `variables` holds what is known of them."""

    variables: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, list[str]] = field(default_factory=dict)

    def commands(self, text: str) -> Iterator[Command]:
        """The commands of `text` in order."""
        skip_until, depth = "", 0
        taken: list[bool | None] = []  # per open `if`: whether this branch runs, None after one has run
        for line, logical in _logical_lines(text):
            word = logical.split(maxsplit=1)[0].rstrip(";") if logical.split() else ""
            if skip_until:
                depth += word in _BLOCKS and _BLOCKS[word] == skip_until
                if word == skip_until or logical.rstrip().endswith(f"; {skip_until}"):
                    depth -= 1
                skip_until = skip_until if depth else ""
            elif word in _BLOCKS:
                if not re.search(rf"\b{_BLOCKS[word]}\b\s*$", logical):
                    skip_until, depth = _BLOCKS[word], 1
            elif re.match(r"^(function\s+)?\w+\s*\(\)\s*\{?\s*$", logical):
                skip_until, depth = "}", 1
            elif word in ("if", "elif", "else", "fi"):
                self._branch(word, logical, taken)
            elif word != "then" and all(one is True for one in taken):
                yield from self._statement(logical, line)

    def _branch(self, word: str, logical: str, taken: list[bool | None]) -> None:
        if word == "if":
            if not re.search(r"\bfi\s*$", logical):
                taken.append(self._test(logical))
        elif not taken:
            return
        elif word == "fi":
            taken.pop()
        else:
            ran = taken[-1] is not False
            taken[-1] = None if ran else (True if word == "else" else self._test(logical))

    def _test(self, logical: str) -> bool | None:
        """Whether a condition holds; None if it cannot be told, and then no branch runs."""
        match = _TEST.match(logical)
        if match is None:
            return None
        alternatives = re.split(r"\]\]?\s*\|\|\s*\[\[?", match[1])
        results = [self._one_test(one.strip()) for one in alternatives]
        return True if True in results else None if None in results else False

    def _one_test(self, text: str) -> bool | None:
        words = _words(self.expanded(text))
        if words is None or any("$" in word or "`" in word for word in words):
            return None
        if len(words) == 2 and words[0] in ("-z", "-n"):
            return (words[1] == "") == (words[0] == "-z")
        if len(words) == 3 and words[1] in ("=", "==", "!="):
            return (words[0] == words[2]) != (words[1] == "!=")
        compare = {"-gt": operator.gt, "-lt": operator.lt, "-ge": operator.ge, "-le": operator.le, "-eq": operator.eq}
        if (
            len(words) == 3
            and words[1] in compare
            and all(re.fullmatch(r"-?\d{1,18}", w) for w in (words[0], words[2]))
        ):
            return bool(compare[words[1]](int(words[0]), int(words[2])))
        return None

    def _statement(self, logical: str, line: int) -> Iterator[Command]:
        match = _ASSIGNMENT.match(logical)
        if match and (match[3].startswith("(") or len(_words(match[3]) or []) <= 1):
            self._assign(match[1], match[3], add=bool(match[2]))
            return
        for part in (
            re.split(r"\s*(?:&&|\|\||;)\s+", logical) if '"' not in logical and "'" not in logical else [logical]
        ):
            part_words = _words(self.expanded(part))
            if part_words:
                yield Command(tuple(part_words[:2000]), line)

    def _assign(self, name: str, value: str, *, add: bool) -> None:
        if value.startswith("("):
            inner = value[1:].rstrip().removesuffix(")")
            items = _words(self.expanded(inner)) or []
            self.arrays[name] = [*(self.arrays.get(name, []) if add else []), *items][:5000]
            return
        words = _words(self.expanded(value))
        text = words[0] if words else ""
        self.variables[name] = ((self.variables.get(name, "") if add else "") + text)[:_LONGEST]

    def expanded(self, text: str) -> str:
        """The text with variables and arithmetic replaced by what is known."""
        for _ in range(_ROUNDS):
            after = _ARITHMETIC.sub(self._arithmetic, _VARIABLE.sub(self._variable, text))
            if after == text or len(after) > _LONGEST:
                break
            text = after
        return text

    def _variable(self, match: re.Match[str]) -> str:
        name = match[1] or match[5]
        if name in self.arrays:
            return " ".join(self.arrays[name])
        if self.variables.get(name) or (name in self.variables and not match[3]):
            return self.variables[name]
        return match[4].strip("\"'") if match[3] else match[0]

    def _arithmetic(self, match: re.Match[str]) -> str:
        text = re.sub(r"\$?\b([A-Za-z_]\w*)\b", lambda m: self.variables.get(m[1], m[0]), match[1])
        value = _evaluated(text.strip())
        return match[0] if value is None else str(value)


def _evaluated(text: str) -> int | None:
    """The value of an expression of whole numbers; None for anything else."""
    if len(text) > 200:
        return None
    try:
        return _value(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _NUMBERS:
        value = _NUMBERS[type(node.op)](_value(node.left), _value(node.right))
        if abs(value) < 10**30:
            return value
    raise ValueError("is no sum or product of whole numbers")


def _words(text: str) -> list[str] | None:
    """Words by the rules of the shell; None where quotes are not closed."""
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return None


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with continuations, open quotes and open arrays joined."""
    held, start = "", 0
    for number, line in enumerate(text.split("\n")[:_MOST_LINES], 1):
        if not held:
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            start = number
        elif line.lstrip().startswith("#") and not held.endswith("\\"):
            continue
        joined = f"{held}\n{line}" if held and not held.endswith("\\") else held.removesuffix("\\") + " " + line
        joined = joined if held else line
        if joined.rstrip().endswith("\\"):
            held = joined.rstrip()
        elif len(joined) < _LONGEST and (_words(joined) is None or _open_array(joined)):
            held = joined
        else:
            yield start, joined.strip()
            held = ""
    if held:
        yield start, held.strip().removesuffix("\\")


def _open_array(text: str) -> bool:
    return re.match(r"^\s*\w+\+?=\(", text) is not None and not re.search(r"\)\s*(#[^\n]*)?$", text)
