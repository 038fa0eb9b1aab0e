"""A question at the desk: may they ask, is it understood, is there room; then it is kept, and only then acknowledged."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from api.documents.watch import DEFAULT_PERCENT
from api.identity.who import MEANING, Scope
from api.plan_ids import SAVED
from api.slack.blocks import Message, message
from api.slack.commands import COMMANDS, LAST, Question
from api.slack.show_plan import CHEAPER, EXPORT, FASTER, SHARE, WATCH
from api.slack.show_rest import help_message, refusal
from api.slack.workspaces import scopes_of
from catalog.errors import UnusableInput
from catalog.slack_answers import SlackAnswer

if TYPE_CHECKING:
    from api.app import Gpuplan

#: More answers than this that wait for one workspace mean that Slack, or somebody, is stuck.
MOST_WAITING = 50
_LONGEST_ID = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks, from where, and where the answer goes."""

    team_id: str
    user_id: str
    channel_id: str
    enterprise_id: str = ""
    home_team_id: str = ""
    """The workspace of whoever asks, where Slack tells it: another one in a channel that several share."""
    response_url: str = field(repr=False, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What came of a question: a message for now, and what is answered later; or that a form is to be opened.

    `refused` says why there is no question, field by field, where it was the question's own fault.
    """

    message: Message | None = None
    asked: SlackAnswer | None = None
    form: bool = False
    refused: UnusableInput | None = None


def accept(
    gpuplan: "Gpuplan", asker: Asker, read: Callable[[], Question], *, held_until: datetime, announce: bool = False
) -> Accepted:
    """Reads a question and keeps it, or says why not; with `announce` its answer begins with what is being done.

    Raises `StoreFailure`.
    """
    store = gpuplan.store.slack
    judged = asker.home_team_id or asker.team_id
    workspace = store.workspace(judged, asker.enterprise_id)
    if workspace is None:
        return _refused(UnusableInput.at(message=_unknown(judged or asker.enterprise_id)))
    try:
        question = read()
        _refuse_scope(question.scope, scopes_of(workspace))
        if question.kind == "help":
            return Accepted(message=help_message((each.example, each.what) for each in COMMANDS.values()))
        if question.kind == "form":
            return Accepted(form=True)
        request = _resolved(gpuplan, asker, question.request)
    except UnusableInput as error:
        return _refused(error)
    said = {"doing": question.doing} if announce else {}
    asked = _question(asker, question.kind, request | said, held_until)
    if not store.ask(asked, most_waiting=MOST_WAITING):
        text = f"{MOST_WAITING} answers for this workspace wait to be told already; ask again in a few minutes"
        return _refused(UnusableInput.at(message=text))
    return Accepted(message=message(question.doing) if question.doing else None, asked=asked)


def noted(gpuplan: "Gpuplan", asker: Asker, said: Message, *, held_until: datetime) -> SlackAnswer:
    """Keeps a message for somebody whose click can only be acknowledged. Raises `StoreFailure`."""
    asked = _question(asker, "note", {"message": said}, held_until)
    gpuplan.store.slack.ask(asked, most_waiting=2 * MOST_WAITING)
    return asked


def read_click(action: Mapping[str, Any], user_name: str) -> Question:
    """The question that a button or a menu asks. Raises `UnusableInput` for one that no message of ours has."""
    name = str(action.get("action_id") or "")
    value = str(action.get("value") or (action.get("selected_option") or {}).get("value") or "")
    to, _, plan_id = value.rpartition(":")
    if not SAVED.fullmatch(plan_id) or name not in _CLICKS or bool(to) != (name == EXPORT):
        raise UnusableInput.at(message="that button is not one that gpuplan knows; ask again with /gpuplan plan")
    beside: dict[str, dict[str, Any]] = {
        SHARE: {"by": user_name or "somebody"},
        WATCH: {"percent": DEFAULT_PERCENT},
        EXPORT: {"format": to},
    }
    more = beside.get(name, {})
    return Question(kind=name, request={"plan": plan_id} | more, scope=_CLICKS[name], doing="")


_CLICKS: Mapping[str, Scope] = {CHEAPER: "plan", FASTER: "plan", SHARE: "read", WATCH: "plan", EXPORT: "read"}


def _question(asker: Asker, kind: str, request: dict[str, Any], held_until: datetime) -> SlackAnswer:
    enterprise = {"enterprise_id": asker.enterprise_id} if asker.enterprise_id else {}
    return SlackAnswer(
        id=f"ask-{uuid.uuid4().hex}",
        team_id=asker.team_id[:_LONGEST_ID],
        user_id=asker.user_id[:_LONGEST_ID],
        channel_id=asker.channel_id[:_LONGEST_ID],
        kind=kind,
        request=request | enterprise,
        response_url=asker.response_url,
        created_at=datetime.now(UTC),
        held_until=held_until,
    )


def _resolved(gpuplan: "Gpuplan", asker: Asker, request: dict[str, Any]) -> dict[str, Any]:
    """The question with the plan that `last` means."""
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
            message=f"{what}; whoever runs gpuplan can allow it: gpuplan slack allow ID --scope {needed}"
        )


def _unknown(workspace_id: str) -> str:
    known = workspace_id[:_LONGEST_ID]
    return f"this workspace ({known}) may not ask gpuplan; whoever runs it can allow it: gpuplan slack allow {known} --scope plan"


def _refused(error: UnusableInput) -> Accepted:
    return Accepted(message=refusal(error), refused=error)
