"""The statements of a bash script: quotes, continuations, arrays, comments, here-documents and `case` patterns are respected.

Syntax: GNU Bash manual, edition 5.3, chapter 3.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

#: Most lines, and the longest statement.
MOST_LINES = 20_000
LONGEST = 100_000
_LONGEST_TEST = 500
_DEEPEST = 20
_HEREDOC = re.compile(r"<<(-?)\s*(['\"]?)([A-Za-z_]\w*)\2")
_CASE = re.compile(r"(?:(?:then|else|do|\{)\s+)?case\s+.{1,300}?\s+in", re.DOTALL)
_OPERATORS = ("&&", "||", ";;", ";", "|", "&")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement without its operators: `before` is the operator in front of it, `document` a here-document.

    A `pattern` is one of `case`, as it is written. A document is `literal` if its variables are not replaced.
    """

    text: str
    line: int
    before: str = ""
    pattern: bool = False
    document: str | None = None
    literal: bool = False


def statements(text: str) -> Iterator[Statement]:
    """The statements of `text` in order."""
    return _Scanner("\n".join(text.split("\n")[:MOST_LINES])).all()


def raw_words(text: str) -> list[str]:
    """The words of a statement as they are written, quotes and brackets kept together."""
    scanner = _Scanner(text)
    scanner.buffer = ["x"]
    made: list[str] = []
    at, start = 0, 0
    while at < len(text):
        if text[at].isspace():
            made.append(text[start:at])
            at = start = at + 1
        else:
            at = scanner.part_end(at)
    return [one for one in [*made, text[start:]] if one]


class _Scanner:
    """Walks over the text once."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.line = text, 0, 1
        self.buffer: list[str] = []
        self.start, self.before = 1, ""
        self.cases: list[bool] = []  # per open `case`: whether a pattern comes next
        self.heredocs: list[tuple[str, bool, bool]] = []  # delimiter, indented, literal

    def all(self) -> Iterator[Statement]:
        while self.at < len(self.text):
            if self.cases and self.cases[-1] and not "".join(self.buffer).strip():
                pattern = self._pattern()
                if pattern is not None:
                    yield pattern
                    continue
            char = self.text[self.at]
            operator = self._operator()
            if char == "\n" or operator or (char.isspace() and self._opens_case()):
                yield from self._end(operator)
                self._skip(len(operator) or 1)
            elif char == "#" and (not self.buffer or self.buffer[-1][-1:].isspace()):
                self._comment()
            else:
                self._piece()
        yield from self._end("")

    def _opens_case(self) -> bool:
        return self.buffer[-2:] == ["i", "n"] and _CASE.fullmatch("".join(self.buffer).strip()) is not None

    def _operator(self) -> str:
        operator = next((one for one in _OPERATORS if self.text.startswith(one, self.at)), "")
        # `2>&1` and `&>file` redirect.
        redirects = operator == "&" and (
            self.text[self.at - 1 : self.at] in (">", "<") or self.text[self.at + 1 : self.at + 2] == ">"
        )
        return "" if redirects or (operator == "|" and self.text[self.at - 1 : self.at] == ">") else operator

    def _end(self, operator: str) -> Iterator[Statement]:
        text = "".join(self.buffer).strip()
        line, before = self.start, self.before
        document, literal = None, False
        if self.text[self.at : self.at + 1] == "\n" and self.heredocs:
            document, literal = self._documents()
        self.buffer = []
        if text:
            yield Statement(text=text[:LONGEST], line=line, before=before, document=document, literal=literal)
        if text or operator:
            self.before = "" if operator in ("", ";", ";;", "&") else operator
        if _CASE.fullmatch(text):
            self.cases.append(True)
        elif text == "esac" and self.cases:
            self.cases.pop()
        elif operator == ";;" and self.cases:
            self.cases[-1] = True

    def _pattern(self) -> Statement | None:
        match = re.compile(r"[ \t\n]*(?:#[^\n]*\n[ \t\n]*)*").match(self.text, self.at)
        self._skip(len(match[0]) if match else 0)
        self.cases[-1] = False
        if re.compile(r"esac\b").match(self.text, self.at):
            return None
        match = re.compile(r"\(?([^)\n]{1,1000})\)").match(self.text, self.at)
        if match is None:
            return None
        line = self.line
        self._skip(len(match[0]))
        return Statement(text=match[1].strip(), line=line, pattern=True)

    def _piece(self) -> None:
        """Take one character, or a whole quoted or bracketed part."""
        if not self.buffer:
            if self.text[self.at].isspace():
                self._skip(1)
                return
            self.start = self.line
        if self.text.startswith("\\\n", self.at):
            self.buffer.append(" ")
            self._skip(2)
            return
        heredoc = _HEREDOC.match(self.text, self.at)
        if heredoc and not self.text.startswith("<<<", self.at):
            self.heredocs.append((heredoc[3], bool(heredoc[1]), bool(heredoc[2])))
            self._skip(len(heredoc[0]))
            return
        end = self.part_end(self.at)
        self.buffer.append(self.text[self.at : end])
        self._skip(end - self.at)

    def part_end(self, at: int) -> int:
        """The end of the quoted or bracketed part, or of the character, at `at`."""
        char = self.text[at]
        if char == "\\":
            return min(at + 2, len(self.text))
        if char in "'`":
            return self._until(char, at + 1)
        if char == '"':
            return self._closing(at + 1, '"')
        if char == "(" and "".join(self.buffer).strip():
            return self._closing(at + 1, ")")
        if self.text.startswith("((", at):
            return self._closing(at + 1, ")")
        if self.text.startswith(("$(", "${"), at):
            return self._closing(at + 2, ")" if self.text[at + 1] == "(" else "}")
        if self.text.startswith("[[ ", at):
            end = re.compile(r"\s\]\]").search(self.text, at, at + _LONGEST_TEST)
            return end.end() if end else at + 1
        return at + 1

    def _until(self, char: str, at: int) -> int:
        end = self.text.find(char, at)
        return len(self.text) if end < 0 else end + 1

    def _closing(self, at: int, close: str, depth: int = 0) -> int:
        """Behind the character that closes a part, quotes and brackets in it respected."""
        opening = {")": "(", "}": "{"}.get(close, "")
        open_parts = 1
        while at < len(self.text):
            char = self.text[at]
            if char == "\\":
                at += 1
            elif char == close:
                open_parts -= 1
                if not open_parts:
                    return at + 1
            elif opening and char == opening:
                open_parts += 1
            elif char == "`" or (char == "'" and close != '"'):
                at = self._until(char, at + 1) - 1
            elif char == '"' and depth < _DEEPEST:
                at = self._closing(at + 1, '"', depth + 1) - 1
            elif close == '"' and self.text.startswith("$(", at) and depth < _DEEPEST:
                at = self._closing(at + 2, ")", depth + 1) - 1
            elif char == "#" and close == ")" and self.text[at - 1].isspace():
                at = max(at, self._until("\n", at) - 2)
            at += 1
        return len(self.text)

    def _comment(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def _documents(self) -> tuple[str, bool]:
        """The text of the here-documents that follow this line, which is consumed; the last one counts."""
        text, literal = "", False
        for delimiter, indented, quoted in self.heredocs:
            blanks = r"\t*" if indented else ""
            end = re.compile(rf"^{blanks}{re.escape(delimiter)}[ \t]*$", re.MULTILINE).search(self.text, self.at + 1)
            stop = end.start() if end else len(self.text)
            text, literal = self.text[self.at + 1 : stop], quoted
            self._skip((end.end() if end else len(self.text)) - self.at)
        self.heredocs = []
        return text[:LONGEST], literal

    def _skip(self, characters: int) -> None:
        self.line += self.text.count("\n", self.at, self.at + characters)
        self.at += characters
