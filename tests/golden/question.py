"""A question of the corpus: what is asked, and of which interface."""

from dataclasses import dataclass, field
from typing import Any

from tests.golden.comparison import recorded_part
from tests.golden.interfaces import Answered, Interfaces

Document = dict[str, Any]

#: When every job of the corpus starts: the prices are of that summer, and no clock decides.
START = "2026-11-20T00:00:00Z"
#: What stands for the id of the plan that was made first.
PLAN_ID = "{plan}"


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question: a command with files, a request, or a tool with arguments.

    Where there is a job in `planned`, it is planned and saved first, and its id replaces `{plan}`.
    """

    family: str
    name: str
    interface: str
    arguments: list[str] = field(default_factory=list)
    files: Document = field(default_factory=dict)
    method: str = "POST"
    path: str = ""
    body: Any = None
    planned: Document | None = None
    echo: bool = False

    @property
    def key(self) -> str:
        """What it is called in the recorded answers and in the tests."""
        return f"{self.family}/{self.name}"


def ask(question: Question, interfaces: Interfaces) -> Document:
    """The recorded part of the answer."""
    plan_id = "" if question.planned is None else _saved(question.planned, interfaces)
    ended = _asked(question, interfaces, plan_id)
    answered: Document = {"code": ended.code}
    if ended.refused:
        answered["refused"] = sorted(ended.refused)
    if ended.answer is not None:
        answered["answer"] = recorded_part(ended.answer, echo=question.echo)
    return answered


def _saved(job: Document, interfaces: Interfaces) -> str:
    ended = interfaces.http("POST", "/v1/plans", job)
    return str(ended.answer["plan"]["id"])


def _asked(question: Question, interfaces: Interfaces, plan_id: str) -> Answered:
    if question.interface == "cli":
        arguments = [plan_id if argument == PLAN_ID else argument for argument in question.arguments]
        return interfaces.cli(arguments, question.files)
    body = _named(question.body, plan_id)
    if question.interface == "http":
        return interfaces.http(question.method, question.path.replace(PLAN_ID, plan_id), body)
    return interfaces.mcp(question.path, body)


def _named(value: Any, plan_id: str) -> Any:
    if isinstance(value, dict):
        return {name: _named(below, plan_id) for name, below in value.items()}
    if isinstance(value, list):
        return [_named(item, plan_id) for item in value]
    return plan_id if value == PLAN_ID else value


def plan_question(family: str, name: str, interface: str, job: Document, **extra: Any) -> Question:
    """A job to plan, asked of one of the three interfaces."""
    document = {"start": START} | job
    if interface == "cli":
        files = {"job.json": document} | extra.pop("files", {})
        arguments = ["plan", "job.json", "--json", *extra.pop("arguments", [])]
        return Question(family=family, name=name, interface="cli", arguments=arguments, files=files, **extra)
    if interface == "http":
        return Question(family=family, name=name, interface="http", path="/v1/plans", body=document, **extra)
    body = {"job": document, "detail": "full"}
    return Question(family=family, name=name, interface="mcp", path="plan", body=body, **extra)
