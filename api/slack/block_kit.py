"""Block Kit blocks within Slack's limits, safe against markup in user input.

User text is only in `plain_text`, `raw_text` cells or `rich_text` elements, which Slack shows literally: a name never
becomes a link, a mention or bold. Mentions and links of Slack's markup (`<!channel>`, `<@U...>`) are removed even there,
because apps and exports may interpret them. Only the fallback text is markup; `harmless` escapes it.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from gpuplan.api.presentation.text_formatting import plain

Block = dict[str, Any]
Message = dict[str, Any]

#: docs.slack.dev/reference/block-kit allows 150 characters in a header; this length fits a phone.
LONGEST_HEADER = 75
LONGEST_TEXT = 3_000
LONGEST_FIELD = 2_000
LONGEST_LABEL = 75
LONGEST_CELL = 300
MOST_BLOCKS = 50
MOST_FIELDS = 10
MOST_ROWS = 100
MOST_CELLS = 20
#: Characters of all cells of a table together.
LONGEST_TABLE = 9_000

#: The three characters of links and mentions, escaped as Slack documents; other markup characters become look-alikes.
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
    """A text escaped for Slack's markup: no mentions, links or emphasis; addresses do not become links."""
    return plain(text, limit=LONGEST_TEXT // 5).replace("://", ":\u200b//").translate(_HARMLESS)


#: Start of mentions, channels and links in Slack's markup (docs.slack.dev/messaging/formatting-message-text).
_CONTROL = re.compile(r"<(?=[!@#]|[A-Za-z][A-Za-z0-9+.-]*:)")


def cut(text: object, longest: int) -> str:
    """One non-empty line of at most `longest` characters without mentions and links; Slack refuses empty texts."""
    return _CONTROL.sub("＜", plain(text, limit=longest)) or "-"


def literal(text: object, longest: int = LONGEST_TEXT) -> Block:
    """A text object that Slack shows literally."""
    return {"type": "plain_text", "text": cut(text, longest), "emoji": False}


def header(text: str) -> Block:
    """A heading."""
    return {"type": "header", "text": literal(text, LONGEST_HEADER)}


def words(text: str) -> Block:
    """A paragraph, shown literally."""
    return {"type": "section", "text": literal(text)}


def fields(pairs: Iterable[tuple[str, object]]) -> Block:
    """Figures with names, side by side; at most ten."""
    shown = [(name, value) for name, value in pairs if value is not None][:MOST_FIELDS]
    texts = [f"{cut(name, 80)}\n{cut(value, LONGEST_FIELD - 100)}" for name, value in shown]
    return {"type": "section", "fields": [{"type": "plain_text", "text": text, "emoji": False} for text in texts]}


def small(*texts: str) -> Block:
    """Small print, one element per text."""
    return {"type": "context", "elements": [literal(text) for text in texts][:MOST_FIELDS]}


def bullets(title: str, sentences: Sequence[str], *, most: int = 6) -> list[Block]:
    """A list under a bold title; a last line counts omitted sentences. Empty without sentences."""
    if not sentences:
        return []
    shown = [cut(sentence, 400) for sentence in sentences[:most]]
    if len(sentences) > most:
        shown.append(f"and {len(sentences) - most} more")
    listed = {
        "type": "rich_text_list",
        "style": "bullet",
        "elements": [
            {"type": "rich_text_section", "elements": [{"type": "text", "text": sentence}]} for sentence in shown
        ],
    }
    bold = {"type": "text", "text": cut(title, 200), "style": {"bold": True}}
    return [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [bold]}, listed]}]


def table(titles: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[int] = ()) -> Block:
    """A table of texts; `right` are the columns of figures. A message may have one table."""
    settings = [{"align": "right" if i in right else "left", "is_wrapped": True} for i in range(len(titles))]
    shown, length = [[_cell(title) for title in titles[:MOST_CELLS]]], 0
    for row in rows[: MOST_ROWS - 1]:
        cells = [_cell(value) for value in row[:MOST_CELLS]]
        length += sum(len(cell["text"]) for cell in cells)
        if length > LONGEST_TABLE:
            break
        shown.append(cells)
    return {"type": "table", "column_settings": settings[:MOST_CELLS], "rows": shown}


def _cell(value: object) -> Block:
    return {"type": "raw_text", "text": cut(value, LONGEST_CELL)}


def button(label: str, action: str, value: str, *, primary: bool = False) -> Block:
    """A button whose value is an id."""
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
    """A message: a line for notifications, and blocks; visible only to the requester unless `public`."""
    shown = list(blocks) or [words(text)]
    return {
        "text": harmless(text) or "-",
        "blocks": shown[:MOST_BLOCKS],
        "response_type": "in_channel" if public else "ephemeral",
    }


def with_link(message: Message, url: str, text: str) -> Message:
    """The message with a link to our page, above its buttons if it has any."""
    link = {"type": "link", "url": url, "text": cut(text, LONGEST_LABEL)}
    block = {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [link]}]}
    blocks = list(message["blocks"][: MOST_BLOCKS - 1])
    at = next((i for i, block in enumerate(blocks) if block["type"] == "actions"), len(blocks))
    return message | {"blocks": [*blocks[:at], block, *blocks[at:]]}


def image(alt: str, **source: object) -> Block:
    """A picture with its description, from an `image_url` or a `slack_file`."""
    return {"type": "image", "alt_text": cut(alt, LONGEST_FIELD)} | source


def with_image(message: Message, picture: Block) -> Message:
    """The message with a picture after its first figures."""
    blocks = list(message["blocks"][: MOST_BLOCKS - 1])
    at = next((i for i, block in enumerate(blocks, start=1) if "fields" in block), len(blocks))
    return message | {"blocks": [*blocks[:at], picture, *blocks[at:]]}


def simpler(message: Message) -> list[Message]:
    """The message, and without what Slack may refuse: first without pictures, then also without its table."""
    plain_blocks = [block for block in message["blocks"] if block["type"] != "image"]
    pictureless = message | {"blocks": plain_blocks}
    return [message] + [
        other
        for before, other in ((message, pictureless), (pictureless, without_table(pictureless)))
        if other != before
    ]


def without_table(message: Message) -> Message:
    """The message with its table as lines of text, where Slack does not accept tables."""
    blocks = [_as_lines(block) if block["type"] == "table" else block for block in message["blocks"]]
    return message | {"blocks": blocks}


def _as_lines(block: Block) -> Block:
    rows = [[cell["text"] for cell in row] for row in block["rows"]]
    text = "\n".join(" | ".join(row) for row in rows)
    shown = {"type": "text", "text": text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"}
    return {"type": "rich_text", "elements": [{"type": "rich_text_preformatted", "elements": [shown]}]}
