"""A real browser for the tests of the page, and visits that note every request and every word of its console."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

#: What the browser itself says of an answer that is a refusal, which some tests ask for.
_STATUS = "Failed to load resource: the server responded with a status of 4"
_CONTRAST_ONLY = {"resultTypes": ["violations"], "runOnly": ["color-contrast"]}
_ALL_RULES = {"resultTypes": ["violations"]}
#: A phone shows the same colours as a desk, and contrast is the dearest rule by far.
_ALL_BUT_CONTRAST = {"resultTypes": ["violations"], "rules": {"color-contrast": {"enabled": False}}}


@dataclass
class Visit:
    """One reader at one service: a page, what it asked for, and what went wrong on it."""

    page: Page
    base: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        self.page.goto(self.base + path)

    def path(self) -> str:
        parts = urlsplit(self.page.url)
        return parts.path + (f"?{parts.query}" if parts.query else "")

    def focused(self) -> str:
        """The id of what has the focus, or its tag."""
        found: str = self.page.evaluate("document.activeElement.id || document.activeElement.tagName.toLowerCase()")
        return found

    def tab_to(self, name: str, *, most: int = 80) -> None:
        """Press Tab until something of this id, or else this class or tag, has the focus."""
        for _ in range(most):
            self.page.keyboard.press("Tab")
            if self.page.evaluate("name => document.activeElement.matches(`#${name}, .${name}`)", name):
                return
        raise AssertionError(f"{name} cannot be reached by {most} presses of Tab")

    def violations(self) -> list[str]:
        """What axe finds: in light at a desk by all rules, in the dark by that of contrast, on a phone by all others."""
        found = []
        for scheme, width, options in (
            ("light", 1280, _ALL_RULES),
            ("dark", 1280, _CONTRAST_ONLY),
            ("light", 360, _ALL_BUT_CONTRAST),
        ):
            self.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            self.page.set_viewport_size({"width": width, "height": 800})
            response = Axe().run(self.page, options=options).response
            found += [
                f"{self.path()} {scheme} {width}: {each['id']} at {[node['target'] for node in each['nodes']][:3]}"
                for each in response["violations"]
            ]
        # axe measures with styles of its own, at which the policy takes offence: that is not the page's doing.
        self.complaints.clear()
        return found

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        found: int = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        return found

    def foreign(self) -> list[str]:
        """Requests that left the host."""
        return [url for url in self.requests if not url.startswith((self.base, "data:"))]


# Not of the session: while playwright's loop runs, no other test of the same process could run one of its own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium. Without it the tests of the page are skipped, and where nothing may be skipped they fail."""
    path = os.environ.get("GPUPLAN_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("needs Chromium (package chromium, or GPUPLAN_CHROMIUM=path), which is not here")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def visit(browser: Browser, client: httpx.Client) -> Iterator[Callable[..., Visit]]:
    """A new reader; afterwards no request may have left the host, and the console must have nothing to say."""
    made: list[Visit] = []

    def visitor(**options: Any) -> Visit:
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 800}} | options))
        found = Visit(page=context.new_page(), base=str(client.base_url).rstrip("/"))
        found.page.set_default_timeout(20_000)
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.page.on(
            "console",
            lambda said: (
                found.complaints.append(said.text)
                if said.type in {"error", "warning"} and not said.text.startswith(_STATUS)
                else None
            ),
        )
        made.append(found)
        return found

    yield visitor
    for each in made:
        assert each.foreign() == []
        assert each.complaints == []
        each.page.context.close()


@pytest.fixture(scope="session")
def planned(client: httpx.Client) -> str:
    """The path of a plan that moves between machines, with its frontier."""
    form = {
        "model": "llama-3-8b",
        "tokens": "300B",
        "precision": "bf16",
        "deadline": "30d",
        "max_nodes": "64",
        "start": "2026-11-22T12:00Z",
        "location": "aws:us-east-1",
        "dataset_gb": "1200",
    }
    return _posted(client, form)


@pytest.fixture(scope="session")
def unplanned(client: httpx.Client) -> str:
    """The path of an answer without a plan."""
    return _posted(client, {"model": "resnet-50", "samples": "115M", "deadline": "1h", "budget_usd": "1"})


def _posted(client: httpx.Client, form: dict[str, str]) -> str:
    answer = client.post("/plans", data=form)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


@pytest.fixture
def job_on_disk(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(
        "name: from-a-file\nworkload: {kind: preset, model: resnet-50, samples: 115M}\ndeadline: 36h\n",
        encoding="utf-8",
    )
    return path
