"""What people type after `/gpuplan`, as Slack hands it over: unescaped, straight quotes, and cut into words."""

import re
import shlex

from catalog.errors import UnusableInput

#: Far more than a job file that somebody pastes.
LONGEST_TEXT = 64 * 1024
#: Slack sends these three escaped, and nothing else.
_ESCAPES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
#: What keyboards and Slack make of quotes, dashes and spaces.
_STRAIGHT = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "\u00a0": " ", "\u202f": " "})
#: An address that Slack has made into a link, with what it shows for it.
_LINK = re.compile(r"<(https?://[^<>|\s]+)(?:\|[^<>]*)?>")
_FENCE = re.compile(r"```(?:[a-z]*[ \t]*\n)?(.*?)```", re.DOTALL)
#: The page of an uploaded file: workspace, user, file.
_FILE = re.compile(r"https://[a-z0-9.-]+\.slack(?:-gov)?\.com/files/[A-Z0-9]+/(F[A-Z0-9]{5,30})(?:/\S*)?")


def as_typed(text: str) -> str:
    """The text as its author wrote it. Raises `UnusableInput` for what is too long or holds control characters."""
    if len(text) > LONGEST_TEXT:
        raise UnusableInput.at(
            message=f"the text is longer than {LONGEST_TEXT // 1024} KiB; accepted: less, or a job file"
        )
    plain = _LINK.sub(r"\1", text)
    for escaped, char in _ESCAPES:
        plain = plain.replace(escaped, char)
    if any(not (char.isprintable() or char in "\n\r\t\u00a0\u202f\u200b\ufeff") for char in plain):
        raise UnusableInput.at(message="the text holds control characters; accepted: plain text")
    return plain.replace("\r\n", "\n").strip()


def split(text: str) -> list[str]:
    """The words of a line; `"two words"` are one. Raises `UnusableInput` for a quote that does not end."""
    lexer = shlex.shlex(text.translate(_STRAIGHT), posix=True)
    lexer.whitespace_split = True
    lexer.quotes, lexer.escape, lexer.commenters = '"', "", ""
    try:
        return list(lexer)
    except ValueError:
        raise UnusableInput.at(message='a quote (") is opened and never closed; close it, or leave it out') from None


def first_word(text: str) -> tuple[str, str]:
    """The first word in small letters, and the rest; a code block may follow it without a blank."""
    head = re.match(r"[^\s`]*", text)
    end = head.end() if head else 0
    return text[:end].lower(), text[end:].strip()


def pasted(text: str) -> str | None:
    """The document in a text: what stands in a code block, or a text of several lines; None if it is neither."""
    fenced = _FENCE.search(text)
    if fenced is not None:
        return fenced.group(1).replace("\u00a0", " ")
    if text.lstrip().startswith("{") or ("\n" in text.strip() and ":" in text):
        return text.strip("`").replace("\u00a0", " ")
    return None


def uploaded(text: str) -> str | None:
    """The id of the uploaded file that the text links to, None if it is no such link."""
    found = _FILE.fullmatch(text.strip().strip("<>"))
    return None if found is None else found.group(1)
