"""Messages for Slack's incoming webhooks: fallback text and blocks within Slack's limits."""

from gpuplan.catalog.parsing.json_object import JsonObject

#: The longest text object of a block (docs.slack.dev/reference/block-kit/blocks/section-block).
LONGEST_TEXT = 3_000
#: The three special characters of Slack's markup; escaped text cannot become a link or a mention.
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def slack_message(payload: JsonObject) -> JsonObject:
    """The message of a notification's payload: the event, and below it in small print where to look."""
    data = payload["data"]
    blocks: list[JsonObject] = [{"type": "section", "text": _mrkdwn(escaped(data["summary"]))}]
    small = [f"{name} {escaped(str(data[key]))}" for name, key in _SMALL_PRINT if data.get(key)]
    if small:
        blocks.append({"type": "context", "elements": [_mrkdwn(line) for line in small]})
    return {"text": escaped(data["summary"]), "blocks": blocks}


_SMALL_PRINT = (("job", "job"), ("plan", "plan_id"), ("snapshot", "snapshot_id"))


def escaped(text: str) -> str:
    """The text as Slack shows it literally, cut below its limit without splitting an escape."""
    pieces: list[str] = []
    length = 0
    for char in text:
        shown = _ESCAPES.get(char, char)
        if length + len(shown) > LONGEST_TEXT - 101:
            return "".join(pieces) + "…"
        pieces.append(shown)
        length += len(shown)
    return "".join(pieces)


def _mrkdwn(text: str) -> JsonObject:
    return {"type": "mrkdwn", "text": text}
