"""The page on the architecture, its map and the decisions say what is in the tree."""

import re
from xml.etree import ElementTree

from tests.docs.moving_packages import listed, missing, named, top_level, unnamed
from tests.docs.pages import DOCS, ROOT

AGAIN = "run `python -m tests.docs.moving_packages`, and see that each line of its list is meant"
#: What the four layers of the map name that is no folder.
MODULES_ON_THE_MAP = {"contract"}


def test_every_package_on_the_page_exists_or_is_listed_as_to_come() -> None:
    assert len(named()) > 30
    assert missing() == listed()[0], AGAIN


def test_every_top_level_package_is_on_the_page_or_listed_as_to_go() -> None:
    assert {"api", "catalog", "planner", "providers", "tests"} <= top_level()
    assert unnamed() == listed()[1], AGAIN


def test_the_map_names_the_layers_and_the_packages_of_the_page() -> None:
    root = ElementTree.fromstring((DOCS / "architecture.svg").read_text(encoding="utf-8"))
    words = set(
        re.findall(r"\w+", " ".join(element.text or "" for element in root.iter() if element.tag.endswith("text")))
    )
    folders = {folder for folder in named() if folder.split("/")[0] in {"api", "catalog", "planner", "providers"}}
    assert {part for folder in folders for part in folder.split("/")} - words == {"facts"}
    assert words >= MODULES_ON_THE_MAP


def test_every_decision_is_in_the_index_and_on_the_site() -> None:
    pages = sorted(page.name for page in (DOCS / "adr").glob("0*.md"))
    index, site = (path.read_text(encoding="utf-8") for path in (DOCS / "adr" / "index.md", ROOT / "mkdocs.yml"))
    assert len(pages) >= 8
    assert all(f"]({page})" in index and f"adr/{page}" in site for page in pages)
    for page in pages:
        text = (DOCS / "adr" / page).read_text(encoding="utf-8")
        headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequences"], page
        assert text.startswith(f"# {int(page[:4])}. "), page
