"""Every command, program and document of the pages works, in the order in which the page has them."""

import itertools
import json
import os
import shlex
import tomllib
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.schemas.forecast import parse_forecast
from gpuplan.api.schemas.job import parse_job
from gpuplan.api.schemas.portfolio import parse_portfolio
from gpuplan.api.schemas.settings_file import SettingsFile
from gpuplan.api.schemas.spot_run import SpotRunDocument, spot_request
from gpuplan.catalog.parsing.document_fields import read_as
from gpuplan.catalog.parsing.structured_text import read_document
from gpuplan.providers.own_rates.document_rows import document_rows
from gpuplan.providers.owned.inventory_file import InventoryDocument
from tests.docs.pages import SHELLS, Block, blocks, commands, name_of, pages
from tests.docs.shell import Shell, options_of

PAGES = [page for page in pages() if blocks(page)]
NOW = datetime(2026, 11, 22, tzinfo=UTC)

#: Blocks that cannot be run here, by page: each says why in a comment, and here how many there are.
NOT_RUN = {
    "README.md": 1,
    "docs/costs.md": 1,
    "docs/extending.md": 2,
    "docs/index.md": 3,
    "docs/operations/backup.md": 2,
    "docs/operations/deployment.md": 4,
    "docs/providers.md": 5,
    "docs/recipes.md": 1,
    "docs/security.md": 1,
}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_shows_works(page: Path, make_shell: Callable[[], Shell]) -> None:
    shell = make_shell()
    page_blocks = blocks(page)
    for block, following in itertools.zip_longest(page_blocks, page_blocks[1:]):
        if block.not_run:
            continue
        if block.language in SHELLS:
            shell.run(block)
        elif block.language == "python":
            printed = shell.execute(block)
            if following is not None and following.language == "text":
                held = OutputChecker().check_output(following.text, printed, ELLIPSIS | NORMALIZE_WHITESPACE)
                assert held, f"{block.page}:{block.line} printed:\n{printed}"
        elif block.title:
            shell.write(block)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_documents_on_a_page_are_read_by_what_reads_them(page: Path) -> None:
    for block in blocks(page):
        where = f"{block.page}:{block.line}"
        if block.language == "yaml":
            read_yaml(read_document(block.text, name=where), where)
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "csv":
            assert document_rows(block.text, where)
        else:
            assert block.language in SHELLS | {"python", "text"}, f"{where} is in a language that nothing here reads"


def read_yaml(document: dict[str, Any], where: str) -> None:
    """By what it holds."""
    if "workload" in document:
        parse_job(document, now=NOW)
    elif "runs-on" in str(document) or "includedPermissions" in document:
        return
    elif "per_month" in str(document.get("jobs")):
        parse_forecast(document, now=NOW)
    elif "jobs" in document:
        parse_portfolio(document, now=NOW)
    elif "machines" in document:
        read_as(InventoryDocument, document)
    elif "places" in document:
        spot_request(read_as(SpotRunDocument, document))
    else:
        assert set(document) & set(SettingsFile.model_fields), f"{where}: what reads this?"
        read_as(SettingsFile, document)


def test_what_is_not_run_says_why_and_is_counted() -> None:
    not_run = [block for page in pages() for block in blocks(page) if block.not_run]
    assert Counter(block.page for block in not_run) == NOT_RUN


def test_commands_that_are_not_run_have_the_options_that_they_name() -> None:
    seen = 0
    for page in pages():
        for block in blocks(page):
            for line in commands_not_run(block):
                words = shlex.split(line)
                while words and ("=" in words[0] or words[0] in {"sudo", "export"}):
                    words = words[1:]
                if words[:1] == ["gpuplan"]:
                    options_of([word for word in words[1:] if word not in {">", "|"}])
                    seen += 1
    assert seen


def commands_not_run(block: Block) -> list[str]:
    if not block.not_run or block.language not in SHELLS:
        return []
    return [os.path.expandvars(command.text) for command in commands(block) if "$(" not in command.text]
