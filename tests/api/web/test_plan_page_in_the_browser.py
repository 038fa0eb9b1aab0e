"""The page of a plan in Chromium: its chart answers to pointer and keys, and its parts are tabs."""

import csv
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import httpx
import pytest

from tests.api.web.conftest import Visit

Visits = Callable[..., Visit]


def test_a_dragged_deadline_is_followed_by_the_card_and_then_by_the_plan(
    visit: Visits, client: httpx.Client, planned: str
) -> None:
    reader = visit()
    reader.go(planned)
    page = reader.page
    grip = page.locator("svg.wide .grip.deadline path")
    grip.scroll_into_view_if_needed()
    box = grip.bounding_box()
    assert box is not None
    before = page.inner_text(".glance")
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] - 120, box["y"] + 5, steps=4)
    # While it moves only the card follows: the address stays, and nothing is saved.
    page.wait_for_selector("#answer.preview")
    assert page.inner_text(".glance") != before
    assert reader.path() == planned
    shown = page.inner_text("output")
    page.mouse.up()
    page.wait_for_url(lambda url: "/plans/plan-" in url and not url.endswith(planned))
    page.wait_for_selector("#answer:not(.preview)")
    assert page.inner_text("output") == shown
    job = client.get(f"/v1{reader.path()}").json()["plan"]["job"]
    assert 0 < job["deadline"] < 30 * 24
    assert job["workload"] == client.get(f"/v1{planned}").json()["plan"]["job"]["workload"]
    page.go_back()
    page.wait_for_selector(f"a[href='/?plan={planned.rpartition('/')[2]}']")
    assert page.inner_text(".glance") == before


def test_a_budget_dragged_by_touch_gives_the_fastest_plan_within_it(
    visit: Visits, client: httpx.Client, planned: str
) -> None:
    reader = visit(viewport={"width": 390, "height": 800}, has_touch=True)
    reader.go(planned)
    page = reader.page
    grip = page.locator("svg.narrow .grip.budget path")
    grip.scroll_into_view_if_needed()
    box = grip.bounding_box()
    assert box is not None
    touch = page.context.new_cdp_session(page)
    x, y = box["x"] + 5, box["y"] + 5
    steps: list[tuple[str, list[dict[str, float]]]] = [("touchStart", [{"x": x, "y": y}])]
    steps += [("touchMove", [{"x": x, "y": y + down}]) for down in (20, 40)]
    for kind, points in steps:
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    page.wait_for_selector("#answer.preview")
    assert page.inner_text("#answer h1").startswith("Fastest for")
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_url(lambda url: "/plans/plan-" in url and not url.endswith(planned))
    page.wait_for_selector("#answer:not(.preview)")
    plan = client.get(f"/v1{reader.path()}").json()["plan"]
    assert plan["job"]["objective"] == "time"
    assert float(plan["cost_usd"]["expected"]) <= float(plan["job"]["budget_usd"])
    assert "deadline" not in plan["job"]
    assert page.inner_text("output[for=drag-budget]").startswith("$")
    assert page.inner_text("output[for=drag]") == "none"


def test_a_page_that_takes_long_says_what_is_being_done(visit: Visits, planned: str) -> None:
    reader = visit()
    reader.go(planned)
    page = reader.page
    # As if the answer never came.
    page.evaluate("addEventListener('click', event => event.preventDefault())")
    page.locator("a:text('With carbon')").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#doing:text('Finding the choices of least carbon')")
    page.keyboard.press("Escape")
    assert page.inner_text("#doing") == ""


def test_the_service_gone_while_a_line_moves_is_told(visit: Visits, planned: str) -> None:
    reader = visit()
    reader.go(planned)
    reader.page.route("**/live?*", lambda route: route.abort())
    reader.page.focus("#drag-budget")
    reader.page.keyboard.press("PageDown")
    reader.page.wait_for_selector("#notice:not(:empty)")
    assert "does not answer" in reader.page.inner_text("#notice")
    reader.complaints.clear()


def test_the_deadline_is_moved_by_keys_and_planned_by_a_button(visit: Visits, planned: str) -> None:
    reader = visit()
    reader.go(planned)
    page = reader.page
    page.focus("#drag")
    text = page.get_attribute("#drag", "aria-valuetext")
    page.keyboard.press("Home")
    page.wait_for_selector("#answer.preview")
    assert page.get_attribute("#drag", "aria-valuetext") != text
    # Nothing finishes that early, and the card says so.
    assert "No plan" in page.inner_text("#answer h1")
    page.keyboard.press("End")
    page.wait_for_selector("#answer.preview .glance")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/plans/plan-" in url and not url.endswith(planned))
    assert reader.focused() == "drag"


def test_values_show_under_the_pointer_and_the_legend_hides_marks(visit: Visits, planned: str) -> None:
    reader = visit()
    reader.go(planned)
    page = reader.page
    marks = page.locator("svg.wide a[data-tags]")
    last = marks.last
    last.focus()
    assert page.inner_text(".tip") == last.get_attribute("aria-label")
    page.keyboard.press("Escape")
    assert not page.is_visible(".tip")
    box = page.locator("svg.wide[data-x]").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.5)
    labels = [mark.get_attribute("aria-label") for mark in marks.all()]
    assert page.inner_text(".tip") in [*labels, page.get_attribute("svg.wide .point", "aria-label")]
    entry = page.locator(".legend [data-filters^=kind-]").first
    tag = entry.get_attribute("data-filters") or ""
    entry.locator("button").click()
    assert entry.locator("button").get_attribute("aria-pressed") == "false"
    for mark in marks.all():
        assert mark.is_visible() == (tag not in (mark.get_attribute("data-tags") or "").split())
    entry.locator("button").click()
    assert all(mark.is_visible() for mark in marks.all())


def test_a_chart_is_saved_as_picture_drawing_and_figures(
    visit: Visits, client: httpx.Client, planned: str, tmp_path: Path
) -> None:
    reader = visit()
    reader.go(planned)
    files = {}
    for name in ("PNG", "SVG", "CSV"):
        with reader.page.expect_download() as download:
            reader.page.click(f".files >> text={name}")
        files[name] = tmp_path / name
        download.value.save_as(files[name])
    assert files["PNG"].read_bytes().startswith(b"\x89PNG")
    drawing = ET.fromstring(files["SVG"].read_text(encoding="utf-8"))
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    assert any("rgb" in (part.get("fill") or "") for part in drawing.iter())
    rows = list(csv.DictReader(files["CSV"].read_text(encoding="utf-8").splitlines()))
    points = client.get(f"/v1{planned}").json()["plan"]["frontier"]
    assert [row["cost_usd"] for row in rows] == [point["cost_usd"] for point in points]


@pytest.mark.parametrize("scripts", [True, False])
def test_parts_of_the_answer_are_tabs_or_follow_each_other(visit: Visits, planned: str, scripts: bool) -> None:
    reader = visit(**({} if scripts else {"java_script_enabled": False}))
    reader.go(planned)
    page = reader.page
    if not scripts:
        assert page.locator(".panel").count() == page.locator(".panel:visible").count() > 5
        return
    assert page.locator(".panel:visible").count() == 1
    page.click("[role=tab] >> text=Proof")
    assert page.is_visible("#why-not")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("[role=tab][aria-selected=true]").startswith("How it runs")
    assert not page.is_visible("#why-not")
    page.click("a.button.first >> text=Export")
    assert page.is_visible("#exports")
    # The address of a part opens it.
    reader.go("/catalogue/accelerators")
    reader.go(f"{planned}#why-not")
    assert page.is_visible("#why-not")
