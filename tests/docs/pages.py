"""The pages under docs/ and README.md as what can be run: fenced blocks in their order, with what stands before them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
#: Languages in which commands are given: with `$ ` before each and what they print below, or bare.
SHELLS = {"console", "sh", "bash"}

_FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>\w*)(?P<rest>[^\n]*)\n(?P<text>.*?)^(?P=indent)(?P=fence) *$",
    re.MULTILINE | re.DOTALL,
)
_TITLE = re.compile(r'title="([^"]+)"')
#: Why the block below is not run here.
_NOT_RUN = re.compile(r"<!-- not run: ([^>]+?) -->\s*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block: `line` is where it begins, `not_run` why it is not run (empty: it is)."""

    page: str
    line: int
    language: str
    title: str
    text: str
    not_run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command, what the page shows of its output (empty: nothing), and the exit code that it is to end with."""

    text: str
    shown: str
    code: int


def pages() -> list[Path]:
    """Every page, README.md among them."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in their order."""
    text = page.read_text(encoding="utf-8")
    listed = []
    for match in _FENCE.finditer(text):
        title = _TITLE.search(match["rest"])
        reason = _NOT_RUN.search(text[: match.start()])
        indent = len(match["indent"])
        listed.append(
            Block(
                page=name_of(page),
                line=text.count("\n", 0, match.start()) + 1,
                language=match["language"],
                title=title[1] if title else "",
                text="".join(line[indent:] or "\n" for line in match["text"].splitlines(keepends=True)),
                not_run=reason[1] if reason else "",
            )
        )
    return listed


def commands(block: Block) -> Iterator[Command]:
    """The commands of a block: `$ ` lines with what they print, or in `sh` every line. `# exit code 4` may end one."""
    prompt = "$ " if block.language == "console" else ""
    blocks_of_commands: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if blocks_of_commands and blocks_of_commands[-1][0].endswith("\\"):
            blocks_of_commands[-1] = (blocks_of_commands[-1][0][:-1] + line.strip(), [])
        elif prompt and not line.startswith(prompt):
            blocks_of_commands[-1][1].append(line)
        elif line.strip():
            blocks_of_commands.append((line.removeprefix(prompt), []))
    for text, shown in blocks_of_commands:
        command, _, comment = text.partition("  # ")
        code = re.match(r"exit code (\d+)", comment)
        yield Command(text=command.strip(), shown="\n".join(shown).strip(), code=int(code[1]) if code else 0)
