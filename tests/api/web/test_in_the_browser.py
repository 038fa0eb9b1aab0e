"""The page as readers use it, in Chromium: by keyboard, without scripts, on a phone, in the dark, through axe."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.web.conftest import Visit

Visits = Callable[..., Visit]

#: The first view of a page, compressed, with everything that it loads.
MOST_BYTES = 600_000


def test_a_job_is_planned_by_keyboard_alone(visit: Visits) -> None:
    reader = visit()
    reader.go("/")
    reader.page.evaluate("window.stillThere = true")
    keys = reader.page.keyboard
    keys.press("Tab")
    assert reader.page.evaluate("document.activeElement.className") == "skip"
    keys.press("Enter")
    reader.tab_to("model")
    keys.type("llama-3-8b")
    reader.tab_to("tokens")
    keys.type("200M")
    reader.tab_to("deadline")
    keys.type("36h")
    keys.press("Enter")
    reader.page.wait_for_url("**/plans/plan-*")
    # It came in place, its address is its own, and the reader goes on at its heading.
    assert reader.focused() == "answer-title"
    assert "Plan for llama-3-8b" in reader.page.title()
    assert reader.page.evaluate("window.stillThere") is True
    # Whoever goes back finds what they typed.
    reader.page.go_back()
    reader.page.wait_for_selector("#model")
    assert [reader.page.input_value(f"#{name}") for name in ("model", "tokens", "deadline")] == [
        "llama-3-8b",
        "200M",
        "36h",
    ]


def test_an_error_stands_at_its_field_and_what_was_typed_stays(visit: Visits) -> None:
    reader = visit()
    reader.go("/")
    page = reader.page
    page.fill("#model", "llama-3-8b")
    page.fill("#tokens", "many")
    page.fill("#deadline", "7 dogs")
    page.keyboard.press("Enter")
    page.wait_for_selector("#summary")
    assert reader.focused() == "summary"
    assert page.input_value("#model") == "llama-3-8b"
    assert page.input_value("#deadline") == "7 dogs"
    assert page.get_attribute("#deadline", "aria-invalid") == "true"
    described = (page.get_attribute("#deadline", "aria-describedby") or "").split()
    assert "not a unit of time" in " ".join(page.inner_text(f"#{element_id}") for element_id in described)
    assert page.get_attribute("#model", "aria-invalid") is None
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert reader.focused() == "tokens"
    assert reader.violations() == []


def test_loading_the_page_again_after_an_error_keeps_what_was_typed(visit: Visits) -> None:
    reader = visit()
    reader.go("/")
    page = reader.page
    page.fill("#model", "llama-3-8b")
    page.fill("#deadline", "7 dogs")
    page.click("text=How to train it")
    page.select_option("#precision", "fp16")
    page.click("text=Region, price kinds and objective")
    page.check("input[name=geography][value=eu]")
    page.fill("#document", "  name: half\n  written: yes")
    page.click(".sticky button.first")
    page.wait_for_selector("#summary")
    page.fill("#tokens", "2B")
    page.reload()
    assert [page.input_value(f"#{name}") for name in ("model", "tokens", "deadline", "precision")] == [
        "llama-3-8b",
        "2B",
        "7 dogs",
        "fp16",
    ]
    assert page.is_visible("#precision")
    assert page.is_checked("input[name=geography][value=eu]")
    # A page that is opened anew is empty.
    reader.go("/")
    assert page.input_value("#model") == ""


def test_a_page_loaded_again_works_where_the_browser_keeps_nothing_for_sites(visit: Visits, planned: str) -> None:
    # As Chromium answers a page for which its user has blocked site data; another reader's would be blocked as well.
    reader = visit(color_scheme="light")
    reader.page.add_init_script(
        "Object.defineProperty(window, 'sessionStorage', {get() { throw new DOMException('', 'SecurityError'); }})"
    )
    reader.go(planned)
    reader.page.reload()
    assert reader.page.locator("p.keys:visible").count() >= 1


def test_a_field_that_is_folded_away_is_opened_where_it_is_wrong(visit: Visits) -> None:
    reader = visit()
    reader.go("/")
    page = reader.page
    assert not page.is_visible("#regions")
    page.click("text=Region, price kinds and objective")
    page.fill("#regions", "atlantis-*")
    page.fill("#model", "resnet-50")
    page.fill("#samples", "1M")
    page.click(".sticky button.first")
    page.wait_for_selector("#error-regions")
    assert page.is_visible("#regions")
    assert "atlantis" in page.inner_text("#error-regions")


def test_everything_works_without_scripts(visit: Visits) -> None:
    reader = visit(java_script_enabled=False)
    reader.go("/?example=llama-3-70b-lora")
    page = reader.page
    page.fill("#deadline", "7 dogs")
    page.click(".sticky button.first")
    page.wait_for_selector("#summary")
    assert page.input_value("#deadline") == "7 dogs"
    page.fill("#deadline", "24h")
    page.click(".sticky button.first")
    page.wait_for_url("**/plans/plan-*")
    assert page.is_visible("ol.rent li")
    page.click("th a:has-text('Cost')")
    assert page.get_attribute("th:has(a:text-is('Cost'))", "aria-sort") == "ascending"
    page.fill("#why-not", "A100")
    page.click("button:text-is('Ask')")
    assert "Why not A100?" in page.inner_text("h1")


def test_a_point_of_the_frontier_is_planned_with_its_deadline(visit: Visits, planned: str) -> None:
    reader = visit()
    reader.go(planned)
    points = reader.page.locator("svg.wide a[href*='point=']")
    assert points.count() > 10
    faster = points.first
    title = faster.get_attribute("aria-label") or ""
    faster.focus()
    reader.page.keyboard.press("Enter")
    reader.page.wait_for_url(lambda url: "/plans/plan-" in url and not url.endswith(planned))
    machines = title.split(": ")[1].split(",")[0]
    assert machines in reader.page.inner_text("ol.rent")


def test_a_chart_is_one_stop_of_tab_whose_points_are_reached_by_arrows(visit: Visits, planned: str) -> None:
    reader = visit()
    reader.go(planned)
    page, keys = reader.page, reader.page.keyboard
    named = "document.activeElement.getAttribute('aria-label')"
    titles = page.eval_on_selector_all(
        "svg.wide[aria-label^='Cost against time'] :is(a, [role=img])",
        "all => all.map(e => e.getAttribute('aria-label'))",
    )
    assert len(titles) > 10
    # Scripts show how it is gone through.
    assert page.locator("p.keys:visible").count() >= 1
    for _ in range(80):
        keys.press("Tab")
        if page.evaluate(named) in titles:
            break
    assert page.evaluate(named) == titles[0]
    for key, at in (
        ("ArrowRight", 1),
        ("ArrowDown", 2),
        ("ArrowLeft", 1),
        ("End", -1),
        ("ArrowRight", 0),
        ("ArrowUp", -1),
    ):
        keys.press(key)
        assert page.evaluate(named) == titles[at], key
    keys.press("Tab")
    assert page.evaluate(named) not in titles
    # Who comes back goes on where they were.
    keys.press("Shift+Tab")
    assert page.evaluate(named) == titles[-1]


def test_a_way_out_is_planned(visit: Visits, unplanned: str) -> None:
    reader = visit()
    reader.go(unplanned)
    reader.page.click("text=Plan with this")
    reader.page.wait_for_url("**/plans/plan-*")
    assert "$" in reader.page.inner_text(".glance")


def test_a_job_file_is_pasted_or_uploaded(visit: Visits, job_on_disk: Path) -> None:
    reader = visit()
    reader.go("/")
    page = reader.page
    page.fill("#document", "workload: {kind: preset, model: resnet-50, samples: 115M}\nbudget_usd: x\ndeadlin: 3d\n")
    page.click("form.have button.first")
    page.wait_for_selector("#error-document")
    lines = page.locator("#summary li").all_inner_texts()
    assert [line.partition(": ")[0] for line in lines] == ["Line 2", "Line 3"]
    assert "did you mean deadline" in page.inner_text("#error-document")
    assert "deadlin: 3d" in page.input_value("#document")
    page.fill("#document", "")
    page.set_input_files("#file", job_on_disk)
    page.click("form.have button.first")
    page.wait_for_url("**/plans/plan-*")
    assert "Cheapest for from-a-file" in page.inner_text("h1")


#: Every page and state that has an address: `plan`, `none`, `jobs` and `decided` stand for a plan, none, a portfolio, a purchase.
PAGES = (
    "/?example=gpt3-175b",
    "plan",
    "plan/why?name=H100",
    "plan/estimate?phase=1",
    "plan/carbon",
    "none",
    "/plans",
    "/plans/absent",
    "/catalogue?instance_type=p5.48xlarge&kind=spot&region=us-east-1&order=-usd_per_hour",
    "/catalogue/accelerators",
    "/catalogue/matrix?kind=spot&accelerator=H100",
    "/accelerators/H100-80GB-SXM",
    "/prices?instance_type=p5.48xlarge&kind=on_demand&region=us-*",
    "/changes",
    "/costs",
    "/portfolio?example=true",
    "jobs",
    "/buy?example=true",
    "decided",
)


#: Names that two things have, and fields whose list of suggestions is not there: of both the browser says nothing.
_LOST = """() => [
  ...[...document.querySelectorAll("[id]")].map(each => each.id).filter((id, at, all) => all.indexOf(id) !== at),
  ...[...document.querySelectorAll("input[list]")].filter(each => !each.list?.options.length).map(each => each.id),
]"""

#: Words of charts that lie beyond the drawing, where a phone cuts them off.
_CUT_OFF = """() => [...document.querySelectorAll("svg.narrow")].flatMap(drawing => {
  const right = drawing.getBoundingClientRect().right + 2;
  return [...drawing.querySelectorAll("text")].filter(e => e.getBoundingClientRect().right > right).map(e => e.textContent);
})"""


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_small_fits_the_narrowest_phone_and_satisfies_axe(
    visit: Visits, planned: str, unplanned: str, planned_jobs: str, decided: str, page: str
) -> None:
    reader = visit()
    network = reader.page.context.new_cdp_session(reader.page)
    sizes: list[float] = []
    network.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    network.send("Network.enable")
    name, slash, rest = page.partition("/")
    reader.go(
        {"plan": planned, "none": unplanned, "jobs": planned_jobs, "decided": decided}.get(name, name) + slash + rest
    )
    reader.page.wait_for_function("document.querySelector('[hx-trigger=load], .htmx-request') === null")
    assert sizes
    assert sum(sizes) <= MOST_BYTES
    assert reader.complaints == []
    assert reader.page.evaluate(_LOST) == []
    assert reader.shift() < 0.05
    assert reader.milliseconds_of_use() < 100
    reader.page.set_viewport_size({"width": 320, "height": 640})
    assert reader.overflow() <= 0
    assert reader.page.evaluate(_CUT_OFF) == []
    assert reader.violations() == []


def test_the_long_page_of_operations_fits_the_narrowest_phone(visit: Visits) -> None:
    reader = visit()
    reader.page.set_viewport_size({"width": 320, "height": 640})
    reader.go("/docs")
    assert reader.overflow() <= 0


def test_the_dark_is_dark_and_light_is_light(visit: Visits) -> None:
    reader = visit()
    reader.page.emulate_media(color_scheme="dark")
    reader.go("/")

    def levels() -> list[int]:
        colour = reader.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        return [int(level) for level in colour.removeprefix("rgb(").removesuffix(")").split(",")]

    assert max(levels()) < 60
    reader.page.emulate_media(color_scheme="light")
    assert min(levels()) > 240


def test_paper_is_white_also_for_who_reads_in_the_dark(visit: Visits, planned: str) -> None:
    reader = visit()
    reader.go(planned)
    for scheme in ("light", "dark"):
        reader.page.emulate_media(media="print", color_scheme="dark" if scheme == "dark" else "light")
        ground, warned = reader.page.evaluate(
            "[document.documentElement, document.querySelector('.warnings')].map(e => getComputedStyle(e).backgroundColor)"
        )
        assert ground == "rgb(255, 255, 255)"
        assert min(int(level) for level in warned.removeprefix("rgb(").removesuffix(")").split(",")) > 200
    assert not reader.page.is_visible("nav")
    reader.page.emulate_media(media="screen")


def test_a_page_that_is_no_page_is_said_and_not_swapped_in(visit: Visits) -> None:
    reader = visit()
    reader.go("/")
    page = reader.page
    answer = '{"status": 503, "detail": "too many requests are waiting"}'
    page.route(
        "**/plans", lambda route: route.fulfill(status=429, content_type="application/problem+json", body=answer)
    )
    page.fill("#model", "resnet-50")
    page.keyboard.press("Enter")
    page.wait_for_selector("#notice:not(:empty)")
    assert "too many requests are waiting" in page.inner_text("#notice")
    assert page.input_value("#model") == "resnet-50"
