"""The pages become a site without a warning, which loads nothing from elsewhere; links of README.md lead somewhere."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, SHELLS, blocks, commands, name_of, pages

#: What a browser fetches by itself when it shows a page.
_FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}
#: Links that name an address and fetch nothing.
_ONLY_NAMED = {"canonical", "next", "prev", "edit", "alternate"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return folder


class Fetches(HTMLParser):
    """What a page has the browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in _FETCHED and given.get("rel") not in _ONLY_NAMED and (target := given.get(_FETCHED[tag])):
            self.found.append(target)


def test_every_page_is_on_the_site_with_links_and_anchors_that_lead_somewhere(site: Path) -> None:
    wanted = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    assert wanted <= {page.relative_to(site) for page in site.rglob("*.html")}


def test_what_pages_link_to_outside_docs_is_on_the_site(site: Path) -> None:
    assert (site / "files/examples/inventory.yaml").read_text() == (ROOT / "examples/inventory.yaml").read_text()


def test_a_page_has_the_browser_fetch_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        fetches = Fetches()
        fetches.feed(page.read_text(encoding="utf-8"))
        assert fetches.found
        assert [address for address in fetches.found if re.match(r"(?:\w+:)?//", address)] == [], page
    styles = [sheet.read_text(encoding="utf-8") for sheet in site.rglob("*.css")]
    assert not [address for sheet in styles for address in re.findall(r"url\(['\"]?(?:https?:)?//[^)]*", sheet)]


def test_links_of_the_readme_lead_to_files_and_headings() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", text)
    assert len(targets) > 10
    for target, anchor in targets:
        path = ROOT / target
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), f"{target}#{anchor}"


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_no_page_speaks_of_where_it_was_written() -> None:
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r"/work/|/tmp/|\bTODO\b|\bFIXME\b", text), name_of(page)


class Copied(HTMLParser):
    """What the copy button takes of each block, and the code that stands in it."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[tuple[str | None, str]] = []
        self._copy: str | None = None
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "div" and given.get("class") == "highlight":
            self._copy = given.get("data-copy")
        if tag == "code" and self.get_starttag_text() == "<code>":
            self._inside = True
            self.blocks.append((self._copy, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "code":
            self._inside = False
        if tag == "div":
            self._copy = None

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.blocks[-1] = (self.blocks[-1][0], self.blocks[-1][1] + data)


def test_the_copy_button_of_a_console_block_takes_its_commands_alone(site: Path) -> None:
    # The theme's own script honours the attribute, on the block or around it.
    assert any("[data-copy]" in script.read_text(encoding="utf-8") for script in site.rglob("bundle.*.js"))
    for page in DOCS.rglob("*.md"):
        copied = Copied()
        copied.feed((site / page.relative_to(DOCS).with_suffix(".html")).read_text(encoding="utf-8"))
        copies = [copy or "" for copy, text in copied.blocks if text.startswith("$ ")]
        wanted = [block for block in blocks(page) if block.language == "console"]
        assert len(copies) == len(wanted)
        for copy, block in zip(copies, wanted, strict=True):
            whole = re.sub(r"\\\n\s*", "", copy).splitlines()
            assert [line.partition("  # ")[0] for line in whole] == [command.text for command in commands(block)]


def test_no_page_tells_a_reader_to_type_what_nobody_can(site: Path) -> None:
    for page in pages():
        for block in blocks(page):
            if block.language in SHELLS:
                assert not re.search(r"\bREPOSITORY\b", block.text), f"{block.page}:{block.line}"
