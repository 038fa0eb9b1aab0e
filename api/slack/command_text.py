"""Normalises the text after `/gpuplan`: unescaped, with straight quotes, split into words."""

import re

from gpuplan.catalog.runtime.errors import UnusableInput

#: Longest text, far above a pasted job file.
LONGEST_TEXT = 64 * 1024
#: The only characters that Slack escapes.
_ESCAPES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
#: An address that Slack turned into a link, with its label.
_LINK = re.compile(r"<(https?://[^<>|\s]+)(?:\|[^<>]*)?>")
_FENCE = re.compile(r"```(?:[a-z]*[ \t]*\n)?(.*?)```", re.DOTALL)
#: Address of an uploaded file: workspace, user, file.
_FILE = re.compile(r"https://[a-z0-9.-]+\.slack(?:-gov)?\.com/files/[A-Z0-9]+/(F[A-Z0-9]{5,30})(?:/\S*)?")


def as_typed(text: str) -> str:
    """The text as typed by the user. Raises `UnusableInput` for text that is too long or has control characters."""
    if len(text) > LONGEST_TEXT:
        raise UnusableInput.at(
            message=f"the text is longer than {LONGEST_TEXT // 1024} KiB; shorten it, or upload a job file"
        )
    plain = _LINK.sub(r"\1", text)
    for escaped, char in _ESCAPES:
        plain = plain.replace(escaped, char)
    if any(not (char.isprintable() or char in "\n\r\t\u00a0\u202f\u200b\ufeff") for char in plain):
        raise UnusableInput.at(message="the text has control characters; write plain text")
    return plain.replace("\r\n", "\n").strip()


def first_word(text: str) -> tuple[str, str]:
    """The first word in lower case, and the rest; a code block may follow without a blank."""
    head = re.match(r"[^\s`]*", text)
    end = head.end() if head else 0
    return text[:end].lower(), text[end:].strip()


def pasted(text: str) -> str | None:
    """The pasted document: the contents of a code block, or a text of several lines; else None."""
    fenced = _FENCE.search(text)
    if fenced is not None:
        return fenced.group(1).replace("\u00a0", " ")
    if text.lstrip().startswith("{") or ("\n" in text.strip() and ":" in text):
        return text.strip("`").replace("\u00a0", " ")
    return None


def before_block(text: str) -> str:
    """What stands before a code block; empty without one."""
    fenced = _FENCE.search(text)
    return "" if fenced is None else text[: fenced.start()].strip()


def uploaded(text: str) -> str | None:
    """The id of the uploaded file that the text links to, or None."""
    match = _FILE.fullmatch(text.strip().strip("<>"))
    return None if match is None else match.group(1)
