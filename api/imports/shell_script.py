"""The commands of a bash script, with variables, arrays and arithmetic filled in; nothing is ever executed.

Conditions on known values choose their branch, variables that nothing sets count as unset, and functions run where they are
called. Where a condition cannot be evaluated, the commands of its first branch are read, and every variable that one of the
branches sets is unknown behind it. Of a loop over known values the commands of the first round are read; a loop that cannot
be evaluated runs no command, and what it sets is unknown.
"""

import fnmatch
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gpuplan.api.imports.shell_blocks import (
    BLOCKS,
    block_end,
    block_parts,
    body_of,
    first_word,
    keyword,
    keyword_at,
    without_keyword,
    without_subshell,
)
from gpuplan.api.imports.shell_conditions import condition, is_test, truth_of, unset
from gpuplan.api.imports.shell_statements import Statement, raw_words, statements
from gpuplan.api.imports.shell_words import Variables, arithmetic, expanded, is_open, unquoted, words

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[([^\]]{0,40})\])?(\+?)=(.*)", re.DOTALL)
_DECLARATION = re.compile(r"(?:export|local|readonly|declare|typeset)\s+(?:-\w+\s+)*")
_FUNCTION = re.compile(r"(?:function\s+([\w.-]+)\s*(?:\(\s*\))?|([\w.-]+)\s*\(\s*\))\s*(\{)?\s*(.*)", re.DOTALL)
#: Commands that set the variables that they name from what they read.
_READING = frozenset({"read", "mapfile", "readarray"})
#: Most rounds of a loop, statements of a script, and calls inside calls.
_MOST_ROUNDS = 64
_MOST_STEPS = 10_000
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command: its words, the line that it starts at, and what is written to it."""

    words: tuple[str, ...]
    line: int
    document: str | None = None


@dataclass(slots=True)
class ShellScript:
    """Interprets a script; `variables` holds what is known, `notes` what was not evaluated, `written` files by name.

    `source` gives the text of a script that is included, or None. `depth` counts the shells around this one.
    """

    variables: Variables = field(default_factory=Variables)
    source: Callable[[str], str | None] = lambda name: None
    notes: list[str] = field(default_factory=list)
    written: dict[str, str] = field(default_factory=dict)
    depth: int = 0
    _functions: dict[str, list[Statement]] = field(default_factory=dict)
    _steps: int = 0
    _depth: int = 0
    _muted: bool = False

    def commands(self, text: str) -> Iterator[Command]:
        """The commands of `text` in order."""
        yield from self._run([without_subshell(one) for one in statements(text)])
        if self._steps >= _MOST_STEPS:
            self.notes.append(f"only the first {_MOST_STEPS:,} steps of the script were followed")

    def _run(self, listed: list[Statement]) -> Iterator[Command]:
        at, passed = 0, True
        outcome: bool | None = True
        while at < len(listed) and self._steps < _MOST_STEPS:
            self._steps += 1
            one = listed[at]
            word = keyword(one)
            passed = outcome is not (one.before == "||") if one.before in ("&&", "||") else True
            if one.before in ("&&", "||") and outcome is None:
                passed = True
            if word in BLOCKS:
                end = block_end(listed, at)
                self._steps += (end - at) // 50
                if passed:
                    yield from self._block(word, listed[at : end + 1])
                at, outcome = end + 1, True
                continue
            function = _FUNCTION.fullmatch(one.text) if not one.pattern else None
            if function and (function[3] or keyword_at(listed, at + 1) == "{" or one.text.startswith("function")):
                at = self._define(function, listed, at)
                continue
            if passed:
                if one.before == "&&" and outcome is None and _sets(one.text):
                    self._forget([one])
                elif is_test(one.text):
                    outcome = truth_of(one.text, self.variables)
                else:
                    yield from self._statement(one)
                    outcome = True
            at += 1

    def _block(self, word: str, listed: list[Statement]) -> Iterator[Command]:
        """A block from its first keyword to its last."""
        if self._depth > _DEEPEST:
            return
        self._depth += 1
        if word == "if":
            yield from self._if(listed)
        elif word == "case":
            yield from self._case(listed)
        else:
            yield from self._loop(word, listed)
        self._depth -= 1

    def _if(self, listed: list[Statement]) -> Iterator[Command]:
        parts = block_parts(listed[:-1], ("elif", "else"))
        unsure = False
        for index, part in enumerate(parts):
            then = next((i for i, one in enumerate(part) if first_word(one.text) == "then"), None)
            is_else = index > 0 and first_word(part[0].text) == "else"
            if then is None and not is_else:
                continue
            chosen = True if is_else else condition(part[:then], self.variables)
            body = body_of(part if is_else else part[then:])
            if chosen is None and not unsure:
                unsure = True
                self._note(part[0], "a condition")
                yield from self._run(body)
            elif chosen:
                if not unsure:
                    yield from self._run(body)
                break
        if unsure:
            self._forget(listed)

    def _case(self, listed: list[Statement]) -> Iterator[Command]:
        match = re.fullmatch(r"case\s+(.*?)\s+in", without_keyword(listed[0]).text, re.DOTALL)
        subject = expanded(unquoted(match[1]), unset(self.variables)) if match else "$"
        branches: list[list[Statement]] = []
        for one in listed[1:-1]:
            if one.pattern:
                branches.append([])
            if branches:
                branches[-1].append(one)
        if is_open(subject):
            self._note(listed[0], "a case")
            if branches:
                yield from self._run(branches[0][1:])
            self._forget(listed)
            return
        for branch in branches:
            choices = [unquoted(choice.strip()) for choice in branch[0].text.split("|")]
            if any(len(subject) < 1000 and fnmatch.fnmatchcase(subject, choice) for choice in choices):
                yield from self._run(branch[1:])
                return

    def _loop(self, word: str, listed: list[Statement]) -> Iterator[Command]:
        do = next((i for i, one in enumerate(listed) if first_word(one.text) == "do"), None)
        if do is None:
            return
        body = body_of(listed[do:-1])
        if word in ("while", "until"):
            if condition(listed[:do], self.variables) is not (word == "until") and listed[0].text.split()[1:2] != [
                "getopts"
            ]:
                self._forget(body)
                self._note(listed[0], "a loop")
            return
        match = re.fullmatch(r"for\s+([A-Za-z_]\w*)(?:\s+in\b(.*))?", listed[0].text, re.DOTALL)
        values = words("$@" if match[2] is None else match[2], self.variables) if match else ["$"]
        if match is None or any(is_open(one) or "*" in one for one in values) or len(values) > _MOST_ROUNDS:
            self._forget(body)
            self._note(listed[0], "a loop")
            return
        muted = self._muted
        for value in values:
            self.variables.set(match[1], value)
            yield from self._run(body)
            if not self._muted and len(values) > 1:
                self._muted = True
        self._muted = muted
        if len(values) > 1:
            self._note(listed[0], f"of a loop of {len(values)} rounds", "only the first is read")

    def _note(self, one: Statement, what: str, why: str = "is not evaluated") -> None:
        if not self._muted:
            self.notes.append(f"line {one.line}: {what} {why} ({' '.join(one.text.split())[:60]})")

    def _define(self, function: "re.Match[str]", listed: list[Statement], at: int) -> int:
        """Keep the body of a function; return where the script goes on."""
        body = [Statement(text=function[4], line=listed[at].line)] if function[4] else []
        depth, place = (1 if function[3] else 0), at + 1
        while place < len(listed):
            first = keyword_at(listed, place)
            depth += first == "{"
            depth -= first == "}"
            if depth == 0:
                break
            body.append(without_keyword(listed[place]) if first == "{" else listed[place])
            place += 1
        self._functions[function[1] or function[2]] = [without_subshell(one) for one in body]
        return place + 1

    def _statement(self, one: Statement) -> Iterator[Command]:
        text = one.text
        declared = _DECLARATION.match(text)
        rest = text[declared.end() :] if declared else text
        if self._assign(rest, declared=declared is not None):
            return
        listed = words(text, self.variables)
        if not listed:
            return
        if listed[0] in _READING:
            self._forget([one])
        elif listed[0] in ("source", ".") and len(listed) > 1:
            yield from self._sourced(listed[1], one)
        elif listed[0] in self._functions and self._depth < _DEEPEST:
            before = self.variables.positional
            self.variables.positional = tuple(listed[1:])
            self._depth += 1
            yield from self._run(self._functions[listed[0]])
            self._depth -= 1
            self.variables.positional = before
        elif not self._muted:
            document = one.document
            if document is not None:
                document = document if one.literal else expanded(document, self.variables)
                target = re.search(r"(?:^|[^<>\d&])>\s*([^\s<>|&;]+)", text)
                if target:
                    self.written[expanded(unquoted(target[1]), self.variables)] = document
            yield Command(tuple(listed), one.line, document)

    def _sourced(self, name: str, one: Statement) -> Iterator[Command]:
        text = None if is_open(name) or self._depth > _DEEPEST else self.source(name)
        if text is None:
            self.notes.append(f"line {one.line}: what {name[:60]} sets is not known, since it is not here")
            return
        self._depth += 1
        yield from self._run([without_subshell(inner) for inner in statements(text)])
        self._depth -= 1

    def _assign(self, text: str, *, declared: bool) -> bool:
        """Set the variables of a statement that is nothing but assignments; False for every other statement."""
        if text.startswith("((") and text.endswith("))"):
            match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*=([^=].*)", text[2:-2], re.DOTALL)
            if match:
                self._set_number(match[1], match[2])
            return True
        pieces = _assignments(text)
        if pieces is None and not declared:
            return False
        for match in pieces or []:
            name, index, add, value = match[1], match[2], bool(match[3]), match[4]
            if value.startswith("(") and index is None:
                inner = value[1:].rstrip().removesuffix(")")
                self.variables.set_array(name, words(inner, self.variables), add=add)
            elif index is not None:
                self.variables.forget(name)
            else:
                # The value of an assignment is not split into words.
                self.variables.set(name, _one_word(value, self.variables), add=add)
        return True

    def _set_number(self, name: str, text: str) -> None:
        number = arithmetic(text, self.variables)
        if number is None:
            self.variables.forget(name)
        else:
            self.variables.set(name, str(number))

    def _forget(self, listed: list[Statement]) -> None:
        for one in listed:
            for name in _sets(one.text):
                self.variables.forget(name)


def _assignments(text: str) -> "list[re.Match[str]] | None":
    """The assignments that a statement consists of; None if something else is in it."""
    made: list[re.Match[str]] = []
    for piece in raw_words(text):
        match = _ASSIGNMENT.fullmatch(piece)
        if match is None:
            return None
        made.append(match)
    return made or None


def _sets(text: str) -> list[str]:
    """The variables that a statement sets."""
    bare = without_keyword(Statement(text=text, line=0)).text
    declared = _DECLARATION.match(bare)
    pieces = _assignments(bare[declared.end() :] if declared else bare) or []
    read = re.findall(r"[A-Za-z_]\w*", bare)[1:] if bare.split()[:1] and bare.split()[0] in _READING else []
    return [match[1] for match in pieces] + read


def _one_word(text: str, variables: Variables) -> str:
    return " ".join(words(f'"{text}"' if not re.search(r"[\"'\\]", text) else text, variables))
