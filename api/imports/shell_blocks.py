"""Where the blocks of a bash script begin and end: `if`, `case`, loops, and the keywords in front of their statements."""

import re
from functools import lru_cache

from gpuplan.api.imports.shell_statements import Statement

#: The keyword that ends a block, by the one that begins it.
BLOCKS = {"if": "fi", "while": "done", "until": "done", "for": "done", "select": "done", "case": "esac"}
_KEYWORDS = re.compile(r"(?:(?:then|else|do|\{|!|\()(?=[\s(]|$)\s*|\((?!\())")


def without_subshell(one: Statement) -> Statement:
    """The statement without the bracket of a subshell."""
    text = one.text
    if text.startswith("(") and not text.startswith("(("):
        text = text[1:].lstrip()
    if text.endswith(")") and text.count(")") > text.count("("):
        text = text[:-1].rstrip()
    return Statement(
        text=text, line=one.line, before=one.before, pattern=one.pattern, document=one.document, literal=one.literal
    )


def without_keyword(one: Statement) -> Statement:
    """The statement without `then`, `else`, `do`, `{` or `!` in front of it."""
    match = _KEYWORDS.match(one.text)
    if match is None:
        return one
    return Statement(text=one.text[match.end() :], line=one.line, document=one.document, literal=one.literal)


def body_of(listed: list[Statement]) -> list[Statement]:
    """The statements of a block behind its keyword."""
    return [without_keyword(one) for one in listed[:1]] + listed[1:]


@lru_cache(maxsize=4096)
def first_word(text: str) -> str:
    """The word that a statement begins with, if it is a name or a bracket."""
    match = re.match(r"[A-Za-z_]+(?![\w=+\[.-])|[{}!]", text)
    return match[0] if match else ""


def keyword(one: Statement) -> str:
    """The first word of a statement; empty for a pattern."""
    return "" if one.pattern else first_word(one.text)


def keyword_at(listed: list[Statement], at: int) -> str:
    """The first word of the statement at this place; empty behind the end."""
    return keyword(listed[at]) if at < len(listed) else ""


def block_end(listed: list[Statement], at: int) -> int:
    """Where the block that begins at `at` ends."""
    open_blocks: list[str] = []
    for place in range(at, len(listed)):
        word = keyword(listed[place])
        inner = keyword(without_keyword(listed[place])) if word in ("then", "else", "do", "{") else word
        if inner in BLOCKS:
            open_blocks.append(BLOCKS[inner])
        elif open_blocks and inner == open_blocks[-1]:
            open_blocks.pop()
            if not open_blocks:
                return place
    return len(listed) - 1


def block_parts(listed: list[Statement], separators: tuple[str, ...]) -> list[list[Statement]]:
    """The statements cut before each separator of their own level."""
    parts: list[list[Statement]] = [[]]
    at = 0
    while at < len(listed):
        word = keyword(listed[at])
        inner = keyword(without_keyword(listed[at])) if word in ("then", "else", "do", "{") else word
        if word in separators:
            parts.append([])
        end = block_end(listed, at) if inner in BLOCKS and at > 0 else at
        parts[-1] += listed[at : end + 1]
        at = end + 1
    return parts
