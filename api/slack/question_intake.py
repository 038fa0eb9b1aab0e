"""Accepts requests: checks permission, syntax and limits, stores the request, and only then acknowledges it."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from gpuplan.api.schemas.plan_ids import SAVED
from gpuplan.api.schemas.watch import DEFAULT_PERCENT
from gpuplan.api.security.identity import MEANING, Scope
from gpuplan.api.slack.block_kit import Message, message
from gpuplan.api.slack.other_messages import help_message, refusal
from gpuplan.api.slack.plan_message import CHEAPER, EXPORT, FASTER, NEW, SHARE, SHOW, WATCH
from gpuplan.api.slack.slash_commands import COMMANDS, LAST, Question
from gpuplan.api.slack.workspaces import scopes_of, unknown_workspace
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.slack_store import SlackAnswer

if TYPE_CHECKING:
    from gpuplan.api.services.composition import Services

#: Most pending answers per workspace; more mean that Slack or a worker is stuck.
MOST_WAITING = 50
_LONGEST_ID = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """The requester, the workspace, and the destination of the answer."""

    team_id: str
    user_id: str
    channel_id: str
    enterprise_id: str = ""
    home_team_id: str = ""
    """The requester's own workspace if known; differs in shared channels."""
    response_url: str = field(repr=False, default="")
    thread_ts: str = ""
    """The thread in which the answer is posted for everybody; empty outside threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The result of a request: an immediate message and a stored request, or a form to open.

    `refused` has the faults by field of an invalid request.
    """

    message: Message | None = None
    asked: SlackAnswer | None = None
    form: bool = False
    refused: UnusableInput | None = None


def accept(
    gpuplan: "Services", asker: Asker, read: Callable[[], Question], *, held_until: datetime, announce: bool = False
) -> Accepted:
    """Read and store a request, or say why not. With `announce` the answer starts with the progress line.

    Raises `StoreFailure`.
    """
    store = gpuplan.store.slack
    judged = asker.home_team_id or asker.team_id
    workspace = store.workspace(judged, asker.enterprise_id)
    if workspace is None:
        return _refused(UnusableInput.at(message=unknown_workspace(judged or asker.enterprise_id)))
    try:
        question = read()
        _refuse_scope(question.scope, scopes_of(workspace))
        if question.kind == "help":
            return Accepted(message=help_message((command.example, command.what) for command in COMMANDS.values()))
        if question.kind == "form":
            return Accepted(form=True)
        request = _resolved(gpuplan, asker, question.request)
    except UnusableInput as error:
        return _refused(error)
    announced = {"doing": question.doing} if announce else {}
    asked = _question(asker, question.kind, request | announced, held_until)
    if not store.ask(asked, most_waiting=MOST_WAITING):
        text = f"{MOST_WAITING} answers for this workspace are already pending; try again in a few minutes"
        return _refused(UnusableInput.at(message=text))
    return Accepted(message=message(question.doing) if question.doing else None, asked=asked)


def noted(gpuplan: "Services", asker: Asker, message: Message, *, held_until: datetime) -> SlackAnswer:
    """Store a message as the answer of a click, whose acknowledgement cannot contain one. Raises `StoreFailure`."""
    asked = _question(asker, "note", {"message": message}, held_until)
    gpuplan.store.slack.ask(asked, most_waiting=2 * MOST_WAITING)
    return asked


def read_click(action: Mapping[str, Any], user_name: str) -> Question:
    """The request of a button or menu. Raises `UnusableInput` for an unknown one."""
    name = str(action.get("action_id") or "")
    if name == NEW:
        return Question(kind="form", request={}, scope="plan", doing="")
    value = str(action.get("value") or (action.get("selected_option") or {}).get("value") or "")
    to, _, plan_id = value.rpartition(":")
    if not SAVED.fullmatch(plan_id) or name not in _CLICKS or bool(to) != (name == EXPORT):
        raise UnusableInput.at(message="this button is unknown; start again with /gpuplan plan")
    beside: dict[str, JsonObject] = {
        SHARE: {"by": user_name or "somebody"},
        WATCH: {"percent": DEFAULT_PERCENT},
        EXPORT: {"format": to},
    }
    details = beside.get(name, {})
    return Question(kind=name, request={"plan": plan_id} | details, scope=_CLICKS[name], doing="")


_CLICKS: Mapping[str, Scope] = {
    CHEAPER: "plan",
    FASTER: "plan",
    SHARE: "read",
    WATCH: "plan",
    EXPORT: "read",
    SHOW: "read",
}


def _question(asker: Asker, kind: str, request: JsonObject, held_until: datetime) -> SlackAnswer:
    beside = {name: value for name in ("enterprise_id", "thread_ts") if (value := getattr(asker, name))}
    return SlackAnswer(
        id=f"ask-{uuid.uuid4().hex}",
        team_id=asker.team_id[:_LONGEST_ID],
        user_id=asker.user_id[:_LONGEST_ID],
        channel_id=asker.channel_id[:_LONGEST_ID],
        kind=kind,
        request=request | beside,
        response_url=asker.response_url,
        created_at=datetime.now(UTC),
        held_until=held_until,
    )


def _resolved(gpuplan: "Services", asker: Asker, request: JsonObject) -> JsonObject:
    """The request with `last` replaced by a plan id."""
    if request.get("plan") != LAST:
        return request
    plan_id = gpuplan.store.slack.last_plan(asker.team_id, asker.user_id)
    if plan_id is None:
        message_ = f"you have no plan in the last 30 days; make one: {COMMANDS['plan'].example}"
        raise UnusableInput.at(LAST, message=message_)
    return request | {"plan": plan_id}


def _refuse_scope(needed: Scope, granted: frozenset[Scope]) -> None:
    if needed not in granted:
        may = ", ".join(sorted(granted)) or "nothing"
        what = f"this workspace may {may}, and this takes {needed} ({MEANING[needed]})"
        raise UnusableInput.at(
            message=f"{what}; the operator of gpuplan can allow it: gpuplan slack allow ID --scope {needed}"
        )


def _refused(error: UnusableInput) -> Accepted:
    return Accepted(message=refusal(error), refused=error)
