"""Parses commands after `/gpuplan` into requests, with errors that name the word and the accepted values."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from gpuplan.api.schemas.job import parse_job
from gpuplan.api.schemas.key_value_words import EXAMPLE, in_words, job_of_words, region, split_words
from gpuplan.api.schemas.watch import DEFAULT_PERCENT, Percent, parse_watch
from gpuplan.api.schemas.why import something_named
from gpuplan.api.security.identity import Scope
from gpuplan.api.slack.command_text import as_typed, before_block, first_word, pasted, uploaded
from gpuplan.api.slack.pasted_jobs import job_of_text
from gpuplan.catalog.parsing.accelerator_names import accelerator_family_text
from gpuplan.catalog.parsing.document_fields import Document as Fields
from gpuplan.catalog.parsing.document_fields import read_as
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import Fault, UnusableInput

LAST = "last"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request: kind, arguments, required scope, and a progress line."""

    kind: str
    request: JsonObject
    scope: Scope
    doing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command: its parser, an example, and its help text."""

    read: Callable[[str], Question]
    example: str
    what: str


class _Threshold(Fields):
    """The change of cost to notify."""

    threshold: Percent = DEFAULT_PERCENT


def read_command(text: str) -> Question:
    """Parse a command. Raises `UnusableInput` with every wrong word and the accepted values."""
    name, rest = first_word(as_typed(text))
    name = _ALSO.get(name, name)
    if name not in COMMANDS:
        near = difflib.get_close_matches(name[:40], COMMANDS, n=1, cutoff=0.6)
        hint = f"did you mean {COMMANDS[near[0]].example}" if near else f"accepted are {', '.join(COMMANDS)}"
        raise UnusableInput.at(message=f"there is no command {shown(name[:40])}; {hint}")
    return COMMANDS[name].read(rest)


def checked_plan(job: JsonObject) -> Question:
    """The request to plan a job, after checking it. Raises `UnusableInput` with all faults."""
    name = parse_job(job, now=datetime.now(UTC)).name
    return Question(kind="plan", request={"job": job}, scope="plan", doing=f"Planning {name}. The answer follows.")


def _plan(rest: str) -> Question:
    """Words, a document, a link to a file, or nothing for the form."""
    if not rest:
        return Question(kind="form", request={}, scope="plan", doing="")
    file = uploaded(rest)
    if file is not None:
        return Question(
            kind="file", request={"file": file}, scope="plan", doing="Reading the job file. The answer follows."
        )
    text = pasted(rest)
    if text is not None:
        return checked_plan(job_of_text(text, split_words(before_block(rest))))
    try:
        return checked_plan(job_of_words(split_words(rest)))
    except UnusableInput as error:
        raise in_words(error) from None


def _price(rest: str) -> Question:
    words = _words("price", rest, least=1, most=4)
    name = " ".join(words)
    request: JsonObject = {}
    if len(words) > 1 and not _is_accelerator(name):
        *head, last = words
        name = " ".join(head)
        request = {"region": region(last)}
    request |= {"accelerator": _read(accelerator_family_text, name, "price")}
    return Question(kind="price", request=request, scope="read", doing=f"Looking up prices of {name}.")


def _is_accelerator(name: str) -> bool:
    try:
        accelerator_family_text(name)
    except ValueError:
        return False
    return True


def _why(rest: str) -> Question:
    words = _words("why", rest, least=1, most=12)
    plan_id, *rest_words = words
    request: JsonObject = {"plan": _plan_id(plan_id)}
    if rest_words:
        if rest_words[0].lower() not in {"not", "with"} or len(rest_words) < 2:
            message = (
                f"{shown(rest_words[0])} is not accepted; write not or with and then a name: {COMMANDS['why'].example}"
            )
            raise UnusableInput.at("why", message=message)
        name = _read(something_named, " ".join(rest_words[1:]), rest_words[0].lower())
        request["about"] = {rest_words[0].lower(): name}
    return Question(kind="why", request=request, scope="plan", doing="Preparing the explanation. The answer follows.")


def _history(rest: str) -> Question:
    words = _words("history", rest, least=1, most=2)
    request = {"instance_type": words[0]}
    if len(words) > 1:
        request["region"] = region(words[1])
    return Question(kind="history", request=request, scope="read", doing=f"Looking up prices of {words[0]}.")


def _watch(rest: str) -> Question:
    head, wanted = first_word(rest)
    if head == "capacity":
        return _watch_capacity(wanted)
    words = _words("watch", rest, least=1, most=2)
    given = {"threshold": words[1]} if len(words) > 1 else {}
    request = {"plan": _plan_id(words[0]), "percent": read_as(_Threshold, given).threshold}
    return Question(kind="watch", request=request, scope="plan", doing="Setting up the watch.")


def _watch_capacity(rest: str) -> Question:
    """`capacity p5.48xlarge nodes=2 chance=0.7 under=60 region=us-east-1`."""
    machine, *settings = _words("watch", rest, least=1, most=8)
    document: JsonObject = {"machine": machine, "channels": ["slack"]}
    for word in settings:
        name, is_given, text = word.partition("=")
        if name not in _CAPACITY_WORDS or not is_given:
            message = f"{shown(word)} is not accepted; accepted: {', '.join(f'{key}=' for key in _CAPACITY_WORDS)}"
            raise UnusableInput.at("watch", message=message)
        document[_CAPACITY_WORDS[name]] = text.split(",") if name == "region" else text
    if "least_chance" in document:
        document["least_chance"] = _number(document["least_chance"])
    try:
        parse_watch(document, now=datetime.now(UTC))
    except UnusableInput as error:
        words = {field: word for word, field in _CAPACITY_WORDS.items()}
        faults = (Fault((words.get(str(fault.path[0]), "watch"),), fault.message) for fault in error.faults)
        raise UnusableInput(*faults) from None
    return Question(kind="watch", request={"capacity": document}, scope="plan", doing="Asking the clouds.")


def _number(text: str) -> float | str:
    """The text as a number, or as it is: the watch refuses it then."""
    try:
        return float(text)
    except ValueError:
        return text


#: Words of `/gpuplan watch capacity`, and the fields of a watch that they set.
_CAPACITY_WORDS = {
    "nodes": "nodes",
    "kind": "kind",
    "region": "region",
    "chance": "least_chance",
    "under": "under_usd_per_node_hour",
}


def _watches(rest: str) -> Question:
    _words("watches", rest, least=0, most=0)
    return Question(kind="watches", request={}, scope="read", doing="Looking up watches.")


def _unwatch(rest: str) -> Question:
    [watch_id] = _words("unwatch", rest, least=1, most=1)
    return Question(kind="unwatch", request={"watch": watch_id}, scope="plan", doing="Ending the watch.")


def _help(_: str) -> Question:
    return Question(kind="help", request={}, scope="read", doing="")


COMMANDS: Mapping[str, Command] = {
    "plan": Command(
        read=_plan,
        example=EXAMPLE,
        what="the cheapest way to run a job; without arguments it opens a form; accepts a pasted job file, or a pasted configuration of another tool",
    ),
    "price": Command(
        read=_price, example="/gpuplan price H100 us-*", what="current prices of an accelerator, cheapest first"
    ),
    "why": Command(
        read=_why, example="/gpuplan why last not H100", what="why a plan is cheapest, or why not something else"
    ),
    "history": Command(read=_history, example="/gpuplan history p5.48xlarge", what="price history of an instance type"),
    "watch": Command(
        read=_watch,
        example="/gpuplan watch last 10%",
        what="notify this channel when a plan gets cheaper or dearer; or when machines can be obtained: "
        "/gpuplan watch capacity p5.48xlarge nodes=2 chance=0.7 under=60",
    ),
    "watches": Command(read=_watches, example="/gpuplan watches", what="watches of this workspace"),
    "unwatch": Command(read=_unwatch, example="/gpuplan unwatch watch-0123456789abcdef", what="end a watch"),
    "help": Command(read=_help, example="/gpuplan help", what="this list"),
}
_ALSO = {"": "help", "prices": "price", "?": "help", "-h": "help", "--help": "help"}


def _words(command: str, rest: str, *, least: int, most: int) -> list[str]:
    words = split_words(rest)
    if not least <= len(words) <= most:
        what = "needs more words" if len(words) < least else f"takes no {shown(words[most][:40])}"
        raise UnusableInput(Fault((command,), f"{what}; write {COMMANDS[command].example}"))
    return words


def _plan_id(text: str) -> str:
    if text.lower() == LAST:
        return LAST
    if not text.startswith(("plan-", "none-")) or len(text) > 80 or not text.isascii():
        message = f"{shown(text)} is not a plan; write {LAST}, or the id below a plan (plan-...)"
        raise UnusableInput.at("plan", message=message)
    return text


def _read[Value](reader: Callable[[object], Value], text: str, word: str) -> Value:
    try:
        return reader(text)
    except ValueError as error:
        raise UnusableInput.at(word, message=str(error)) from None
