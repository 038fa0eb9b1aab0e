"""What the pages link to outside docs/ (examples, files to deploy) becomes part of the site; a missing target ends the build.

The tables of a job file's fields are made from the declarations of these fields.
The copy button of a console block copies its commands alone, without prompts and what they print.
"""

import html
import posixpath
import re
from pathlib import Path

from field_tables import with_tables
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

#: A link that climbs: its text, and where it goes.
_CLIMBING = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#\s]+)\)")
#: A block with prompts, as pygments marks them: its first tag, and the code in it.
_CONSOLE = re.compile(r'<div class="highlight">(?P<inside>(?:(?!</div>).)*?<span class="gp">.*?)</div>', re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
#: Where these files lie on the site.
_FOLDER = "files"


def _outside(target: str, page: str) -> str | None:
    """The path below the repository's root of what a page links to; None where it is inside docs/."""
    found = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    return None if found.startswith("docs/") else found


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Every file that some page links to outside docs/ is copied into the site."""
    root = Path(config.docs_dir).parent
    for documentation_page in list(files.documentation_pages()):
        for _, target in _CLIMBING.findall(documentation_page.content_string):
            path = _outside(target, documentation_page.src_uri)
            if path is None:
                continue
            if not (root / path).exists():
                raise PluginError(f"{documentation_page.src_uri} links to {target}, which is not there")
            uri = f"{_FOLDER}/{path}"
            if (root / path).is_file() and files.get_file_from_path(uri) is None:
                files.append(File.generated(config, uri, abs_src_path=str(root / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to those files lead to their copies, folders are named and not linked; tables of fields are filled in."""

    def there(match: re.Match[str]) -> str:
        path = _outside(match[2], page.file.src_uri)
        if path is None:
            return match[0]
        if files.get_file_from_path(f"{_FOLDER}/{path}") is None:
            return match[1]
        return f"[{match[1]}]({posixpath.relpath(f'{_FOLDER}/{path}', posixpath.dirname(page.file.src_uri) or '.')})"

    return _CLIMBING.sub(there, with_tables(markdown))


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Console blocks say what the theme's copy button copies of them."""

    def copied(block: re.Match[str]) -> str:
        commands = html.escape(commands_of(html.unescape(_TAG.sub("", block["inside"]))))
        return f'<div class="highlight" data-copy="{commands}">{block["inside"]}</div>'

    return _CONSOLE.sub(copied, content)


def commands_of(console: str) -> str:
    """The commands of a console block, a line each, with the lines that a backslash goes on to."""
    found: list[str] = []
    goes_on = False
    for line in console.splitlines():
        if goes_on or line.startswith("$ "):
            found.append(line if goes_on else line.removeprefix("$ "))
            goes_on = line.endswith("\\")
    return "\n".join(found)
