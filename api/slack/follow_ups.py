"""Follow-ups in the thread of a plan: "cheaper", "by friday, only nvidia", "under $5k", "why not H100".

A follow-up changes the job of the thread's newest plan by the words of `/gpuplan plan`, or asks about that plan.
"""

import re
from datetime import UTC, datetime, timedelta

from gpuplan.api.schemas.key_value_words import WORDS, changed_by, field_of_value, known_word
from gpuplan.api.slack.command_text import as_typed, first_word
from gpuplan.api.slack.plan_message import CHEAPER, FASTER
from gpuplan.api.slack.slash_commands import COMMANDS, Question, read_command
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import looks_like_time, shown
from gpuplan.catalog.runtime.errors import UnusableInput

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_EXAMPLES = "cheaper, faster, by friday, by 36h, only nvidia, only aws, under $5000, no deadline, nodes=4, why not H100"
#: Phrases of changes, and the field that they set; None where the value says it.
_PHRASES: tuple[tuple[re.Pattern[str], str | None], ...] = (
    (re.compile(r"(?:done |finished |ready )?(?:by|until|before|within|in(?= \d)) (?P<value>.+)"), "by"),
    (re.compile(r"(?:under|below|at most|for less than|max|budget) (?P<value>.+)"), "max"),
    (re.compile(r"(?:only on|only in|only|just|on|in|use) (?P<value>.+)"), None),
)
#: Phrases that remove a requirement.
_REMOVED = {"no deadline": "by", "any time": "by", "no budget": "max", "any budget": "max"}
#: Commands that a thread gives the plan to.
_ABOUT_THE_PLAN = ("why", "watch")
_POLITE = re.compile(r"^(?:please|and|but|then|make it|what about|how about|what if)\s+|[\s?!.]+$", re.IGNORECASE)


def read_follow_up(text: str, plan_id: str, *, now: datetime) -> Question:
    """The request of a follow-up on a plan. Raises `UnusableInput` with examples for one that is not understood."""
    asked = as_typed(text)
    word, rest = first_word(asked)
    if word in _ABOUT_THE_PLAN and not rest.lower().startswith(("plan-", "none-", "last", "capacity")):
        return read_command(f"{word} {plan_id} {_trimmed(rest)}")
    if word in COMMANDS:
        return read_command(asked)
    phrase = _trimmed(asked)
    if phrase.lower() in {CHEAPER, FASTER}:
        return Question(kind=phrase.lower(), request={"plan": plan_id}, scope="plan", doing="")
    given = read_changes(phrase, now=now)
    return Question(kind="follow_up", request={"plan": plan_id, "changes": given}, scope="plan", doing="")


def read_changes(text: str, *, now: datetime) -> dict[str, str | None]:
    """Changes by their words, None for a requirement that goes. Raises `UnusableInput` for what is not understood."""
    changes: dict[str, str | None] = {}
    for part in re.split(r"\s*[,;]\s+|\s+and\s+", text):
        name, value = _change(_trimmed(part), now)
        if changes.get(name) and value and WORDS[name].several:
            value = f"{changes[name]},{value}"
        changes[name] = value
    return changes


def _change(phrase: str, now: datetime) -> tuple[str, str | None]:
    if phrase.lower() in _REMOVED:
        return _REMOVED[phrase.lower()], None
    name, equals, value = phrase.partition("=")
    if equals and (known := known_word(name)) is not None and value.strip():
        return known, _deadline(value, now) if known == "by" else value.strip()
    for pattern, field in _PHRASES:
        if (match := pattern.fullmatch(phrase.lower())) is None:
            continue
        # As typed: names of machines and regions keep their letters.
        value = phrase[match.start("value") :].strip()
        if field == "by":
            return field, _deadline(value, now)
        if field is not None:
            return field, value
        values = re.split(r"\s+or\s+|\s*/\s*", value)
        return field_of_value(values[0]) or "in", ",".join(values)
    if (known := field_of_value(phrase)) is not None:
        return known, phrase
    raise UnusableInput.at(message=f"{shown(phrase)} is not understood; write such as: {_EXAMPLES}")


def _deadline(text: str, now: datetime) -> str:
    """A deadline as a job states it: the end of a named day or date in UTC, else as it is."""
    name = text.lower().removeprefix("next ").strip()
    if name in {"today", "tonight"}:
        return _end_of(now)
    if name == "tomorrow":
        return _end_of(now + timedelta(days=1))
    days = [number for number, day in enumerate(_DAYS) if name in {day, day[:3]}]
    if days:
        # The day after today at the earliest: on a Friday, Friday is a week away.
        ahead = (days[0] - now.weekday() - 1) % 7 + 1
        return _end_of(now + timedelta(days=ahead))
    if looks_like_time(text) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", text.strip()):
        return f"{text.strip()}T23:59Z"
    return text


def _end_of(day: datetime) -> str:
    return f"{day.astimezone(UTC):%Y-%m-%d}T23:59Z"


def _trimmed(text: str) -> str:
    before = ""
    while text != before:
        before, text = text, _POLITE.sub("", text.strip())
    return text


def changed_job(job: JsonObject, changes: dict[str, str | None]) -> tuple[JsonObject, str]:
    """The job with the changes, and the changes in words."""
    made = changed_by(job, changes)
    phrases = [
        f"{WORDS[name].label.lower()} {value}" if value else f"no {WORDS[name].label.lower()}"
        for name, value in changes.items()
    ]
    return made, f"With {', '.join(phrases)}:"
