"""The page's first view: how long it takes, what it transfers, and what axe finds on it.

Run from the repository root: python -m tools.benchmarks.page_speed [VIEWS]. Starts its own service process on a free loopback
port, and Chromium; every view has an empty cache. `load` counts from the start of the navigation to the load event,
the plan itself being there already. Prints a table, asserts nothing.
"""

import os
import shutil
import statistics
import sys

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, sync_playwright

from tools.benchmarks.http_load import service

#: What was asked: seconds to the first view on loopback, and bytes transferred for it, compressed.
ASKED_SECONDS, ASKED_BYTES = 1.0, 600_000
JOB = {"model": "llama-3-8b", "tokens": "300B", "precision": "bf16", "deadline": "30d", "max_nodes": "64"}
IMPOSSIBLE = {"model": "resnet-50", "samples": "115M", "deadline": "1h", "budget_usd": "1"}
OTHERS = ("/catalogue", "/prices", "/changes", "/portfolio", "/docs")
#: Colour scheme and width of the window.
LOOKS = (("light", 1280), ("dark", 1280), ("light", 360))


def first_views(browser: Browser, url: str, views: int) -> tuple[list[float], list[float], int]:
    """Seconds to the load event and to the first paint of content per view, and the bytes of one."""
    loads, paints, sizes = [], [], []
    for _ in range(views):
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        page = context.new_page()
        network = context.new_cdp_session(page)
        received: list[float] = []
        network.on(
            "Network.loadingFinished", lambda event, received=received: received.append(event["encodedDataLength"])
        )
        network.send("Network.enable")
        page.goto(url)
        page.wait_for_load_state("networkidle")
        timing = page.evaluate(
            "[performance.getEntriesByType('navigation')[0].loadEventEnd,"
            " performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN]"
        )
        loads.append(timing[0] / 1e3)
        paints.append(timing[1] / 1e3)
        sizes.append(sum(received))
        context.close()
    return loads, paints, int(max(sizes))


def violations(browser: Browser, url: str) -> list[str]:
    """What axe finds in each look."""
    lines = []
    for scheme, width in LOOKS:
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme="dark" if scheme == "dark" else "light"
        )
        page = context.new_page()
        page.goto(url)
        lines += [f"{scheme} {width}: {item['id']}" for item in Axe().run(page).response["violations"]]
        context.close()
    return lines


def main() -> None:
    """The table."""
    views = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    chromium = os.environ.get("GPUPLAN_CHROMIUM") or shutil.which("chromium") or "chromium"
    with service() as (client, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        plan = client.post("/plans", data=JOB).headers["location"]
        none = client.post("/plans", data=IMPOSSIBLE).headers["location"]
        named = {"/": "/", "a plan": plan, "why not H100": f"{plan}/why?name=H100", "an estimate": f"{plan}/estimate"}
        named |= {"no plan": none} | {path: path for path in OTHERS}
        print(f"{'page':16} {'status':>6} {'load s':>8} {'worst s':>8} {'paint s':>8} {'bytes':>9}  axe")
        for name, path in named.items():
            url = f"{client.base_url}{path}".replace("//", "/").replace("http:/", "http://")
            status = client.get(path).status_code
            loads, paints, size = first_views(browser, url, views)
            axe_violations = violations(browser, url)
            print(
                f"{name:16} {status:6} {statistics.median(loads):8.3f} {max(loads):8.3f}"
                f" {statistics.median(paints):8.3f} {size:9,}  {', '.join(axe_violations) or 'nothing'}"
            )
        print(f"asked: at most {ASKED_SECONDS} s and {ASKED_BYTES:,} bytes, and axe finds nothing")
        browser.close()


if __name__ == "__main__":
    main()
