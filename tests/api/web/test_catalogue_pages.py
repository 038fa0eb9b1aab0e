"""The pages of the catalogue, of prices and of changes as a client without a browser meets them."""

import csv
import html
import io
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from gpuplan.api.http.http_service import create_service
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import open_services
from gpuplan.api.services.offer_listing import CSV_COLUMNS
from gpuplan.api.services.price_history import HISTORY_COLUMNS
from gpuplan.catalog.snapshots.snapshot import snapshot_of
from gpuplan.catalog.store.refresh_store import RefreshRecord
from gpuplan.catalog.store.store import Store
from tests.catalog.snapshots_for_tests import NIGHT, TYPES, offer

NAME = "p5.48xlarge"


def text_of(answer: httpx.Response) -> str:
    """The words of a page."""
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.text)).split())


def report(**changes: object) -> dict[str, Any]:
    """What a refresh that was only partly fresh left behind; its words may be anything that a cloud says."""
    provider = {
        "provider": "azure",
        "outcome": "partial",
        "rows": 20,
        "new": 1,
        "vanished": 2,
        "changed": 3,
        "quarantined": 1,
        "stale": 5,
        "unconfirmed": 0,
        "stale_since": None,
        "oldest_observed_at": None,
        "newest_observed_at": None,
        "instance_types": 2,
        "regions": 3,
        "regions_read": 2,
        "regions_failed": [{"message": "timed out <b>twice</b>", "regions": ["eastus"]}],
        "failure": None,
        "refused": [],
        "calls_failed": [],
        "notes": [],
        "warnings": ["a price jumped"],
    }
    given: dict[str, Any] = {
        "id": "refresh-1",
        "status": "done",
        "outcome": "partial",
        "started_at": NIGHT.isoformat(),
        "finished_at": (NIGHT + timedelta(minutes=2)).isoformat(),
        "seconds": 120.0,
        "asked": ["azure"],
        "snapshot_id": "b" * 32,
        "previous_snapshot_id": "a" * 32,
        "providers": [provider],
        "quarantined": [{"provider": "azure", "region": "eastus", "what": "<script>x</script>", "reason": "is zero"}],
        "quarantined_left_out": 7,
        "unknown_accelerators": ["X9000"],
        "warnings": [],
        "hints": [],
        "summary": "refresh: partial; azure 20 rows",
        "watches": None,
    }
    return given | changes


@pytest.fixture(scope="module")
def nights(
    tmp_path_factory: pytest.TempPathFactory, served: Callable[[ASGIApp], AbstractContextManager[httpx.Client]]
) -> Iterator[httpx.Client]:
    """A service that has seen three nights and one refresh."""
    path: Path = tmp_path_factory.mktemp("nights") / "gpuplan.sqlite3"
    store = Store.open(f"sqlite:///{path}")
    held = offer(3_000_000, region="eu-north-1")
    first = [offer(10_000_000), offer(2_000_000, region="eu-west-1"), held]
    second = [offer(12_000_000, observed_at=NIGHT + timedelta(days=1)), replace(held, stale_since=NIGHT)]
    offers_of_one_change = [
        offer(1_000_000 + number, zone=f"zone-{number}", price_kind="spot", modelled=("spot_price",))
        for number in range(70)
    ]
    for offers in (
        first,
        second,
        [offer(6_000_000, observed_at=NIGHT + timedelta(days=2)), *second[1:], *offers_of_one_change],
    ):
        types = (TYPES[0], replace(TYPES[1], accelerator="A10"))
        store.put_snapshot(snapshot_of(types, offers), source="refresh")
    store.record_refresh(
        RefreshRecord(
            id="refresh-1",
            started_at=NIGHT,
            finished_at=NIGHT + timedelta(minutes=2),
            outcome="partial",
            snapshot_id=None,
            report=report(),
        ),
        None,
    )
    store.close()
    gpuplan = open_services(Environment(database_url=f"sqlite:///{path}"))
    with served(create_service(gpuplan)) as client:
        yield client
    gpuplan.store.close()


def rows_of(answer: httpx.Response) -> list[str]:
    return re.findall(r'<th scope="row"[^>]*>(?:<a [^>]*>)?([^<]+)', answer.text)


def links(answer: httpx.Response, rel: str) -> list[str]:
    return [html.unescape(address) for address in re.findall(rf'rel="{rel}" href="([^"]+)"', answer.text)]


def test_pages_of_a_listing_hold_every_offer_once_and_lead_back(nights: httpx.Client) -> None:
    first = nights.get("/catalogue", params={"kind": "spot", "order": "-usd_per_hour"})
    assert "70 of 72 offers" in text_of(first)
    [following] = links(first, "next")
    second = nights.get(following)
    assert (len(rows_of(first)), len(rows_of(second))) == (50, 20)
    zones = re.findall(r"<small>(zone-\d+)</small>", first.text + second.text)
    assert zones == [f"zone-{number}" for number in reversed(range(70))]
    [back] = links(second, "prev")
    assert rows_of(nights.get(back)) == rows_of(first)
    assert links(second, "next") == []


def test_rows_fetched_apart_are_those_of_the_page_with_its_columns(nights: httpx.Client) -> None:
    asked = {"kind": "spot", "order": "-usd_per_hour", "columns": "provider read"}
    page = nights.get("/catalogue", params=asked)
    assert re.findall(r"<th scope=.col.[^>]*>(?:<a [^>]*>)?([^<]+)", page.text) == ["Instance type", "Provider", "Read"]
    rows = "".join(nights.get("/catalogue/rows", params=asked | {"start": start}).text for start in ("0", "25"))
    numbers = [int(number) for number in re.findall(r'<tr aria-rowindex="(\d+)"', rows)]
    assert numbers == list(range(2, 52))
    cells = re.findall(r"<td[^>]*>([^<]*)", page.text.split("<tbody>", 1)[1])
    assert re.findall(r"<td[^>]*>([^<]*)", rows) == cells
    assert nights.get("/catalogue/rows", params=asked | {"start": "70"}).text.strip() == ""


def test_a_spark_line_has_a_dot_for_each_reading_and_a_gap_where_none_was(nights: httpx.Client) -> None:
    page = nights.get("/catalogue", params={"kind": "on_demand"})
    held, changed = re.findall(r'<svg class="spark".*?</svg>', page.text)
    assert "seen 3 times, $6.0000 to $12.00" in changed
    assert re.findall(r'class="dots" d="([^"]+)"', changed)[0].count("M") == 3
    # A price that the second night did not confirm was seen once, and no line goes on from it.
    assert "seen once, $3.0000, last on 2026-11-01" in held
    assert "H" not in re.findall(r'<path d="([^"]*)"', held)[0]


def test_the_file_has_the_rows_of_the_page_with_the_columns_of_the_command_line(nights: httpx.Client) -> None:
    asked = {"kind": "spot", "usd_to": "1.000004", "order": "-usd_per_hour"}
    page = nights.get("/catalogue", params=asked)
    [url] = [html.unescape(address) for address in re.findall(r'href="(/catalogue\.csv[^"]+)"', page.text)]
    answer = nights.get(url)
    assert answer.headers["content-disposition"] == 'attachment; filename="offers.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert tuple(rows[0]) == CSV_COLUMNS
    assert [row["zone"] for row in rows] == [f"zone-{number}" for number in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/catalogue?usd_to=cheap", 422, "US dollars"),
        ("/catalogue?provider=nix", 422, "accepted, e.g.: aws"),
        ("/catalogue?colour=red", 422, "unknown filter"),
        ("/catalogue?cursor=nonsense", 422, "is not a cursor"),
        ("/catalogue?order=price", 422, "is no order"),
        ("/catalogue?provider=aws&provider=gcp", 422, "more than once"),
        ("/catalogue?columns=usd_per_hour+colour", 422, "'colour' is no column; accepted, with spaces: usd_per_hour"),
        ("/catalogue/rows?start=-1", 422, "number of rows before the first"),
        ("/catalogue/rows?snapshot=zzz", 404, "no snapshot"),
        ("/catalogue.csv?snapshot=zzz", 404, "no snapshot"),
        ("/catalogue/matrix?by=planet", 422, "write one of provider, region"),
        ("/catalogue/matrix?usd_to=cheap", 422, "US dollars"),
        ("/accelerators/%3Cscript%3E", 404, "<script>"),
        ("/catalogue/accelerators?order=beauty", 422, "is no order"),
        ("/prices?instance_type=p5.48xlarge&since=yesterday", 422, "is no date"),
        ("/prices?instance_type=p5.48xlarge&since=2026-11-05&until=2026-11-01", 422, "is not after"),
        ("/prices?instance_type=nothing-like-it", 422, "was ever stored"),
        ("/prices?instance_type=p5.48xlarge&region=mars", 422, "matches no price"),
        ("/prices?colour=red", 422, "unknown field"),
        ("/prices.csv", 422, "is missing"),
        ("/changes?what=magic", 422, "write one of"),
        ("/changes?before=zzz", 422, "no snapshot"),
        ("/changes?after=zzz", 422, "no snapshot"),
        ("/changes?cursor=zzz", 422, "is not a cursor"),
        ("/changes?colour=red", 422, "unknown field"),
        ("/changes?provider=nix", 422, "unknown provider"),
        ("/changes/refreshes/none", 404, "none"),
        ("/changes/refreshes/%0a", 404, "accepted: the id of a"),
    ],
)
def test_what_cannot_be_shown_is_said_in_words(nights: httpx.Client, path: str, status: int, words: str) -> None:
    answer = nights.get(path)
    assert answer.status_code == status, answer.text
    assert words in html.unescape(answer.text)


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "'; DROP TABLE", "\u202e"]
)
@pytest.mark.parametrize("where", ["/catalogue?instance_type=", "/prices?instance_type=", "/changes?instance_type="])
def test_what_is_typed_comes_back_as_text(nights: httpx.Client, where: str, hostile: str) -> None:
    answer = nights.get(where + str(httpx.QueryParams({"x": hostile}))[2:])
    assert answer.status_code in {200, 422}
    assert "<script>alert" not in answer.text
    assert "<img" not in answer.text


def test_a_cursor_of_other_filters_is_refused(nights: httpx.Client) -> None:
    [following] = links(nights.get("/catalogue?kind=spot"), "next")
    answer = nights.get(following.replace("kind=spot", "kind=on_demand"))
    assert (answer.status_code, "other filters" in answer.text) == (422, True)


def test_prices_show_range_history_and_what_is_not_certain(nights: httpx.Client) -> None:
    answer = nights.get("/prices", params={"instance_type": NAME, "kind": "on_demand"})
    text = text_of(answer)
    assert f"{NAME}: 3 offers" in text
    assert "From $2.0000 to $12.00 per hour" in text
    assert "1 stale" in text
    assert "gone" in text
    assert 'aria-label="aws us-east-1, on demand: $6.0000 per hour, observed' in answer.text
    assert "50.0 % cheaper" in answer.text
    modelled = text_of(nights.get("/prices", params={"instance_type": NAME, "kind": "spot"}))
    assert "70 modelled" in modelled
    assert "Drawn are the 6 offers whose last price is the lowest" in modelled


def test_prices_of_a_span_leave_out_what_lies_before_and_after(nights: httpx.Client) -> None:
    asked = {"instance_type": NAME, "region": "us-east-1", "kind": "on_demand", "since": "2026-11-02"}
    text = text_of(nights.get("/prices", params=asked | {"until": "2026-11-02"}))
    assert "From $10.00 to $12.00" in text
    assert "$6.0000" not in text
    assert "No price in this period" in text_of(
        nights.get("/prices", params=asked | {"since": "2001-01-01", "until": "2001-02-01"})
    )


def test_a_part_of_a_name_finds_the_instance_types(nights: httpx.Client) -> None:
    answer = nights.get("/prices?instance_type=P5&kind=spot")
    assert answer.status_code == 200
    assert f'href="/prices?instance_type={NAME}&amp;kind=spot"' in answer.text


def test_the_file_of_prices_has_fixed_columns_and_the_same_span(nights: httpx.Client) -> None:
    answer = nights.get("/prices.csv", params={"instance_type": NAME, "kind": "on_demand", "until": "2026-11-01"})
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert tuple(rows[0]) == HISTORY_COLUMNS
    assert sorted(row["usd_per_hour"] for row in rows) == ["10.00", "2.00", "3.00"]


def test_what_the_last_refresh_changed_is_counted_and_filtered(nights: httpx.Client) -> None:
    text = text_of(nights.get("/changes"))
    assert "71 offers changed: 1 cheaper, 70 new." in text
    assert "-50.0 %" in text
    only = nights.get("/changes?what=cheaper")
    assert "1 to 1 of 1" in text_of(only)
    [following] = links(nights.get("/changes?what=new"), "next")
    assert "51 to 70 of 70" in text_of(nights.get(following))


def test_what_each_refresh_changed_is_drawn_with_a_link_to_it(nights: httpx.Client) -> None:
    chart = nights.get("/changes/chart").text
    titles = re.findall(r'<a href="/changes\?before=\w+&amp;after=\w+" aria-label="[^:]+:\d\d UTC: ([^"]+)"', chart)
    # In two drawings: the embedded prices went with the first night.
    assert titles[-2:] == titles[len(titles) // 2 - 2 : len(titles) // 2] == ["1 dearer, 1 gone", "1 cheaper, 70 new"]
    assert "Counting the changes" in text_of(nights.get("/changes"))


def test_two_other_snapshots_are_compared(nights: httpx.Client) -> None:
    ids = re.findall(r'<option value="([0-9a-f]{32})">[^<]+, refresh<', nights.get("/changes").text)
    newest, middle, oldest = ids[:3]
    text = text_of(nights.get("/changes", params={"before": oldest, "after": middle}))
    assert re.search(r"\d offers? changed: 1 dearer", text)
    assert "+20.0 %" in text
    assert "became stale" in text
    assert "no price changed, and no offer came or went" in text_of(
        nights.get("/changes", params={"before": newest, "after": newest})
    )


def test_the_age_of_prices_and_refreshes_are_told(nights: httpx.Client) -> None:
    answer = nights.get("/changes")
    text = text_of(answer)
    assert "1 not confirmed by the last refresh" in text
    assert text_of(nights.get("/changes/ages")).startswith("How fresh prices are")
    assert "refresh: partial; azure 20 rows" in text
    assert 'href="/changes/refreshes/refresh-1"' in answer.text


def test_a_refresh_is_told_by_provider_with_rows_that_were_set_aside(nights: httpx.Client) -> None:
    answer = nights.get("/changes/refreshes/refresh-1")
    text = text_of(answer)
    for words in ("2 of 3", "timed out <b>twice</b>", "(eastus)", "a price jumped", "X9000", "is zero", "7 more"):
        assert words in text, words
    assert "<script>x" not in answer.text
    assert f"before={'a' * 32}" in answer.text


def test_the_table_of_accelerators_has_its_least_prices(client: httpx.Client) -> None:
    answer = client.get("/catalogue/accelerators?order=pflop_hour")
    assert "H100-80GB-SXM" in rows_of(answer)
    assert 'aria-sort="ascending"' in answer.text
    unpriced = client.get("/catalogue/accelerators?order=-pflop_hour")
    assert rows_of(unpriced)[-1] == rows_of(answer)[-1]


def test_a_store_that_has_seen_no_refresh_says_so(client: httpx.Client) -> None:
    text = text_of(client.get("/changes"))
    assert "Only the prices that came with this release are stored" in text or "differ" in text


def test_the_price_of_a_slice_is_told_to_be_that_of_one_of_its_hosts(client: httpx.Client) -> None:
    slice_of_four = text_of(client.get("/catalogue", params={"instance_type": "tpu-v6e-16"}))
    assert "per host, rented as 4 together" in slice_of_four
    alone = text_of(client.get("/catalogue", params={"instance_type": "tpu-v6e-8"}))
    assert "tpu-v6e-8" in alone
    assert "of them together" not in alone


def test_a_cell_of_the_matrix_is_the_least_price_of_its_row_and_leads_to_its_offers(client: httpx.Client) -> None:
    answer = client.get("/catalogue/matrix?by=provider&accelerator=L4&kind=spot")
    cells = re.findall(r'<th scope="row">(\w+) *</th>.*?<a href="([^"]+)"[^>]*>\$([\d.]+)</a>', answer.text)
    assert {"aws", "gcp"} <= {provider for provider, _, _ in cells}
    for provider, url, usd in cells:
        # The page of its offers, by price per accelerator, begins with it.
        offers = client.get(html.unescape(url) + "&order=usd_per_accelerator")
        assert re.findall(r'data-label="per GPU-h">\$([\d.]+)<', offers.text)[0] == usd, provider
    assert answer.text.count('class="shade-1"') == 1
    by_region = text_of(client.get("/catalogue/matrix?by=region&accelerator=L4&kind=spot"))
    assert "aws us-east-1" in by_region


def test_the_page_of_an_accelerator_says_who_sells_it_and_estimates_usual_jobs(client: httpx.Client) -> None:
    answer = client.get("/accelerators/H100-80GB-SXM")
    assert {"aws", "gcp", "azure", "Llama 2 7B, 1 B tokens"} <= set(rows_of(answer))
    words = {"job": {"name": "x", "workload": {"kind": "preset", "model": "llama-2-70b", "tokens": "1B"}}}
    on = {"accelerator": "H100-80GB-SXM", "gpus": 16}
    hours = client.post("/v1/estimates", json=words | {"on": on}).json()["hours_with_goodput"]
    assert f"{hours:.1f} h" in answer.text
    assert "16" in text_of(answer).split("Llama 2 70B, 1 B tokens")[1].split()[0]
    # What cannot train says why, and a name that people use leads to the page.
    assert "does not train" in text_of(client.get("/accelerators/Inferentia1"))
    alias = client.get("/accelerators/h100")
    assert (alias.status_code, alias.headers["location"]) == (307, "/accelerators/H100-80GB-SXM")
