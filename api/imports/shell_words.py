"""The words of a shell statement, with variables, arrays and arithmetic replaced by what is known; nothing is executed.

What a command would print, and variables that nothing states, stay as they are written: `$(nproc)`, `${BATCH}`. Expansions:
GNU Bash manual, edition 5.3, section 3.5.
"""

import ast
import fnmatch
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gpuplan.api.imports.shell_statements import LONGEST

_PARAMETER = re.compile(
    r"(?P<count>#)?(?P<name>[A-Za-z_]\w*|[0-9@*#])(?:\[(?P<index>[^\]]{1,40})\])?(?P<rest>.*)", re.DOTALL
)
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#]")
_REDIRECTION = re.compile(r"(?:\d*|&)(?:>>|>\||>&|<&|<<<|>|<)(.*)", re.DOTALL)
#: Deepest nesting of `${A:-${B:-8}}`, and most words of one statement.
_DEEPEST = 12
_MOST_WORDS = 5000
_NUMBERS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type, Callable[[int, int], bool]] = {
    ast.Gt: operator.gt,
    ast.Lt: operator.lt,
    ast.GtE: operator.ge,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


@dataclass(slots=True)
class Variables:
    """What is known of a script's variables; `unknown` are those that something not evaluated may have set."""

    values: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, list[str]] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    positional: tuple[str, ...] = ()

    def set(self, name: str, value: str, *, add: bool = False) -> None:
        """Set a variable, or append to it."""
        if add and name in self.unknown:
            return
        if add and name in self.arrays:
            self.arrays[name][:1] = [(self.arrays[name] or [""])[0] + value]
            return
        self.unknown.discard(name)
        self.arrays.pop(name, None)
        self.values[name] = ((self.values.get(name, "") if add else "") + value)[:LONGEST]

    def set_array(self, name: str, items: list[str], *, add: bool = False) -> None:
        """Set an array, or append to it."""
        if add and name in self.unknown:
            return
        self.unknown.discard(name)
        before = self.arrays.get(name, [self.values[name]] if name in self.values else []) if add else []
        self.values.pop(name, None)
        self.arrays[name] = [*before, *items][:_MOST_WORDS]

    def forget(self, name: str) -> None:
        """Note that a variable may have any value."""
        self.values.pop(name, None)
        self.arrays.pop(name, None)
        self.unknown.add(name)

    def get(self, name: str) -> str | None:
        """The value of a variable or positional parameter; None if it is not set here."""
        if name.isdigit():
            return self.positional[int(name) - 1] if 0 < int(name) <= len(self.positional) else None
        if name in ("@", "*", "#"):
            return str(len(self.positional)) if name == "#" else " ".join(self.positional)
        if name in self.arrays:
            return self.arrays[name][0] if self.arrays[name] else ""
        return self.values.get(name)

    def all_of(self, name: str) -> list[str] | None:
        """The elements of an array; None if it is not set here."""
        if name in ("@", "*"):
            return list(self.positional)
        value = self.values.get(name)
        return self.arrays.get(name, None if value is None else [value])


def is_open(text: str) -> bool:
    """Whether a part of the text could not be evaluated."""
    return "$" in text or "`" in text


def words(text: str, variables: Variables) -> list[str]:
    """The words of a statement after expansion, redirections left out."""
    made: list[str] = []
    drop = False
    for word in _Reader(text, variables).all():
        redirection = _REDIRECTION.fullmatch(word.text) if not word.quoted else None
        if drop or redirection:
            drop = bool(redirection and not redirection[1])
            continue
        made.append(word.text)
        if len(made) > _MOST_WORDS:
            break
    return made


def unquoted(text: str) -> str:
    """The text without the quotes around it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def expanded(text: str, variables: Variables) -> str:
    """The text as inside double quotes."""
    return _Reader(text, variables).whole()


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    quoted: bool


class _Reader:
    """Reads one statement character by character."""

    def __init__(self, text: str, variables: Variables, depth: int = 0) -> None:
        self.text, self.variables, self.depth = text, variables, depth
        self.at = 0
        self.length = 0

    def whole(self) -> str:
        parts: list[str] = []
        while self.at < len(self.text) and self.length < LONGEST:
            parts.append(" ".join(self._dollar()) if self.text[self.at] == "$" else self._plain())
            self.length += len(parts[-1])
        return "".join(parts)[:LONGEST]

    def _plain(self) -> str:
        char = self.text[self.at]
        self.at += 1
        if char == "\\" and self.text[self.at : self.at + 1] in ("$", "`", '"', "\\", "\n"):
            self.at += 1
            return self.text[self.at - 1].strip("\n")
        return char

    def all(self) -> Iterator[_Word]:
        parts: list[str] = []
        begun = quoted = False
        while self.at < len(self.text) and self.length < LONGEST:
            char = self.text[self.at]
            if char.isspace():
                if begun:
                    yield _Word("".join(parts), quoted)
                parts, begun, quoted = [], False, False
                self.at += 1
                continue
            if char == "#" and not begun:
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
                continue
            inside, start = char in "'\"", self.at
            pieces = self._quoted() if inside else self._dollar() if char in "$`" else [self._escaped()]
            if char == "$" and pieces != [self.text[start : self.at]]:
                pieces = [part for piece in pieces for part in piece.split() or [""]]
            self.length += sum(map(len, pieces))
            quoted = quoted or inside
            begun = begun or inside or bool("".join(pieces))
            for index, piece in enumerate(pieces):
                if index and begun:
                    yield _Word("".join(parts), quoted)
                    parts = []
                parts.append(piece)
            if char == "$" and not begun:
                parts = []
        if begun:
            yield _Word("".join(parts), quoted)

    def _escaped(self) -> str:
        char = self.text[self.at]
        self.at += 1
        if char == "\\" and self.at < len(self.text):
            self.at += 1
            return "" if self.text[self.at - 1] == "\n" else self.text[self.at - 1]
        return char

    def _quoted(self) -> list[str]:
        """A quoted part; `"${A[@]}"` alone is several words."""
        quote = self.text[self.at]
        if quote == "'":
            end = self.text.find("'", self.at + 1)
            end = len(self.text) if end < 0 else end
            inner, self.at = self.text[self.at + 1 : end], end + 1
            # What stood in single quotes is text, not a reference; an inner shell may still replace it.
            return [inner]
        self.at += 1
        parts: list[str] = [""]
        while self.at < len(self.text) and self.text[self.at] != '"':
            if self.text[self.at] in "$`":
                pieces = self._dollar()
                parts[-1] += pieces[0] if pieces else ""
                parts += pieces[1:]
            else:
                parts[-1] += self._plain()
        self.at += 1
        return parts

    def _dollar(self) -> list[str]:
        """An expansion: its words, or the text itself where it cannot be evaluated."""
        start = self.at
        if self.text[start] == "`":
            end = self.text.find("`", start + 1)
            self.at = len(self.text) if end < 0 else end + 1
            return [_command(self.text[start + 1 : self.at - 1], self.variables) or self.text[start : self.at]]
        following = self.text[start + 1 : start + 2]
        if following in ("(", "{", "["):
            self.at = _close(self.text, start + 1)
            inner = self.text[start + 2 : self.at - 1]
            if following == "{":
                value = self._parameter(inner)
            elif following == "[" or (inner.startswith("(") and inner.endswith(")")):
                number = arithmetic(inner if following == "[" else inner[1:-1], self.variables, self.depth)
                value = None if number is None else [str(number)]
            else:
                result = _command(inner, self.variables)
                value = None if result is None else [result]
            return [self.text[start : self.at]] if value is None else value
        match = _NAME.match(self.text, start + 1)
        if match is None:
            self.at = start + 1
            return ["$"]
        self.at = match.end()
        value = self._parameter(match[0])
        return [self.text[start : self.at]] if value is None else value

    def _parameter(self, inner: str) -> list[str] | None:
        """The words of `${inner}`; None if nothing here states it."""
        match = _PARAMETER.fullmatch(inner)
        if match is None or self.depth > _DEEPEST:
            return None
        name, index, rest = match["name"], match["index"], match["rest"]
        if name in self.variables.unknown:
            return None
        if index in ("@", "*") or name in ("@", "*"):
            items = self.variables.all_of(name)
            if match["count"]:
                return None if items is None else [str(len(items))]
            return items if items is not None else self._otherwise(None, rest)
        value = self.variables.get(name)
        if index is not None:
            items, place = self.variables.all_of(name), arithmetic(index, self.variables, self.depth)
            value = (
                items[place] if items is not None and place is not None and -len(items) <= place < len(items) else None
            )
        if match["count"] and match["count"] + name != "#":
            return None if value is None else [str(len(value))]
        return self._otherwise(value, rest)

    def _otherwise(self, value: str | None, rest: str) -> list[str] | None:
        """The value with what follows its name: a default, an alternative, or a change of its text."""
        match = re.fullmatch(r"(:?[-=+?])(.*)", rest, re.DOTALL)
        if match is None:
            return None if value is None else _changed(value, rest)
        isset = value is not None and not (match[1].startswith(":") and value == "")
        if match[1].endswith("+"):
            return [self._inner(match[2]) if isset else ""]
        if isset:
            return [value or ""]
        return None if match[1].endswith("?") else [self._inner(match[2])]

    def _inner(self, text: str) -> str:
        return _Reader(unquoted(text.strip()), self.variables, self.depth + 1).whole()


def _close(text: str, at: int) -> int:
    """Behind the bracket that closes the one at `at`."""
    pair = {"(": ")", "{": "}", "[": "]"}[text[at]]
    depth = 0
    for place in range(at, len(text)):
        if text[place] == text[at]:
            depth += 1
        elif text[place] == pair:
            depth -= 1
            if not depth:
                return place + 1
    return len(text)


def _changed(value: str, rest: str) -> list[str] | None:
    """The value after `%pattern`, `#pattern`, `^^` or `,,`; None for other changes."""
    if not rest:
        return [value]
    if rest in ("^^", ",,"):
        return [value.upper() if rest == "^^" else value.lower()]
    match = re.fullmatch(r"(%%?|##?)([^${}]{1,100})", rest)
    if match is None or len(value) > 1000:
        return None
    front, longest = match[1][0] == "#", len(match[1]) == 2
    sizes = range(len(value), -1, -1) if longest else range(len(value) + 1)
    for size in sizes:
        part = value[:size] if front else value[len(value) - size :]
        if fnmatch.fnmatchcase(part, match[2]):
            return [value[size:] if front else value[: len(value) - size]]
    return [value]


def _command(inner: str, variables: Variables) -> str | None:
    """What `expr`, and `bc` behind `echo`, would print of whole numbers; None for every other command."""
    match = re.fullmatch(r"\s*expr\s+(.+)", inner, re.DOTALL) or re.fullmatch(
        r"\s*echo\s+[\"']?([^\"'|]+)[\"']?\s*\|\s*bc\s*", inner, re.DOTALL
    )
    number = arithmetic(match[1].replace("\\", "").replace("'", ""), variables) if match else None
    return None if number is None else str(number)


def arithmetic(text: str, variables: Variables, depth: int = 0) -> int | None:
    """The value of an expression of whole numbers; None for anything else."""
    if len(text) > 300 or depth > _DEEPEST:
        return None
    text = _Reader(text, variables, depth + 1).whole().strip()
    named = re.sub(r"\b([A-Za-z_]\w*)\b", lambda match: variables.get(match[1]) or match[0], text)
    if len(named) > 300 or not re.fullmatch(r"[\d\s()+*/%<>=!-]+", named):
        return None
    try:
        return _value(ast.parse(named, mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _NUMBERS:
        value = _NUMBERS[type(node.op)](_value(node.left), _value(node.right))
        if abs(value) < 10**30:
            return value
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        return int(_COMPARISONS[type(node.ops[0])](_value(node.left), _value(node.comparators[0])))
    raise ValueError("is no sum or product of whole numbers")
