"""A local server that plays Slack: it signs what it sends to a service, and takes what the real SDK sends back.

It holds messages to Block Kit's limits as Slack does, keeps every message with where it was seen, takes five messages
at a `response_url`, and may be down, slow, or out of patience.
"""

import hashlib
import hmac
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

import httpx

from tests.clouds.server import CloudServer, Reply, Request
from tests.patience import until

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
TOKEN = "xoxb-1-2-abcdefghijklmnopqrstuvwx"
TEAM, USER, CHANNEL = "T0123ABCD", "U0123ABCD", "C0123ABCD"

#: docs.slack.dev/reference/block-kit/blocks: the blocks that messages may have.
_OF_MESSAGES = {"header", "section", "context", "actions", "divider", "rich_text", "table", "image", "markdown"}
_OF_FORMS = {"input", "section", "context", "divider", "header", "rich_text", "actions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A message as people see it: `how` it came, in which channel, for whom (None: everybody there)."""

    how: str
    channel: str
    only_for: str | None
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """All the words of the blocks, and of nothing else."""
        return "\n".join(texts(self.body.get("blocks") or []))

    @property
    def buttons(self) -> dict[str, dict[str, Any]]:
        """Buttons and menus by their action."""
        rows = [block["elements"] for block in self.body["blocks"] if block["type"] == "actions"]
        return {item["action_id"]: item for item in itertools.chain(*rows)}


@dataclass(slots=True)
class Slack:
    """One workspace of Slack, and the service that it calls."""

    server: CloudServer = field(init=False)
    members_of: set[str] = field(default_factory=lambda: {CHANNEL})
    seen: list[Seen] = field(default_factory=list)
    views: list[dict[str, Any]] = field(default_factory=list)
    homes: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    uploaded: dict[str, bytes] = field(default_factory=dict)
    shared: list[tuple[str, str]] = field(default_factory=list)
    takes_tables: bool = True
    takes_pictures: bool = True
    _left: dict[str, int] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.server = CloudServer(self.take)

    @property
    def api_url(self) -> str:
        return f"{self.server.url}/api/"

    @contextmanager
    def running(self) -> Iterator["Slack"]:
        with self.server.running():
            yield self

    def forget(self) -> None:
        """As it was at first: nothing seen, nothing broken."""
        self.seen, self.views, self.homes, self.shared = [], [], [], []
        self.members_of, self.takes_tables, self.takes_pictures = {CHANNEL}, True, True
        self.server.faults, self.server.requests = [], []

    def wait_for(self, count: int) -> list[Seen]:
        """The messages, once there are so many."""
        until(lambda: len(self.seen) >= count)
        return self.seen

    # What Slack sends.

    def response_url(self, times: int = 5) -> str:
        key = f"r{next(self._ids)}"
        self._left[key] = times
        return f"{self.server.url}/commands/{TEAM}/{key}"

    def command(self, text: str, *, team: str = TEAM, user: str = USER, channel: str = CHANNEL, **extra: str) -> bytes:
        """The body of `/gpuplan text`."""
        fields = {
            "token": "legacy",
            "team_id": team,
            "team_domain": "acme",
            "channel_id": channel,
            "channel_name": "ml",
            "user_id": user,
            "user_name": "ann",
            "command": "/gpuplan",
            "text": text,
            "api_app_id": "A0123ABCD",
            "response_url": self.response_url(),
            "trigger_id": f"{next(self._ids)}.{time.time_ns()}",
        }
        return urlencode(fields | extra).encode()

    def click(self, message: Seen, action: str, *, choice: str = "", value: str = "", home: str = TEAM) -> bytes:
        """The body of a click on a button of a message, or of a choice in its menu, by a member of `home`."""
        element = message.buttons[action]
        chosen: dict[str, Any] = {"type": element["type"], "action_id": action, "block_id": "b"}
        if choice:
            options = {item["value"].partition(":")[0]: item for item in element["options"]}
            chosen["selected_option"] = options[choice]
        else:
            chosen["value"] = value or element["value"]
        payload = {
            "type": "block_actions",
            "user": {"id": USER, "username": "ann", "team_id": home},
            "team": {"id": TEAM, "domain": "acme"},
            "channel": {"id": CHANNEL, "name": "ml"},
            "response_url": self.response_url(),
            "trigger_id": f"{next(self._ids)}.{time.time_ns()}",
            "actions": [chosen],
        }
        return urlencode({"payload": json.dumps(payload)}).encode()

    def event(self, kind: str, **fields: Any) -> bytes:
        """The body of an event of a user: a mention, a direct message, or the home tab."""
        about = {"type": kind, "user": USER, "ts": f"1764.{next(self._ids):06d}"}
        event_id = f"Ev{next(self._ids)}{time.time_ns()}"
        return json.dumps(
            {"type": "event_callback", "team_id": TEAM, "event_id": event_id, "event": about | fields}
        ).encode()

    def submission(self, view: dict[str, Any], filled: dict[str, Any]) -> bytes:
        """The body of a form that was filled in: text, one choice, or a list of choices by block."""
        values = {
            block["block_id"]: {block["element"]["action_id"]: _state(block["element"], filled.get(block["block_id"]))}
            for block in view["blocks"]
        }
        payload = {
            "type": "view_submission",
            "team": {"id": TEAM, "domain": "acme"},
            "user": {"id": USER, "username": "ann", "team_id": TEAM},
            "trigger_id": f"{next(self._ids)}.{time.time_ns()}",
            "view": {
                "id": "V1",
                "type": "modal",
                "callback_id": view["callback_id"],
                "private_metadata": view["private_metadata"],
                "state": {"values": values},
                "hash": "h",
            },
        }
        return urlencode({"payload": json.dumps(payload)}).encode()

    def send(
        self,
        service: httpx.Client,
        body: bytes,
        *,
        path: str = "/slack/commands",
        at: float | None = None,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        """Sends a signed request, as of `at` (seconds since 1970; default: now)."""
        return service.post(path, content=body, headers=signed(body, at=at) | (headers or {}))

    # What Slack takes.

    def take(self, request: Request) -> Reply:
        if any(fault.times != 0 and fault.matches(request) for fault in self.server.faults):
            # What is about to be answered with a failure was not taken either.
            return Reply(body=b"ok", content_type="text/plain")
        if request.path.startswith("/commands/"):
            return self._take_response(request)
        if request.path.startswith("/upload/"):
            with self._lock:
                self.uploaded[request.path.rpartition("/")[2]] = request.body
            return Reply(body=b"OK", content_type="text/plain")
        method = request.path.removeprefix("/api/")
        result: dict[str, Any] = _given(request)
        if method != "oauth.v2.access" and request.headers.get("authorization") != f"Bearer {TOKEN}":
            return _reply(error="invalid_auth")
        answer: Callable[[dict[str, Any]], Reply] | None = getattr(self, "_" + method.replace(".", "_"), None)
        return _reply(error="unknown_method") if answer is None else answer(result)

    def _take_response(self, request: Request) -> Reply:
        key = request.path.rpartition("/")[2]
        with self._lock:
            left = self._left.get(key, 0)
            self._left[key] = left - 1
        if left <= 0:
            return Reply(status=404, body=b"used_url", content_type="text/plain")
        body = json.loads(request.body)
        if problem := self._problem(body):
            return Reply(status=400, body=problem.encode(), content_type="text/plain")
        public = body.get("response_type") == "in_channel"
        self._see("response_url", CHANNEL, None if public else USER, body)
        return Reply(body=b"ok", content_type="text/plain")

    def _chat_postMessage(self, result: dict[str, Any]) -> Reply:  # noqa: N802
        return self._post(result, "chat.postMessage", None)

    def _chat_postEphemeral(self, result: dict[str, Any]) -> Reply:  # noqa: N802
        return self._post(result, "chat.postEphemeral", result["user"])

    def _post(self, result: dict[str, Any], how: str, only_for: str | None) -> Reply:
        channel = result["channel"]
        if not channel.startswith(("U", "D")) and channel not in self.members_of:
            return _reply(error="not_in_channel")
        if problem := self._problem(result):
            return _reply(error=problem)
        ts = f"1765.{next(self._ids):06d}"
        self._see(how, channel, only_for, result | {"ts": ts})
        return _reply(ts=ts, channel=channel)

    def _see(self, how: str, channel: str, only_for: str | None, body: dict[str, Any]) -> None:
        with self._lock:
            self.seen.append(Seen(how=how, channel=channel, only_for=only_for, body=body))

    def _problem(self, body: dict[str, Any]) -> str:
        blocks = body.get("blocks") or []
        if not self.takes_tables and any(block["type"] == "table" for block in blocks):
            return "invalid_blocks"
        pictures = [block for block in blocks if block["type"] == "image"]
        unknown = {block["slack_file"]["id"] for block in pictures if "slack_file" in block} - self.uploaded.keys()
        if (pictures and not self.takes_pictures) or unknown:
            return "invalid_blocks: downloading image failed"
        return "; ".join(faults_of_blocks(blocks, _OF_MESSAGES))

    def _views_open(self, result: dict[str, Any]) -> Reply:
        view = result["view"]
        problems = faults_of_form(view)
        if problems:
            return _reply(error="invalid_arguments", response_metadata={"messages": problems})
        self.views.append(view)
        return _reply(view={"id": "V1"})

    def _views_publish(self, result: dict[str, Any]) -> Reply:
        problems = faults_of_blocks(result["view"]["blocks"], _OF_FORMS)
        if problems or result["view"]["type"] != "home":
            return _reply(error="invalid_arguments", response_metadata={"messages": problems})
        self.homes.append(result["view"])
        return _reply(view={"id": "V2"})

    def _conversations_open(self, result: dict[str, Any]) -> Reply:
        return _reply(channel={"id": f"D{result['users'][1:]}"})

    def _files_getUploadURLExternal(self, result: dict[str, Any]) -> Reply:  # noqa: N802
        file_id = f"F{next(self._ids):08d}"
        self.files[file_id] = result
        return _reply(file_id=file_id, upload_url=f"{self.server.url}/upload/{file_id}")

    def _files_completeUploadExternal(self, result: dict[str, Any]) -> Reply:  # noqa: N802
        for item in result["files"]:
            if "channel_id" in result:
                self.shared.append((result["channel_id"], item["id"]))
        return _reply(files=[{"id": file["id"], "title": file["title"]} for file in result["files"]])

    def _files_info(self, result: dict[str, Any]) -> Reply:
        file = self.files.get(result["file"])
        return _reply(error="file_not_found") if file is None else _reply(**file)

    def _auth_test(self, _: dict[str, Any]) -> Reply:
        return _reply(team_id=TEAM, user_id="UBOT", bot_id="B1", url="https://acme.slack.com/")

    def _oauth_v2_access(self, result: dict[str, Any]) -> Reply:
        if result.get("code") != "good":
            return _reply(error="invalid_code")
        return _reply(
            access_token=TOKEN,
            token_type="bot",
            scope="commands,chat:write",
            bot_user_id="UBOT",
            app_id="A0123ABCD",
            team={"id": TEAM, "name": "Acme"},
            enterprise=None,
            is_enterprise_install=False,
            authed_user={"id": USER},
        )


def signed(body: bytes, *, secret: str = SECRET, at: float | None = None) -> dict[str, str]:
    """The headers under which Slack sends a body."""
    stamp = str(int(time.time() if at is None else at))
    digest = hmac.new(secret.encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    return {
        "Content-Type": "application/x-www-form-urlencoded",
        "X-Slack-Request-Timestamp": stamp,
        "X-Slack-Signature": f"v0={digest}",
    }


def texts(node: Any) -> Iterator[str]:
    """Every text that is shown of a block, in order."""
    if isinstance(node, dict):
        if isinstance(node.get("text"), str):
            yield node["text"]
        for value in node.values():
            yield from texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from texts(value)


def markup(node: Any) -> Iterator[str]:
    """Every text that Slack would read as its markup."""
    if isinstance(node, dict):
        if node.get("type") in {"mrkdwn", "markdown"}:
            yield node["text"]
        for value in node.values():
            yield from markup(value)
    elif isinstance(node, list):
        for value in node:
            yield from markup(value)


def faults_of_blocks(blocks: list[dict[str, Any]], known: set[str]) -> list[str]:
    """What Slack would refuse in blocks, in its own terms."""
    result = ["invalid_blocks: too many"] if len(blocks) > (100 if known is _OF_FORMS else 50) else []
    result += [f"invalid_blocks: {block['type']}" for block in blocks if block["type"] not in known]
    if sum(block["type"] == "table" for block in blocks) > 1:
        result.append("invalid_attachments: only_one_table_allowed")
    for block in blocks:
        result += [f"invalid_blocks: {block['type']}: {what}" for what in _LIMITS.get(block["type"], _no_limits)(block)]
    return result


def faults_of_form(view: dict[str, Any]) -> list[str]:
    """What Slack would refuse in a form."""
    result = faults_of_blocks(view["blocks"], _OF_FORMS)
    for name in ("title", "submit", "close"):
        result += _text(view[name], 24)
    if len(view["private_metadata"]) > 3000:
        result.append("private_metadata")
    ids = [block["block_id"] for block in view["blocks"]]
    return result + (["block_id twice"] if len(ids) != len(set(ids)) else [])


def _text(result: dict[str, Any], longest: int) -> list[str]:
    return [] if 0 < len(result["text"]) <= longest else [f"a text of {len(result['text'])}, at most {longest}"]


def _of_section(block: dict[str, Any]) -> list[str]:
    result = _text(block["text"], 3000) if "text" in block else []
    fields = block.get("fields") or []
    result += [] if len(fields) <= 10 else ["fields"]
    return result + [what for field in fields for what in _text(field, 2000)]


def _of_table(block: dict[str, Any]) -> list[str]:
    rows = block["rows"]
    result = [] if 0 < len(rows) <= 100 and all(0 < len(row) <= 20 for row in rows) else ["rows or cells"]
    cells = [cell for row in rows for cell in row]
    result += [] if all(cell["type"] in {"raw_text", "rich_text"} and cell["text"] for cell in cells) else ["cells"]
    return result + ([] if sum(len(cell["text"]) for cell in cells) <= 10_000 else ["too much text"])


def _of_actions(block: dict[str, Any]) -> list[str]:
    elements = block["elements"]
    result = [] if 0 < len(elements) <= 25 else ["elements"]
    for element in elements:
        result += _of_element(element)
    return result


def _of_element(item: dict[str, Any]) -> list[str]:
    result = [] if len(item["action_id"]) <= 255 else ["action_id"]
    if item["type"] == "button":
        result += [*_text(item["text"], 75), *([] if len(item["value"]) <= 2000 else ["value"])]
    if "placeholder" in item:
        result += _text(item["placeholder"], 150)
    groups = item.get("option_groups") or [{"options": item["options"]}] if "select" in item["type"] else []
    for group in groups:
        result += _text(group["label"], 75) if "label" in group else []
        result += [] if 0 < len(group["options"]) <= 100 else ["options"]
        for option in group["options"]:
            result += [*_text(option["text"], 75), *([] if len(option["value"]) <= 150 else ["option value"])]
    return result


def _of_input(block: dict[str, Any]) -> list[str]:
    return [*_text(block["label"], 2000), *_of_element(block["element"])]


def _of_image(block: dict[str, Any]) -> list[str]:
    sources = [name for name in ("image_url", "slack_file") if name in block]
    result = [] if len(sources) == 1 else ["needs an image_url or a slack_file"]
    result += [] if 0 < len(block["alt_text"]) <= 2000 else ["alt_text"]
    return result + ([] if len(block.get("image_url", "")) <= 3000 else ["image_url"])


def _no_limits(_: dict[str, Any]) -> list[str]:
    return []


_LIMITS: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "header": lambda block: _text(block["text"], 150),
    "section": _of_section,
    "context": lambda block: [] if 0 < len(block["elements"]) <= 10 else ["elements"],
    "actions": _of_actions,
    "table": _of_table,
    "input": _of_input,
    "image": _of_image,
}


def _state(element: dict[str, Any], value: Any) -> dict[str, Any]:
    kind = element["type"]
    if kind == "plain_text_input":
        return {"type": kind, "value": value}
    if kind == "multi_static_select":
        return {"type": kind, "selected_options": [{"value": item} for item in value or ()]}
    return {"type": kind, "selected_option": None if value is None else {"value": value}}


def _given(request: Request) -> dict[str, Any]:
    """The arguments of a method, however the SDK wrote them."""
    if request.headers.get("content-type", "").startswith("application/json"):
        result: dict[str, Any] = json.loads(request.body)
        return result
    form = parse_qs(request.body.decode()) | request.query
    given: dict[str, Any] = {name: values[0] for name, values in form.items()}
    for name in ("blocks", "view", "files"):
        if isinstance(given.get(name), str):
            given[name] = json.loads(given[name])
    return given


def _reply(*, error: str = "", **extra: Any) -> Reply:
    message = {"ok": False, "error": error} if error else {"ok": True}
    return Reply(body=json.dumps(message | extra).encode())
