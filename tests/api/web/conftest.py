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
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, ViewportSize, sync_playwright

from tests.api.web.test_buy_pages import SMALL
from tests.api.web.test_buy_pages import sent as forecast_sent
from tests.api.web.test_portfolio_pages import document, sent, until
from tests.patience import MOST_SECONDS

#: Each process of Chromium takes half a second of the processor; nobody here has to be kept from others.
_FEW_PROCESSES = ("--in-process-gpu", "--renderer-process-limit=1", "--disable-extensions")
DESK: ViewportSize = {"width": 1280, "height": 800}
#: What the browser itself says of an answer that is a refusal, which some tests ask for.
_STATUS = "Failed to load resource: the server responded with a status of 4"
#: Every rule in light at a desk, that of contrast again in the dark, and on a phone all others, with the size of targets.
_LOOKS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("light", 1280, {}),
    ("dark", 1280, {"runOnly": ["color-contrast"]}),
    ("light", 360, {"rules": {"color-contrast": {"enabled": False}, "target-size": {"enabled": True}}}),
)
_AXE = """options => axe.run(document, {...options, resultTypes: ["violations"], preload: false}).then(found =>
  found.violations.map(each => `${each.id} at ${each.nodes.slice(0, 3).map(node => node.target)}`))"""
#: Of rows, options and points that differ in nothing but figures and words, axe need not look at more than three.
_THIN = """() => document.querySelectorAll("tbody, ul, dl, select, datalist, svg").forEach(parent => {
  const seen = new Map();
  for (const each of [...parent.children]) {
    const parts = [each, ...each.querySelectorAll("*")];
    const shape = parts.map(part => [part.tagName, part.getAttribute("class"), part.getAttribute("role")]).join();
    seen.set(shape, (seen.get(shape) || 0) + 1);
    if (seen.get(shape) > 3) each.remove();
  }
})"""

#: How far what was drawn has moved since without the reader's doing (CLS).
_SHIFT = """() => new Promise(done => {
  const observer = new PerformanceObserver(list => done(
    list.getEntries().filter(e => !e.hadRecentInput).reduce((sum, e) => sum + e.value, 0)));
  observer.observe({type: "layout-shift", buffered: true});
  setTimeout(done, 50, 0);
})"""
#: Resolves once what follows from an interaction has been drawn.
_DRAWN = "new Promise(done => requestAnimationFrame(() => setTimeout(done)))"


@dataclass
class Visit:
    """One reader at one service: a page, what it asked for, and what went wrong on it."""

    page: Page
    base: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def request(self, request: Request) -> None:
        self.requests.append(request.url)

    def error(self, error: Error) -> None:
        self.complaints.append(str(error))

    def record_message(self, console_message: ConsoleMessage) -> None:
        if console_message.type in {"error", "warning"} and not console_message.text.startswith(_STATUS):
            self.complaints.append(console_message.text)

    def go(self, path: str) -> None:
        self.page.goto(self.base + path)

    def path(self) -> str:
        parts = urlsplit(self.page.url)
        return parts.path + (f"?{parts.query}" if parts.query else "")

    def focused(self) -> str:
        """The id of what has the focus, or its tag."""
        focused_id: str = self.page.evaluate(
            "document.activeElement.id || document.activeElement.tagName.toLowerCase()"
        )
        return focused_id

    def tab_to(self, name: str, *, most: int = 80) -> None:
        """Press Tab until something of this id, or else this class or tag, has the focus."""
        for _ in range(most):
            self.page.keyboard.press("Tab")
            if self.page.evaluate("name => document.activeElement.matches(`#${name}, .${name}`)", name):
                return
        raise AssertionError(f"{name} cannot be reached by {most} presses of Tab")

    def violations(self) -> list[str]:
        """What axe finds in each of the looks; the page is of no use afterwards."""
        self.page.evaluate(AXE_SCRIPT)
        self.page.evaluate(_THIN)
        problems = []
        for scheme, width, options in _LOOKS:
            self.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            self.page.set_viewport_size({"width": width, "height": 800})
            problems += [f"{self.path()} {scheme} {width}: {problem}" for problem in self.page.evaluate(_AXE, options)]
        # axe measures with styles of its own, at which the policy takes offence: that is not the page's doing.
        self.complaints.clear()
        return problems

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        pixels: int = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        return pixels

    def shift(self) -> float:
        """How far the page has moved by itself since it was loaded."""
        moved: float = self.page.evaluate(_SHIFT)
        return moved

    def milliseconds_of_use(self) -> float:
        """What opening the first closed part of the page and tabbing on takes of its thread, whatever else runs."""
        thread = self.page.context.new_cdp_session(self.page)
        thread.send("Performance.enable", {"timeDomain": "threadTicks"})

        def spent() -> float:
            metrics = thread.send("Performance.getMetrics")["metrics"]
            return next(1000 * float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")

        before = spent()
        closed = self.page.locator("main details:not([open]) > summary:visible")
        if closed.count():
            closed.first.click()
        self.page.keyboard.press("Tab")
        self.page.evaluate(_DRAWN)
        passed = spent() - before
        self.page.evaluate("document.activeElement.blur()")
        return passed

    def foreign(self) -> list[str]:
        """Requests that left the host."""
        return [url for url in self.requests if not url.startswith((self.base, "data:"))]


# Of the module: while playwright's loop runs, no other test of the same process could run one of its own. (A package
# without __init__.py would count as the session.)
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium. Without it the tests of the page are skipped, and where nothing may be skipped they fail."""
    path = os.environ.get("GPUPLAN_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("needs Chromium (package chromium, or GPUPLAN_CHROMIUM=path), which is not here")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", *_FEW_PROCESSES])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def desk(browser: Browser) -> Iterator[Page]:
    """The page of all readers who ask for nothing special: a new one takes a second of the processor."""
    page = browser.new_page(viewport=DESK)
    yield page
    page.context.close()


@pytest.fixture
def visit(browser: Browser, desk: Page, client: httpx.Client) -> Iterator[Callable[..., Visit]]:
    """A reader; afterwards no request may have left the host, and the console must have nothing to say.

    Without options it is the one at the desk, with options one with a browser of their own.
    """
    made: list[Visit] = []

    def visitor(**options: Any) -> Visit:
        page = browser.new_context(**({"viewport": DESK} | options)).new_page() if options else desk
        visit = Visit(page=page, base=str(client.base_url).rstrip("/"))
        page.set_default_timeout(MOST_SECONDS * 1000)
        page.on("request", visit.request)
        page.on("pageerror", visit.error)
        page.on("console", visit.record_message)
        made.append(visit)
        return visit

    yield visitor
    for visit in made:
        if visit.page is not desk:
            visit.page.context.close()
        else:
            desk.remove_listener("request", visit.request)
            desk.remove_listener("pageerror", visit.error)
            desk.remove_listener("console", visit.record_message)
            desk.unroute_all()
            # Not about:blank, for which Chromium would begin another process.
            desk.goto(visit.base + "/healthz")
            desk.emulate_media(color_scheme="light")
            desk.set_viewport_size(DESK)
    for visit in made:
        assert visit.foreign() == []
        assert visit.complaints == []


@pytest.fixture(scope="session")
def planned(client: httpx.Client) -> str:
    """The path of a plan with its frontier; on one provider, because many pages of it are worked out."""
    form = {
        "model": "llama-3-8b",
        "tokens": "300B",
        "precision": "bf16",
        "deadline": "30d",
        "max_nodes": "64",
        "start": "2026-11-22T12:00Z",
        "location": "aws:us-east-1",
        "dataset_gb": "1200",
        "providers": "aws",
    }
    return _posted(client, form)


@pytest.fixture(scope="session")
def unplanned(client: httpx.Client) -> str:
    """The path of an answer without a plan."""
    return _posted(client, {"model": "resnet-50", "samples": "115M", "deadline": "2h", "budget_usd": "1"})


def _posted(client: httpx.Client, form: dict[str, str]) -> str:
    answer = client.post("/plans", data=form)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


@pytest.fixture(scope="session")
def planned_jobs(client: httpx.Client) -> str:
    """The path of a portfolio with names of every kind."""
    names = ("first", "<b>second</b>", "\u0645\u0631\u062d\u0628\u0627", "x" * 190)
    path: str = sent(client, document(*names, name="night <script>")).headers["location"]
    until(client, path, lambda page: "Searching for the cheapest plan" not in page)
    return path


@pytest.fixture(scope="session")
def decided(client: httpx.Client) -> str:
    """The path of a decision on what to own, commit to and rent."""
    path: str = forecast_sent(client, SMALL).headers["location"]
    return path


@pytest.fixture
def job_on_disk(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(
        "name: from-a-file\nworkload: {kind: preset, model: resnet-50, samples: 115M}\ndeadline: 36h\n",
        encoding="utf-8",
    )
    return path
