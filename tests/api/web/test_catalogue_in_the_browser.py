"""Catalogue, prices, changes and portfolios as readers use them, in Chromium: by keyboard, and without scripts."""

import re
from collections.abc import Callable

import httpx

from tests.api.http.test_portfolios import hard
from tests.api.web.conftest import Visit
from tests.api.web.test_portfolio_pages import sent, written

Visits = Callable[..., Visit]


def test_offers_are_filtered_by_keyboard_and_the_reader_stays_where_they_are(visit: Visits) -> None:
    reader = visit()
    reader.go("/catalogue?provider=aws")
    page = reader.page
    page.evaluate("window.stillThere = true")
    reader.tab_to("accelerator")
    page.keyboard.type("H100")
    page.keyboard.press("Enter")
    page.wait_for_url("**accelerator=H100**")
    page.locator("#listing td[data-label=Accelerator]").filter(has_not_text="H100").first.wait_for(state="detached")
    assert set(page.locator("#listing td[data-label=Accelerator]").all_inner_texts()) == {"H100-80GB-SXM"}
    assert (reader.focused(), page.evaluate("window.stillThere")) == ("accelerator", True)
    # What is chosen is shown at once.
    page.select_option("#kind", "spot")
    page.wait_for_url("**kind=spot**")
    page.locator("#listing td[data-label=Kind]").filter(has_not_text="spot").first.wait_for(state="detached")
    assert page.inner_text("#found") == page.inner_text("#listing-title")
    assert "spot" in (page.get_attribute("#listing a[download]", "href") or "")


def test_a_column_is_sorted_by_keyboard_and_turned_round_by_the_same_key(visit: Visits) -> None:
    reader = visit()
    reader.go("/catalogue?accelerator=H100&kind=spot")
    for expected in ("ascending", "descending"):
        reader.page.locator("th a", has_text="per GPU-h").focus()
        reader.page.keyboard.press("Enter")
        reader.page.wait_for_selector(f"th[aria-sort={expected}] >> text=per GPU-h")
        shown = reader.page.locator("#listing td[data-label='per GPU-h']").all_inner_texts()
        prices = [float(re.sub(r"[$,]", "", text)) for text in shown]
        assert prices == sorted(prices, reverse=expected == "descending")


def test_pages_and_prices_are_reached_without_scripts(visit: Visits) -> None:
    reader = visit(java_script_enabled=False)
    reader.go("/catalogue")
    page = reader.page
    page.fill("#instance_type", "p4d*")
    page.click("button.first")
    page.click("a[rel=next]")
    assert "51 to" in page.inner_text("#listing")
    page.click("#listing tbody th a >> nth=0")
    assert "p4d.24xlarge" in page.inner_text("h2")
    assert page.is_visible("svg.wide")


def test_the_table_scrolls_to_its_last_row_and_holds_few_of_them(visit: Visits) -> None:
    reader = visit()
    reader.go("/catalogue?order=-usd_per_hour")
    page = reader.page
    assert page.locator("#listing nav:visible").count() == 0
    total = int(page.get_attribute("table.lines", "data-total") or 0)
    page.evaluate(
        "window.shift = 0; new PerformanceObserver(list => list.getEntries().forEach(entry => shift += entry.value)).observe({type: 'layout-shift'})"
    )
    page.locator(".tall").focus()
    page.keyboard.press("End")
    page.wait_for_selector(f"tr[aria-rowindex='{total + 1}']")
    page.keyboard.press("Home")
    page.wait_for_selector("tr[aria-rowindex='2']")
    page.locator(f"tr[aria-rowindex='{total + 1}']").wait_for(state="detached")
    assert page.locator("tr[aria-rowindex]").count() < 200
    assert page.evaluate("shift") < 0.05
    # The head stays where it is, and what the service refuses can be asked for again.
    page.route("**/catalogue/rows*", lambda route: route.fulfill(status=404))
    page.keyboard.press("End")
    last_rows = page.locator("table.lines tbody").last
    last_rows.locator("text=These rows could not be loaded.").wait_for()
    assert page.is_visible("thead >> text=per PFLOP-h")
    page.unroute_all()
    last_rows.locator("button:text('Try again')").click()
    page.wait_for_selector(f"tr[aria-rowindex='{total + 1}']")


def test_rows_that_could_not_be_loaded_are_fetched_again_when_they_come_near(visit: Visits) -> None:
    reader = visit()
    reader.go("/catalogue?provider=azure")
    page = reader.page
    # The second page is near the first and stays there.
    page.wait_for_selector(f"tr[aria-rowindex='{int(page.get_attribute('table.lines', 'data-page') or 0) + 2}']")
    page.route("**/catalogue/rows*", lambda route: route.fulfill(status=404))
    page.locator(".tall").focus()
    page.keyboard.press("End")
    page.wait_for_selector("text=These rows could not be loaded.")
    page.keyboard.press("Home")
    page.locator("text=These rows could not be loaded.").first.wait_for(state="detached")
    page.unroute_all()
    page.keyboard.press("End")
    total = page.get_attribute("table.lines", "data-total")
    page.wait_for_selector(f"tr[aria-rowindex='{int(total or 0) + 1}']")
    assert not page.is_visible("text=These rows could not be loaded.")


def test_columns_are_chosen_in_place_by_keyboard_and_stand_in_the_address(visit: Visits) -> None:
    reader = visit()
    reader.go("/catalogue?provider=aws")
    page = reader.page
    page.evaluate("window.stillThere = true")
    page.locator("#choose-columns summary").focus()
    page.keyboard.press("Enter")
    page.locator("#column-vcpus").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("th >> text=vCPUs")
    # The list stays open where the reader is in it.
    assert (reader.focused(), page.evaluate("window.stillThere")) == ("column-vcpus", True)
    assert page.is_visible("#column-notes")
    assert "columns=usd_per_hour" in page.url
    # Filters that follow keep the columns.
    page.select_option("#kind", "spot")
    page.wait_for_url("**kind=spot**")
    assert "vcpus" in page.url
    assert page.is_visible("th >> text=vCPUs")


def test_an_error_of_a_filter_stands_at_its_field(visit: Visits) -> None:
    reader = visit()
    reader.go("/catalogue?usd_to=cheap&provider=aws")
    assert reader.page.is_visible("#usd_to")
    assert "US dollars" in reader.page.inner_text("#usd_to-error")
    assert "usd_to-error" in (reader.page.get_attribute("#usd_to", "aria-describedby") or "")


def test_each_reading_of_a_price_is_reached_by_keyboard(visit: Visits) -> None:
    reader = visit()
    reader.go("/prices?instance_type=p5.48xlarge&kind=on_demand")
    marks = reader.page.locator("svg.wide a")
    assert marks.count() == 6
    marks.first.focus()
    title = reader.page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert "per hour, observed" in title
    reader.page.keyboard.press("Enter")
    reader.page.wait_for_url("**region=**")
    assert reader.page.locator("svg.wide a").count() == 1


def test_bars_of_jobs_lead_by_keyboard_to_their_lines(visit: Visits, planned_jobs: str) -> None:
    reader = visit()
    reader.go(planned_jobs)
    bars = reader.page.locator("svg.wide a")
    assert bars.count() == 4
    for number in range(4):
        bar = reader.page.locator(f"svg.wide a[href='#job-{number}']")
        bar.focus()
        assert "due 2026-11-23 12:00 UTC" in (bar.get_attribute("aria-label") or "")
    reader.page.keyboard.press("Enter")
    assert reader.page.evaluate("document.querySelector('tr:target').id") == "job-3"
    assert reader.overflow() == 0


def test_the_time_axis_is_stretched_in_place_and_a_deadline_changed_is_planned_again(
    visit: Visits, planned_jobs: str
) -> None:
    reader = visit()
    reader.go(planned_jobs)
    page = reader.page
    page.evaluate("window.stillThere = true")
    page.locator("#zoom-4").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#zoom-4[aria-current=true]")
    assert (reader.focused(), page.evaluate("window.stillThere")) == ("zoom-4", True)
    gutter = page.locator(".board svg.gutter").nth(1)
    before = gutter.evaluate("each => each.getBoundingClientRect().x")
    page.evaluate("document.querySelector('.board').scrollLeft = 900")
    assert gutter.evaluate("each => each.getBoundingClientRect().x") == before
    page.locator("#edit summary").click()
    page.fill("input[name=deadline-0]", "soon")
    page.click("#edit button")
    page.wait_for_selector("#summary")
    assert "Job 1, deadline" in page.inner_text("#summary")
    assert "deadline: soon" in page.input_value("#document")
    page.go_back()
    page.locator("#edit summary").click()
    page.fill("input[name=deadline-0]", "26h")
    page.fill("input[name=priority-1]", "3")
    page.click("#edit button")
    page.wait_for_url(lambda url: url != reader.base + planned_jobs)
    page.wait_for_selector("#edit", state="attached")
    assert [page.input_value(f"input[name={name}]") for name in ("deadline-0", "priority-1")] == ["26h", "3"]


def test_the_decision_at_other_numbers_of_runs_is_read_from_a_slider(visit: Visits, decided: str) -> None:
    reader = visit()
    reader.go(decided)
    page = reader.page
    steps = page.locator(".sweep >> nth=0 >> ol >> li >> visible=true")
    assert steps.all_inner_texts()[0].startswith("1 x: buy 1 x RTX-4090, $")
    page.locator("#sweep-runs").focus()
    page.keyboard.press("End")
    [last] = steps.all_inner_texts()
    assert float(last.split(" x: ")[0]) > 1
    assert page.get_attribute("#sweep-runs", "aria-valuetext") == last
    # The points of the chart are the same steps.
    titles = page.locator(".sweep >> nth=0 >> svg.wide >> .point").evaluate_all(
        "all => all.map(each => each.ariaLabel)"
    )
    assert (titles[-1], len(titles)) == (last, 1 + int(page.get_attribute("#sweep-runs", "max") or 0))


def test_a_search_shows_its_progress_in_place_and_is_ended_by_a_button(visit: Visits, client: httpx.Client) -> None:
    path = sent(client, written(hard()), seconds="300").headers["location"]
    reader = visit()
    reader.go(path)
    page = reader.page
    page.evaluate("window.stillThere = true; document.querySelector('.brand').focus()")
    page.wait_for_selector("text=Cost of the jobs that run")
    assert page.evaluate("window.stillThere && document.activeElement.className") == "brand"
    page.click("text=Stop with the best plan so far")
    page.wait_for_selector("svg.wide a")
    assert "stopped early" in page.inner_text("#told")


def test_the_table_of_jobs_fits_a_window_of_1024_pixels(visit: Visits, planned_jobs: str) -> None:
    reader = visit()
    reader.page.set_viewport_size({"width": 1024, "height": 800})
    reader.go(planned_jobs)
    beyond = "table => table.parentElement.scrollWidth - table.parentElement.clientWidth"
    assert reader.page.eval_on_selector("table.timed", beyond) <= 0


def test_a_portfolio_is_mended_where_it_is_wrong(visit: Visits) -> None:
    reader = visit()
    reader.go("/portfolio?example=true")
    page = reader.page
    text = page.input_value("#document")
    page.fill("#document", text.replace("deadline: 3d", "deadline: soon"))
    page.click("text=Plan these jobs")
    page.wait_for_selector("#summary")
    assert reader.focused() == "summary"
    assert "Job 2, deadline, line 14" in page.inner_text("#summary")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert reader.focused() == "document"
    assert reader.violations() == []


def test_on_a_slow_network_the_last_of_two_quick_choices_is_what_is_shown(visit: Visits) -> None:
    reader = visit()
    reader.go("/catalogue")
    page = reader.page
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    slow = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 50_000}
    network.send("Network.emulateNetworkConditions", slow)
    page.select_option("#provider", "aws")
    page.wait_for_timeout(50)
    page.select_option("#provider", "azure")
    page.wait_for_selector(".busy", state="visible")
    page.wait_for_url("**provider=azure**")
    page.locator("#listing td[data-label=Provider]").filter(has_not_text="azure").first.wait_for(state="detached")
    assert page.input_value("#provider") == "azure"
    assert "provider=azure" in (page.get_attribute("#listing a[download]", "href") or "")
    network.detach()
