"""What the pages and the help tell people to type in Slack succeeds when they do."""

import re
from pathlib import Path

from api.slack.commands import COMMANDS
from tests.api.slack.conftest import Acme
from tests.clouds.slack import texts

ROOT = Path(__file__).resolve().parents[3]
#: How an answer of a command begins or what it holds, where it is one and not a refusal.
ANSWERS = {
    "plan": "Cheapest for llama-3-8b",
    "price": "Prices of H100",
    "why": "H100",
    "history": "p5.48xlarge",
    "watch": "is watched",
    "watches": "Watched jobs",
    "help": "/gpuplan plan",
}


def told_to_type() -> list[str]:
    """Every command that stands whole on a page or in the help, plans first since others rest on one."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    inline = [each for page in pages for each in re.findall(r"`(/gpuplan [^`]+)`", page.read_text(encoding="utf-8"))]
    found = {*inline, *(command.example for command in COMMANDS.values())}
    # One that lacks what only the reader has, names an id, opens a form, or quotes Slack's own complaint is none.
    nobody_types = {each for each in found if re.search(r" (ID|unwatch|failed)\b", each) or each == "/gpuplan plan"}
    whole = {each.removeprefix("/gpuplan ") for each in found - nobody_types} - {"watch"}
    return sorted(whole, key=lambda each: list(ANSWERS).index(each.split()[0]))


def test_every_command_that_people_are_told_to_type_is_answered(acme: Acme) -> None:
    typed = told_to_type()
    assert {each.split()[0] for each in typed} == set(ANSWERS)
    for text in typed:
        command = text.split()[0]
        if command == "help":
            assert ANSWERS[command] in "\n".join(texts(acme.types(text)["blocks"]))
        else:
            assert ANSWERS[command] in acme.asks(text).text, text
    # And as the list of watches says, one is ended by its id; the other tests share this store.
    [watch] = re.findall(r"watch-[0-9a-f]{16}", acme.asks("watches").text)
    assert watch in acme.asks(f"unwatch {watch}").text
