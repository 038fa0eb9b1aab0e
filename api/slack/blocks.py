"""Block Kit: the few blocks that gpuplan speaks with, within Slack's limits, with nothing that users wrote as markup.

Whatever may hold a stranger's text stands in `plain_text`, in cells of `raw_text` or in elements of `rich_text`: Slack
shows these as they are, so that no name becomes a link, a mention or a bold word. No mention or link of Slack's markup
(`<!channel>`, `<@U...>`) is sent even there, since apps and exports that read messages may take it for one. The one place
that is read as markup is the text beside the blocks, which `harmless` makes into plain words.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from api.render.text import plain

Block = dict[str, Any]
Message = dict[str, Any]

#: docs.slack.dev/reference/block-kit: the header block takes 150, shorter ones are shown whole on a phone.
LONGEST_HEADER = 75
LONGEST_TEXT = 3_000
LONGEST_FIELD = 2_000
LONGEST_LABEL = 75
LONGEST_CELL = 300
MOST_BLOCKS = 50
MOST_FIELDS = 10
MOST_ROWS = 100
MOST_CELLS = 20
#: All cells of a table together.
LONGEST_TABLE = 9_000

#: The three characters of Slack's markup that make links and mentions, as its documentation has them escaped; the
#: others as characters that look alike and mean nothing.
_HARMLESS = str.maketrans(
    {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        "*": "∗",
        "_": "ˍ",
        "~": "∼",
        "`": "ˋ",
        "@": "＠",
        "#": "＃",
    }
)


def harmless(text: str) -> str:
    """A text as Slack's markup shows it literally: no mention, link, or emphasis; addresses are not made into links."""
    return plain(text, limit=LONGEST_TEXT // 5).replace("://", ":\u200b//").translate(_HARMLESS)


#: How mentions, channels, and links begin in Slack's markup (docs.slack.dev/messaging/formatting-message-text).
_CONTROL = re.compile(r"<(?=[!@#]|[A-Za-z][A-Za-z0-9+.-]*:)")


def cut(text: object, longest: int) -> str:
    """One line of at most so many characters without mentions and links; Slack refuses a text that is empty."""
    return _CONTROL.sub("＜", plain(text, limit=longest)) or "-"


def literal(text: object, longest: int = LONGEST_TEXT) -> Block:
    """A text object that is shown as it is."""
    return {"type": "plain_text", "text": cut(text, longest), "emoji": False}


def header(text: str) -> Block:
    """A heading."""
    return {"type": "header", "text": literal(text, LONGEST_HEADER)}


def words(text: str) -> Block:
    """A paragraph, shown as it is."""
    return {"type": "section", "text": literal(text)}


def fields(pairs: Iterable[tuple[str, object]]) -> Block:
    """Figures side by side, each under its name; at most ten."""
    shown = [(name, value) for name, value in pairs if value is not None][:MOST_FIELDS]
    texts = [f"{cut(name, 80)}\n{cut(value, LONGEST_FIELD - 100)}" for name, value in shown]
    return {"type": "section", "fields": [{"type": "plain_text", "text": text, "emoji": False} for text in texts]}


def small(*texts: str) -> Block:
    """Small print, one element each."""
    return {"type": "context", "elements": [literal(text) for text in texts][:MOST_FIELDS]}


def bullets(title: str, sentences: Sequence[str], *, most: int = 6) -> list[Block]:
    """A list under a bold line; what is left out is counted. Nothing for no sentences."""
    if not sentences:
        return []
    shown = [cut(each, 400) for each in sentences[:most]]
    if len(sentences) > most:
        shown.append(f"and {len(sentences) - most} more")
    listed = {
        "type": "rich_text_list",
        "style": "bullet",
        "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": each}]} for each in shown],
    }
    bold = {"type": "text", "text": cut(title, 200), "style": {"bold": True}}
    return [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [bold]}, listed]}]


def table(titles: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[int] = ()) -> Block:
    """A table of texts, `right` naming the columns of figures; a message has room for one."""
    settings = [{"align": "right" if i in right else "left", "is_wrapped": True} for i in range(len(titles))]
    shown, length = [[_cell(each) for each in titles[:MOST_CELLS]]], 0
    for row in rows[: MOST_ROWS - 1]:
        cells = [_cell(each) for each in row[:MOST_CELLS]]
        length += sum(len(each["text"]) for each in cells)
        if length > LONGEST_TABLE:
            break
        shown.append(cells)
    return {"type": "table", "column_settings": settings[:MOST_CELLS], "rows": shown}


def _cell(value: object) -> Block:
    return {"type": "raw_text", "text": cut(value, LONGEST_CELL)}


def button(label: str, action: str, value: str, *, primary: bool = False) -> Block:
    """A button that carries an id, never a document."""
    made = {"type": "button", "text": literal(label, LONGEST_LABEL), "action_id": action, "value": value}
    return made | ({"style": "primary"} if primary else {})


def menu(placeholder: str, action: str, options: Iterable[tuple[str, str]]) -> Block:
    """A menu of (label, value)."""
    choices = [{"text": literal(label, LONGEST_LABEL), "value": value} for label, value in options]
    return {"type": "static_select", "placeholder": literal(placeholder), "action_id": action, "options": choices}


def actions(*elements: Block) -> Block:
    """Buttons and menus in a row."""
    return {"type": "actions", "elements": list(elements)}


def message(text: str, blocks: Sequence[Block] = (), *, public: bool = False) -> Message:
    """What is told: a line for notifications, and the blocks; for the one who asked alone, unless `public`."""
    shown = list(blocks) or [words(text)]
    return {
        "text": harmless(text) or "-",
        "blocks": shown[:MOST_BLOCKS],
        "response_type": "in_channel" if public else "ephemeral",
    }


def with_link(told: Message, url: str, text: str) -> Message:
    """The same message with a link of ours, above its buttons if it has any."""
    link = {"type": "link", "url": url, "text": cut(text, LONGEST_LABEL)}
    block = {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [link]}]}
    blocks = list(told["blocks"][: MOST_BLOCKS - 1])
    at = next((i for i, each in enumerate(blocks) if each["type"] == "actions"), len(blocks))
    return told | {"blocks": [*blocks[:at], block, *blocks[at:]]}


def without_table(told: Message) -> Message:
    """The same message with its table as lines of text, for a place where Slack takes no table."""
    blocks = [_as_lines(each) if each["type"] == "table" else each for each in told["blocks"]]
    return told | {"blocks": blocks}


def _as_lines(found: Block) -> Block:
    rows = [[cell["text"] for cell in row] for row in found["rows"]]
    text = "\n".join(" | ".join(row) for row in rows)
    shown = {"type": "text", "text": text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"}
    return {"type": "rich_text", "elements": [{"type": "rich_text_preformatted", "elements": [shown]}]}
