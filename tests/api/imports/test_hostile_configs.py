"""Files that are hostile, broken or too large are refused in one line: no traceback, no hang, nothing read outside the root."""

import json
import random
import time
from pathlib import Path

import pytest

from gpuplan.api.imports.job_from_facts import Given, job_of
from gpuplan.api.imports.reading import read_file, read_text
from gpuplan.api.imports.rendering import as_json, job_file, summary
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.api.imports.config_texts import AXOLOTL, LLAMA, LLAMA_FACTORY, MEGATRON, SKYPILOT, TORCHTUNE, TRAINER

_BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(8)
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_BOMB.encode(), "expands to more than"),
        (b"\x7fELF\x00\x01", "binary"),
        (b"\xff\xfe\x00", "binary"),
        (b"", "empty"),
        (b"[" * 5000, "nested more than"),
        (b"a: &a [*a]\n", "names no anchor"),
        (b"x" * (2 * 1024 * 1024), "larger than 1 MiB"),
        (b"colour: blue\n", "no format that is known"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    with pytest.raises(UnusableInput, match=message) as refused:
        read_file(path)
    assert "\n" not in str(refused.value)


def test_a_file_that_leads_out_of_the_root_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"zero_optimization": {"stage": 2}}')
    root = tmp_path / "repository"
    root.mkdir()
    (root / "run.yaml").write_text(LLAMA_FACTORY + "deepspeed: ../secret.json\n")
    with pytest.raises(UnusableInput, match="leads out of"):
        read_file(root / "run.yaml")
    assert read_file(root / "run.yaml", tmp_path).text("sharding") == "zero 2"


def test_a_symbolic_link_out_of_the_root_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"zero_optimization": {"stage": 2}}')
    root = tmp_path / "repository"
    root.mkdir()
    (root / "ds.json").symlink_to(tmp_path / "secret.json")
    (root / "run.yaml").write_text(LLAMA_FACTORY + "deepspeed: ds.json\n")
    with pytest.raises(UnusableInput, match="leads out of"):
        read_file(root / "run.yaml")


def test_text_that_was_handed_over_reads_no_file() -> None:
    facts = read_text(LLAMA_FACTORY + "deepspeed: /etc/hostname\n", "run.yaml")
    assert facts.missing_files == ["/etc/hostname"]


def test_an_environment_variable_is_never_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCH", "64")
    facts = read_text(LLAMA_FACTORY.replace("batch_size: 2", "batch_size: ${BATCH}"), "run.yaml")
    assert facts.value("micro_batch") is None
    assert any("${BATCH}" in line for line in facts.not_understood)


_TEXTS = [MEGATRON, SKYPILOT, LLAMA_FACTORY, TRAINER, AXOLOTL, TORCHTUNE, json.dumps(LLAMA, indent=1)]
_PIECES = [
    "0",
    "-1",
    "1e400",
    ".nan",
    "null",
    "[]",
    "{}",
    "${a.b}",
    "*x",
    "&x ",
    "\t",
    "'",
    '"',
    ": ",
    "\n",
    "9" * 50,
    "..",
    "true",
    "\u202e",
]


def mutated(text: str, chance: random.Random) -> str:
    """The text with a few pieces cut, doubled or replaced."""
    for _ in range(chance.randint(1, 6)):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.choice([0, 1, 5, 20]))
        text = text[:start] + chance.choice([*_PIECES, text[start:end] * 2]) + text[end:]
    return text


@pytest.mark.slow(reason="200 mutated configurations")
def test_mutated_configurations_are_read_or_refused_and_end() -> None:
    for seed in range(200):
        chance = random.Random(seed)
        text = mutated(chance.choice(_TEXTS), chance)
        begin = time.process_time()
        try:
            made = job_of(read_text(text, "run.sh" if "#!" in text else "run.yaml"), Given(tokens="2B", gpus=8))
            json.dumps(as_json(made))
            assert job_file(made)
            assert summary(made)
        except UnusableInput as refused:
            assert "\n" not in str(refused), seed  # noqa: PT017
        assert time.process_time() - begin < 2, seed
