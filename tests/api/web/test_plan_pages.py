"""The pages of a plan over HTTP: headers, refusals, and nothing of a stranger's text that becomes markup."""

import html
import math
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import httpx
import pytest
from starlette.types import ASGIApp

from gpuplan.api.exports.export_formats import PER_PHASE
from gpuplan.api.http.http_service import create_service
from gpuplan.api.schemas.answers import read_plan
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import open_services
from gpuplan.api.web.form_words import in_form_words
from gpuplan.api.web.page_rendering import CONTENT_SECURITY_POLICY
from gpuplan.api.web.plan_exports import handovers, wishable
from gpuplan.api.web.plan_view import planned_view
from gpuplan.catalog.snapshots.snapshot import snapshot_of
from gpuplan.planner.model.plan import PlannedAnswer
from tests.partial_answers import answer_of

Served = Callable[[ASGIApp], AbstractContextManager[httpx.Client]]
FORM = {"model": "resnet-50", "samples": "115M", "deadline": "36h"}


@pytest.mark.parametrize("path", ["/", "/?example=resnet-50", "/plans/absent", "/?example=nonsense", "/?a=1"])
def test_every_page_has_strict_headers_and_nothing_inline(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?! src=\"/static/)|javascript:", answer.text)


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/plans/absent", 404, "plan"),
        ("/plans/%00", 404, "control characters"),
        ("/?plan=absent", 404, "plan"),
        ("/?example=nonsense", 422, "llama-3-8b"),
        ("/?colour=red", 422, "colour"),
        ("/?example=resnet-50&example=gpt3-175b", 422, "more than once"),
    ],
)
def test_what_is_not_there_or_not_understood_is_a_page(
    client: httpx.Client, path: str, status: int, message: str
) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert message in answer.text
    assert 'id="main"' in answer.text


def test_a_plan_is_told_of_newer_prices_only_where_some_were_read(own_store: str, served: Served) -> None:
    gpuplan = open_services(Environment(database_url=own_store))
    held = gpuplan.store.snapshot(gpuplan.store.current_snapshot_id())
    later = held.observed_at + timedelta(days=1)
    unread = snapshot_of(held.instance_types, [replace(offer, stale_since=later) for offer in held.offers])
    read = snapshot_of(held.instance_types, [replace(offer, observed_at=later) for offer in held.offers])
    with served(create_service(gpuplan)) as client:
        page = client.post("/plans", data=FORM).headers["location"]
        assert "newer prices" not in client.get(page).text
        gpuplan.store.put_snapshot(unread, source="refresh")
        assert "No newer prices: refreshes since then could not confirm" in client.get(page).text
        assert "The catalogue has newer prices" not in client.get(page).text
        gpuplan.store.put_snapshot(read, source="refresh")
        assert "The catalogue has newer prices" in client.get(page).text


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_who_opens_an_address_that_is_no_page_gets_one_and_programs_a_problem(
    client: httpx.Client, method: str
) -> None:
    browsers = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    path, status = ("/plan/abc", 404) if method == "GET" else ("/catalogue", 405)
    page = client.request(method, path, headers=browsers)
    assert page.status_code == status
    assert 'id="main"' in page.text
    assert page.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    for asked, headers in ((path, {}), (f"/v1{path}x", browsers)):
        answer = client.request(method, asked, headers=headers)
        assert answer.headers["content-type"] == "application/problem+json"


def test_recent_plans_are_listed_and_compared(client: httpx.Client, planned: str, unplanned: str) -> None:
    # The address to which a form is sent is a page too.
    page = client.get("/plans").text
    for path in (planned, unplanned):
        assert f'href="{path}"' in page
    # Neither has a name of its own.
    assert ">llama-3-8b, 300B tokens</a>" in page
    assert ">resnet-50, 115M samples</a>" in page
    first, second = planned.removeprefix("/plans/"), unplanned.removeprefix("/plans/")
    table = client.get(f"/compare?plan={first}&plan={second}&plan={first}").text
    rows = {
        re.sub(r"\s*<.*", "", row.partition('class="named">')[2], flags=re.DOTALL): re.findall(r"<td>(.*?)</td>", row)
        for row in table.split("<tr")[2:]
    }
    plan = client.get(f"/v1{planned}").json()["plan"]
    assert rows["Model"] == ["llama-3-8b", "resnet-50"]
    assert rows["Machines"][1] == "no plan"
    assert plan["phases"][0]["instance_type"] in rows["Machines"][0]
    assert rows["Expected cost"] == [f"${float(plan['cost_usd']['expected']):,.2f}", "-"]
    assert rows["Confidence"][0] == rows["Confidence"][1]
    assert table.count("differs</span>") == sum(len(set(values)) > 1 for values in rows.values())


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 422),
        ("?plan=a", 422),
        ("?plan=a&plan=a", 422),
        ("?plan=plan-00000000000000000000&plan=plan-00000000000000000001", 404),
        ("?plan=a&plan=b", 404),
    ],
)
def test_plans_that_cannot_be_compared_are_refused(client: httpx.Client, query: str, status: int) -> None:
    answer = client.get(f"/compare{query}")
    assert answer.status_code == status
    # Who marked too few or too many is on the list again, what was marked still is.
    assert ("mark 2 to 4 to compare them" in answer.text) == (status == 422)


def test_what_was_marked_for_a_comparison_stays_marked(client: httpx.Client, planned: str) -> None:
    page = client.get(f"/compare?plan={planned.removeprefix('/plans/')}").text
    assert "1 plan is marked" in page
    assert page.count(" checked") == 1


def test_what_stands_in_the_way_is_called_as_the_form_calls_it(client: httpx.Client, unplanned: str) -> None:
    text = client.get(unplanned).text
    conflicts = client.get(f"/v1{unplanned}").json()["infeasible"]["conflicts"]
    assert conflicts[0] == ["budget_usd"]
    assert "Budget in US dollars: no configuration within 128 nodes meets it" in text
    assert "<strong>Budget in US dollars</strong>: from $1.00" in text


def test_a_plan_says_until_when_it_has_to_be_done(client: httpx.Client, planned: str) -> None:
    text = client.get(planned).text
    assert "by 2026-12-22 12:00 UTC" in text.partition("</dl>")[0]
    assert "dashed: the deadline, 30 d" in text


def test_points_lie_where_the_figures_of_the_plan_are(client: httpx.Client, planned: str) -> None:
    plan = client.get(f"/v1{planned}").json()["plan"]
    drawn = re.search(r'<svg class="wide".*?</svg>', client.get(planned).text, re.DOTALL)
    assert drawn is not None
    places = []
    for link in ET.fromstring(drawn[0]).findall("a"):
        index = int((link.get("href") or "").partition("point=")[2])
        mark = link.find("circle[@class='target']")
        assert mark is not None
        point = plan["frontier"][index]
        assert (link.get("aria-label") or "").startswith(f"${float(point['cost_usd']):,.2f} in ")
        at = float(mark.get("cx", "")), float(mark.get("cy", ""))
        places.append((math.log(point["hours_confident"]), float(point["cost_usd"]), *at))
    assert len(places) > 10
    costs = [cost for _, cost, _, _ in places] + [float(plan["cost_usd"]["expected"])]
    # Times go by the logarithm, costs too where they are far apart: between two points the others lie in proportion, to
    # the tenth of a pixel.
    if max(costs) >= 6 * min(costs):
        places = [(hours, math.log(cost), x, y) for hours, cost, x, y in places]
    first, last = places[0], places[-1]
    for hours, cost, x, y in places:
        across = (hours - first[0]) / (last[0] - first[0])
        up = (cost - first[1]) / (last[1] - first[1])
        assert x == pytest.approx(first[2] + across * (last[2] - first[2]), abs=0.15)
        assert y == pytest.approx(first[3] + up * (last[3] - first[3]), abs=0.15)


@pytest.mark.parametrize(
    ("suffix", "status", "message"),
    [
        ("?sort=colour", 422, "accepted: label, -label"),
        ("?watching=absent", 404, "watch"),
        ("/if", 422, "one change"),
        ("/if?point=0&any_speed=true", 422, "one change"),
        ("/if?point=999", 422, "accepted: 0 to"),
        ("/if?point=-1", 422, "accepted: 0 to"),
        ("/if?way_out=0", 422, "no such list"),
        ("/if?deadline_hours=nan", 422, "deadline_hours"),
        ("/if?deadline_hours=1e9", 422, "deadline_hours"),
        ("/if?price=0", 422, "price"),
        ("/live", 422, "deadline_hours"),
        ("/live?budget_usd=-1", 422, "budget_usd"),
        ("/live?budget_usd=5&deadline_hours=5", 422, "exactly one change"),
        ("/live?deadline_hours=0", 422, "deadline_hours"),
        ("/why?name=H1000", 422, "H1000"),
        ("/why?name=%1b%5b31m", 422, "is not accepted"),
        ("/estimate?phase=9", 422, "accepted: 1 to"),
    ],
)
def test_what_a_plan_cannot_be_asked_is_said(
    client: httpx.Client, planned: str, suffix: str, status: int, message: str
) -> None:
    answer = client.get(planned + suffix)
    assert answer.status_code == status, answer.text
    assert message in answer.text
    assert "\x1b" not in answer.text


def test_a_change_of_a_plan_leads_to_the_plan_of_the_changed_job(client: httpx.Client, planned: str) -> None:
    before = client.get(f"/v1{planned}").json()["plan"]
    assert before["other_framework"] is not None
    for suffix in ("any_speed=true", "framework=true", "point=3", "alternative=1", "deadline_hours=200.5"):
        answer = client.get(f"{planned}/if?{suffix}")
        assert answer.status_code == 303, answer.text
        after = client.get(f"/v1{answer.headers['location']}").json()["plan"]
        assert after["snapshot_id"] == before["snapshot_id"]
        assert after["start"] == before["start"]
        assert after["id"] != before["id"]
    # The same question has the same address.
    assert client.get(f"{planned}/if?frontier=true").headers["location"] == planned


def test_a_plan_says_what_to_rent_what_it_costs_and_why(client: httpx.Client, planned: str) -> None:
    plan = client.get(f"/v1{planned}").json()["plan"]
    text = client.get(planned).text
    for phase in plan["phases"]:
        assert phase["instance_type"] in text
    assert f"${float(plan['cost_usd']['expected']):,.2f}" in text
    for part in ("compute", "egress", "total expected"):
        assert f'<th scope="row" class="named">{part}</th>' in text
    for phrase in ("Why nothing is cheaper", "Alternatives", "Assumptions", "Prices observed", *plan["warnings"]):
        assert phrase in text
    for reason in plan["certificate"]["rejected"]:
        assert in_form_words(reason) in text


def test_the_next_choices_are_numbered_and_what_is_said_of_them_is_not(client: httpx.Client, planned: str) -> None:
    page = client.get(planned).text
    ladder = client.get(f"/v1{planned}").json()["plan"]["capacity_ladder"]
    after = page.partition('<section class="after">')[2].partition("</section>")[0]
    assert after.count("<li>") == min(len(ladder["next_choices"]), 3) > 1
    assert all("USD" in item or "$" in item for item in re.findall("<li>(.*?)</li>", after))


def test_carbon_is_drawn_on_demand_and_what_has_none_is_named(client: httpx.Client, planned: str) -> None:
    assert f'href="{planned}/carbon"' in client.get(planned).text
    text = client.get(f"{planned}/carbon").text
    kg = re.findall(r'aria-label="\$[^"]+, ([0-9.,]+) kg CO2e"', text)
    assert len(kg) > 2
    sizes = {float(size) for size in re.findall(r'class="mark" r="([0-9.]+)"', text)}
    assert len(sizes) > 1 or "scale(" in text
    assert "carbon unknown: nobody publishes the grid of" in text


def test_a_job_without_a_plan_has_no_carbon_chart(client: httpx.Client, unplanned: str) -> None:
    answer = client.get(f"{unplanned}/carbon")
    assert answer.status_code == 404
    assert "is not a plan, so it has no chart of its carbon" in answer.text


def test_a_plan_with_a_gap_is_not_headed_as_the_cheapest(client: httpx.Client, planned: str) -> None:
    answer, page = client.get(f"/v1{planned}").json(), client.get(planned).text
    assert (
        f">{planned_view(answer_of(PlannedAnswer, answer), sort=None, now=datetime.now(UTC), prices_since='none').best} for "
        in page
    )
    answer["plan"]["capacity_ladder"].pop("cheapest_if_obtained", None)
    answer["plan"]["certificate"] |= {"gap": 0.122}
    shown = planned_view(answer_of(PlannedAnswer, answer), sort=None, now=datetime.now(UTC), prices_since="none")
    assert shown.best == "Within 13.9 % of the least possible cost"
    assert [section.title for section in shown.placed["proof"]] == ["Why nothing is cheaper by more than 12.2 %"]


def test_alternatives_are_sorted_on_the_server(client: httpx.Client, planned: str) -> None:
    def costs(sort: str) -> list[float]:
        table = (
            client.get(f"{planned}?sort={sort}")
            .text.split('aria-label="Table of alternatives"')[1]
            .split("</table>")[0]
        )
        return [
            float(row.split('data-label="Cost">$')[1].split("<")[0].replace(",", "")) for row in table.split("<tr>")[2:]
        ]

    assert costs("cost") == sorted(costs("cost"))
    assert costs("-cost") == sorted(costs("cost"), reverse=True)
    assert len(costs("cost")) > 2


def test_every_download_that_a_plan_offers_is_there_and_others_say_why_not(client: httpx.Client, planned: str) -> None:
    text = client.get(planned).text
    links = [link.replace("&amp;", "&") for link in re.findall(r'href="(/v1/plans/[^"]+/export/[^"]+)"', text)]
    phases = len(client.get(f"/v1{planned}").json()["plan"]["phases"])
    assert len(links) >= phases + 2
    assert {client.get(link).status_code for link in links} == {200}
    for name in PER_PHASE:
        assert f"export/{name}" in text or f"<li>{name}: " in text or f"{name} needs a container image" in text


def test_a_download_may_have_a_command_and_an_image(client: httpx.Client) -> None:
    plan = client.post("/plans", data=FORM | {"providers": "aws"}).headers["location"]
    asked = {"to": "skypilot:1", "command": "python my.py --lr 1e-3", "image": "a/b:1"}
    answer = client.get(f"{plan}/export", params=asked, follow_redirects=True)
    assert answer.status_code == 200
    assert "my.py --lr 1e-3" in answer.text
    wrong = client.get(f"{plan}/export", params=asked | {"image": "$(rm -rf /)"})
    assert wrong.status_code == 422
    assert 'id="error-export-image"' in wrong.text
    assert 'value="python my.py --lr 1e-3"' in wrong.text
    for to in ("skypilot", "skypilot:0", "skypilot:x", "../etc:1", "nonsense:1"):
        assert client.get(f"{plan}/export", params={"to": to}).status_code == 422


def test_a_tpu_slice_is_handed_to_kubernetes_with_the_readers_image(client: httpx.Client) -> None:
    form = {"model": "llama-3-8b", "tokens": "1B", "deadline": "10d", "accelerators": "TPU-v6e"}
    plan = client.post("/plans", data=form).headers["location"]
    text = client.get(plan).text
    assert '<option value="kubernetes:1">kubernetes (needs a container image)</option>' in text
    assert 'id="export-reservation"' not in text
    assert f"/v1{plan}/export/kubernetes" not in text
    without = client.get(f"{plan}/export", params={"to": "kubernetes:1"})
    assert without.status_code == 422
    assert 'id="error-export-image"' in without.text
    for to in ("kubernetes", "jobset"):
        answer = client.get(f"{plan}/export", params={"to": f"{to}:1", "image": "a/b:1"}, follow_redirects=True)
        assert answer.status_code == 200
        assert "a/b:1" in answer.text


def test_what_was_booked_is_asked_for_where_machines_are(client: httpx.Client) -> None:
    plan = client.post("/plans", data=FORM | {"providers": "aws", "accelerators": "H100"}).headers["location"]
    answer = client.get(f"/v1{plan}").json()
    nothing = {"reservation": ""}
    assert [name for name, _, _ in wishable(handovers(read_plan(answer)), nothing)] == [
        "command",
        "image",
        "checkpoints",
        "run_limit",
    ]
    answer["plan"]["phases"][0]["price_kind"] = "capacity_block"
    offered = handovers(read_plan(answer))
    assert "a reservation" in dict(offered[0].needing_inputs)["kubernetes"]
    assert [name for name, _, _ in wishable(offered, nothing)][-1] == "reservation"
    # What was typed is shown with what is wrong about it, also where it has no place.
    wrong = client.get(f"{plan}/export", params={"to": "kubernetes:1", "reservation": "cr-1"})
    assert wrong.status_code == 422
    assert 'id="error-export-reservation"' in wrong.text


def test_names_of_a_stranger_never_become_markup(client: httpx.Client) -> None:
    name = "<script>alert(1)</script>\"'&{{7*7}}"
    answer = client.post("/plans", data=FORM | {"name": name})
    text = client.get(answer.headers["location"]).text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "{{7*7}}" in text
    wrong = client.post("/plans", data=FORM | {"name": name, "deadline": name})
    assert wrong.status_code == 422
    assert "<script>alert" not in wrong.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://elsewhere.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "same-origin"}, 303),
        ({"content-type": "application/json"}, 415),
        ({"content-type": "multipart/form-data"}, 400),
    ],
)
def test_a_form_is_taken_from_pages_of_this_service_alone(
    client: httpx.Client, headers: dict[str, str], status: int
) -> None:
    assert client.post("/plans", data=FORM, headers=headers).status_code == status


def test_more_than_a_job_can_be_is_refused_unread(client: httpx.Client) -> None:
    big = "x" * 700_000
    for content, most in (
        ({"data": FORM | {"document": "x" * 1_100_000}}, "1024KB"),
        ({"data": FORM | {f"f{number}": big for number in range(5)}}, "3072 KiB"),
        ({"data": {"document": ""}, "files": {"file": ("job.yaml", b"x" * 1_100_000)}}, "1024 KiB"),
        ({"data": FORM | {f"f{number}": "1" for number in range(300)}}, "200"),
    ):
        answer = client.post("/plans", **content)
        assert answer.status_code in {400, 413}
        assert most in answer.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "paste a configuration"),
        ("llama-3-8b tokens=many", "tokens"),
        ("20 h on 8 x A100", "like=llama-3-8b"),
        ("a: &a [x]\nb: *a", "anchor"),
        ("[1, 2]", "mapping"),
        ("workload: {kind: preset, model: resnet-50, samples: 1M}\ndeadlin: 3d", "deadlin"),
        ("workload: !!python/object/apply:os.system [ls]", "tag"),
    ],
)
def test_a_pasted_file_that_is_no_job_comes_back_with_what_is_wrong(
    client: httpx.Client, text: str, message: str
) -> None:
    answer = client.post("/plans", data={"document": text})
    assert answer.status_code == 422
    assert message in answer.text
    assert 'aria-invalid="true"' in answer.text


@pytest.mark.parametrize(
    ("text", "chips"),
    [
        (
            "resnet-50 samples=1M by=2d nvidia",
            ("Model resnet-50", "Samples 1M", "Deadline 2d", "Vendors NVIDIA", "Most nodes 32"),
        ),
        (
            "resnet-50 samples=1M by=2d max=$1500 dataset_gb=150 location=aws:us-east-1",
            ("Budget $1,500.00", "Data size 150 GB"),
        ),
        ("20 h on 8 x A100 like=llama-2-7b by=2d", ("Model llama-2-7b", "Tokens 2.", "Deadline 2d")),
    ],
)
def test_words_are_planned_and_the_page_says_what_was_understood(
    client: httpx.Client, text: str, chips: tuple[str, ...]
) -> None:
    page = client.post("/plans", data={"document": text}, follow_redirects=True).text
    shown = " ".join(
        html.unescape(re.sub(r"<[^>]+>", " ", page.partition('class="stated"')[2].partition("</ul>")[0])).split()
    )
    for chip in chips:
        assert chip in shown
    assert "Method full (assumed)" in shown


def test_words_that_lack_something_fill_the_form_in_with_what_they_say(client: httpx.Client) -> None:
    answer = client.post("/plans", data={"document": "llama-3-8b lora by=2d"})
    assert answer.status_code == 422
    for part in (
        'name="model" value="llama-3-8b"',
        '<option value="lora" selected>',
        'id="error-tokens"',
        "lora by=2d</textarea>",
    ):
        assert part in answer.text


def test_a_pasted_file_keeps_its_first_indent(client: httpx.Client) -> None:
    text = "  name: indented\n  workload: {kind: preset, model: resnet-50, samples: 115M}\n  deadline: 36h\n"
    assert client.post("/plans", data={"document": text}).status_code == 303
    wrong = client.post("/plans", data={"document": "\n" + text.replace("36h", "whenever")})
    assert "Line 4: deadline" in wrong.text
    assert ">\n\n  name: indented\n" in wrong.text


def test_an_uploaded_file_that_is_no_job_comes_back_to_be_mended(client: httpx.Client) -> None:
    file = {"file": ("my job.json", b'{"deadlin": "3d"}')}
    answer = client.post("/plans", data={"document": ""}, files=file)
    assert answer.status_code == 422
    assert "{&#34;deadlin&#34;: &#34;3d&#34;}</textarea>" in answer.text


def test_an_edited_plan_fills_the_form_in(client: httpx.Client, planned: str) -> None:
    text = client.get(f"/?plan={planned.rpartition('/')[2]}").text
    for value in ("llama-3-8b", "300B", "30d", "2026-11-22T12:00:00Z", "aws:us-east-1"):
        assert f'value="{value}"' in text


@pytest.fixture
def with_channel(database_url: str, tmp_path: Path, served: Served) -> Iterator[httpx.Client]:
    settings = tmp_path / "settings.yaml"
    settings.write_text("channels:\n  - {name: team, kind: slack, url_from: GPUPLAN_TEST_SLACK}\n", encoding="utf-8")
    with served(
        create_service(open_services(Environment(database_url=database_url, settings=settings)))
    ) as served_client:
        yield served_client


def test_a_plan_is_watched_by_a_channel_of_the_settings(with_channel: httpx.Client) -> None:
    # From now on, whenever that is: what is watched runs by the clock.
    planned = with_channel.post("/plans", data={"model": "resnet-50", "samples": "115M", "deadline": "7d"}).headers[
        "location"
    ]

    def post(data: dict[str, Any]) -> httpx.Response:
        return with_channel.post(f"{planned}/watch", data=data)

    assert 'id="error-channels"' in post({"cheaper_by_percent": "10"}).text
    wrong = post({"channels": "team", "cheaper_by_percent": "much"})
    assert wrong.status_code == 422
    assert "write a percentage" in wrong.text
    accepted = post({"channels": "team", "cheaper_by_percent": "5"})
    assert accepted.status_code == 303
    assert "5 %" in with_channel.get(accepted.headers["location"]).text
    watch = accepted.headers["location"].split("watching=")[1].split("#")[0]
    assert with_channel.delete(f"/v1/watches/{watch}").status_code == 200
