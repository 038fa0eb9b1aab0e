"""What the pages and the help tell people to type in Slack succeeds when they do."""

import re
from pathlib import Path

from gpuplan.api.slack.slash_commands import COMMANDS
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


def typed_examples() -> list[str]:
    """Every command that stands whole on a page or in the help, plans first since others rest on one."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    inline = [
        command for page in pages for command in re.findall(r"`(/gpuplan [^`]+)`", page.read_text(encoding="utf-8"))
    ]
    examples = {*inline, *(command.example for command in COMMANDS.values())}
    # One that lacks what only the reader has, names an id, opens a form, or quotes Slack's own complaint is none.
    nobody_types = {
        command for command in examples if re.search(r" (ID|unwatch|failed)\b", command) or command == "/gpuplan plan"
    }
    whole = {command.removeprefix("/gpuplan ") for command in examples - nobody_types} - {"watch"}
    return sorted(whole, key=lambda command: list(ANSWERS).index(command.split()[0]))


def test_every_command_that_people_are_told_to_type_is_answered(acme: Acme) -> None:
    typed = typed_examples()
    assert {command.split()[0] for command in typed} == set(ANSWERS)
    for text in typed:
        command = text.split()[0]
        if command == "help":
            assert ANSWERS[command] in "\n".join(texts(acme.types(text)["blocks"]))
        else:
            assert ANSWERS[command] in acme.asks(text).text, text
    # And as the list of watches says, each is ended by its id; the other tests share this store.
    watches = re.findall(r"watch-[0-9a-f]{16}", acme.asks("watches").text)
    assert len(watches) == sum(command.startswith("watch ") for command in typed)
    for watch in watches:
        assert watch in acme.asks(f"unwatch {watch}").text
