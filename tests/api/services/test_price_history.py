"""`gpuplan history`, `gpuplan diff` and their HTTP twins: the same rows, and one clear line for what cannot be shown."""

import csv
import io
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from gpuplan.api.http.http_service import create_service
from gpuplan.api.presentation.price_history import sparkline
from gpuplan.api.presentation.snapshot_diff import render_diff
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import Services, open_services
from gpuplan.api.services.price_history import DIFF_COLUMNS, HISTORY_COLUMNS, comparison
from gpuplan.catalog.snapshots.snapshot import Snapshot, snapshot_of
from gpuplan.catalog.store.price_history import Observation, PricePoint
from gpuplan.catalog.store.store import Store
from gpuplan.planner.model.wire import wire
from tests.catalog.snapshots_for_tests import NIGHT, offer
from tests.catalog.snapshots_for_tests import TYPES as SHAPES

pytestmark = pytest.mark.slow(reason="makes a store of many snapshots")

Run = Callable[..., Any]
Served = Callable[[ASGIApp], AbstractContextManager[httpx.Client]]
NAME = "p5.48xlarge"
#: With accelerators that can be planned on.
TYPES = (SHAPES[0], replace(SHAPES[1], accelerator="A10"))


def night(day: int) -> datetime:
    return NIGHT + timedelta(days=day)


def three_nights() -> list[Snapshot]:
    """A price that rises, one that stays, one that vanishes, a place that goes stale, a zone that comes."""
    a10 = {"provider": "azure", "region": "eastus", "instance_type": "NV6ads_A10_v5"}
    held = offer(3_000_000, region="eu-north-1", observed_at=night(0))
    return [
        snapshot_of(TYPES, [offer(10_000_000), offer(2_000_000, region="eu-west-1"), held, offer(500_000, **a10)]),
        snapshot_of(
            TYPES,
            [
                offer(12_000_000, observed_at=night(1)),
                offer(2_000_000, region="eu-west-1", observed_at=night(1)),
                replace(held, stale_since=night(1)),
                offer(500_000, **a10 | {"observed_at": night(1)}),
            ],
        ),
        snapshot_of(
            [replace(TYPES[0], vcpus=384), TYPES[1]],
            [
                offer(6_000_000, observed_at=night(2)),
                offer(7_000_000, zone="use1-az4", price_kind="spot", observed_at=night(2)),
                replace(held, stale_since=night(1)),
                offer(500_000, **a10 | {"observed_at": night(2)}),
            ],
        ),
    ]


@pytest.fixture(scope="module")
def store_of_nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store with three nights and the prices that come with gpuplan."""
    path = tmp_path_factory.mktemp("nights") / "history.sqlite3"
    store = Store.open(f"sqlite:///{path}")
    for three_night in three_nights():
        store.put_snapshot(three_night, source="refresh")
    store.ensure_embedded()
    store.close()
    return path


@pytest.fixture
def url(store_of_nights: Path, tmp_path: Path) -> str:
    return f"sqlite:///{shutil.copy(store_of_nights, tmp_path)}"


@pytest.fixture
def ids() -> list[str]:
    return [three_night.id for three_night in three_nights()]


@pytest.fixture
def ask(run: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line on the store with three nights."""
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", url)
    return run


@pytest.fixture
def gpuplan_of_nights(url: str) -> Iterator[Services]:
    gpuplan = open_services(Environment(database_url=url))
    yield gpuplan
    gpuplan.store.close()


@pytest.fixture
def site(gpuplan_of_nights: Services, served: Served) -> Iterator[httpx.Client]:
    with served(create_service(gpuplan_of_nights)) as client:
        yield client


def short(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["region"], row["usd_per_hour"], row["from"][:10], row["until"] and row["until"][:10], row["vanished"]


PRICES = [
    ("eu-north-1", "3.00", "2026-11-01", None, False),
    ("eu-west-1", "2.00", "2026-11-01", "2026-11-03", True),
    ("us-east-1", "10.00", "2026-11-01", "2026-11-02", False),
    ("us-east-1", "12.00", "2026-11-02", "2026-11-03", False),
    ("us-east-1", "6.00", "2026-11-03", None, False),
    ("us-east-1", "7.00", "2026-11-03", None, False),
]


def test_a_history_has_a_row_per_price_and_offer(ask: Run, ids: list[str]) -> None:
    answer = json.loads(ask("history", NAME, "--format", "json").out)
    assert (answer["snapshot_id"], answer["instance_type"], answer["total"]) == (ids[-1], NAME, 6)
    assert [short(row) for row in answer["prices"]] == PRICES
    assert [row["stale_since"] for row in answer["prices"]] == [night(1).isoformat()] + [None] * 5


def test_the_history_table_sums_up_each_offer_and_lists_few_points(ask: Run) -> None:
    output = ask("history", NAME).out
    [line] = [line for line in output.splitlines() if "us-east-1" in line and "on_demand" in line and "$12.00" in line][
        :1
    ]
    assert line.split()[3:9] == ["2026-11-01", "2026-11-03", "$6.0000", "$12.00", "$6.0000", "2"]
    assert "vanished 2026-11-03" in output
    assert "stale since 2026-11-02" in output
    assert "4 offers up to snapshot" in output
    assert output.count("now") == 3


def test_history_as_csv_has_its_fixed_columns(ask: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(ask("history", NAME, "--format", "csv").out)))
    assert tuple(rows[0]) == HISTORY_COLUMNS
    assert [row["usd_per_hour"] for row in rows] == [price[1] for price in PRICES]


@pytest.mark.parametrize(
    ("filters", "prices"),
    [
        (["--region", "eu-*"], ["3.00", "2.00"]),
        (["--region", "US-EAST-1", "--kind", "on_demand"], ["10.00", "12.00", "6.00"]),
        (["--zone", "use1-az4"], ["7.00"]),
        (["--zone", "", "--region", "us-*"], ["10.00", "12.00", "6.00"]),
        (["--provider", "AWS", "--kind", "spot"], ["7.00"]),
        (["--since", "2026-11-02", "--region", "us-*", "--kind", "on_demand"], ["10.00", "12.00", "6.00"]),
        (["--since", "2026-11-03", "--region", "us-*", "--kind", "on_demand"], ["12.00", "6.00"]),
        (["--since", "2026-11-30T00:00+01:00", "--region", "eu-*"], ["3.00"]),
    ],
)
def test_a_history_can_be_narrowed_down(ask: Run, filters: list[str], prices: list[str]) -> None:
    answer = json.loads(ask("history", NAME, *filters, "--format", "json").out)
    assert [row["usd_per_hour"] for row in answer["prices"]] == prices


def test_nothing_since_then_is_an_answer(ask: Run) -> None:
    ended = ask("history", NAME, "--region", "eu-west-1", "--since", "2026-11-10")
    assert (ended.code, ended.err) == (0, "")
    assert "0 offers" in ended.out


def test_a_name_in_other_letters_is_understood(ask: Run) -> None:
    assert json.loads(ask("history", "nv6ADS_a10_V5", "--format", "json").out)["instance_type"] == "NV6ads_A10_v5"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["p5.48xlarg"], "instance_type: no price of 'p5.48xlarg' was ever stored; nearest: p5.48xlarge"),
        (["a\x00b"], "instance_type: no price of"),
        ([NAME, "--region", "mars"], "region: 'mars' matches no price of p5.48xlarge"),
        ([NAME, "--region", "eu-*", "--kind", "spot"], "accepted, e.g.: on_demand"),
        ([NAME, "--zone", "x", "--region", "eu-*"], "'' (the price of the whole region)"),
        ([NAME, "--provider", "gcp"], "provider: 'gcp' matches no price"),
        ([NAME, "--since", "yesterday"], "since: 'yesterday' is no date; accepted: 2026-11-01"),
        ([NAME, "--since", "2026-11-02T10:00"], "since: '2026-11-02T10:00' is no date"),
    ],
)
def test_what_no_price_can_meet_is_refused_in_one_line(ask: Run, arguments: list[str], message: str) -> None:
    ended = ask("history", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert ended.err.count("\n") == 1


def test_a_diff_tells_what_the_current_snapshot_changed(ask: Run, ids: list[str]) -> None:
    answer = json.loads(ask("diff", "--format", "json").out)
    assert (answer["before"]["id"], answer["after"]["id"]) == (ids[1], ids[2])
    [counts] = answer["providers"]
    assert {name: count for name, count in counts.items() if count} == {
        "provider": "aws",
        "new": 1,
        "vanished": 1,
        "changed": 1,
    }
    assert [(row["region"], row["what"], row["change_percent"]) for row in answer["changes"]] == [
        ("us-east-1", ["changed"], -50.0),
        ("eu-west-1", ["vanished"], None),
        ("us-east-1", ["new"], None),
    ]
    [grown] = answer["instance_types"]
    assert (grown["instance_type"], grown["what"], grown["fields"]) == (NAME, "changed", {"vcpus": [192, 384]})


def test_a_diff_between_two_named_snapshots_can_look_back(ask: Run, ids: list[str]) -> None:
    answer = json.loads(ask("diff", ids[1][:8], ids[0][:8], "--format", "json").out)
    assert [(row["region"], row["what"]) for row in answer["changes"]] == [
        ("us-east-1", ["changed"]),
        ("eu-north-1", ["fresh_again"]),
    ]


def test_the_diff_table_tells_each_thing_that_happened_by_itself(ask: Run) -> None:
    output = ask("diff").out
    for part in ("-50.0 %", "$12.00", "$6.0000", "vcpus 192", "384"):
        assert part in output
    assert [line for line in output.splitlines() if line.endswith(": 1 offer")] == [
        "Cheaper: 1 offer",
        "New: 1 offer",
        "Gone: 1 offer",
    ]
    assert "--all" not in output
    assert ask("diff", "--provider", "azure").out.endswith("Nothing changed.\n")


def many_moves() -> tuple[Snapshot, Snapshot]:
    """One machine dearer in forty zones, ten others cheaper, and one that went."""
    shapes = [replace(TYPES[0], name=f"p{number}.48xlarge") for number in range(20, 31)]
    zones = {f"zone-{number:02}": 1_000_000 + number for number in range(40)}
    others = [offer(5_000_000, instance_type=shape.name) for shape in shapes[:10]]
    before = [*(offer(usd, zone=zone) for zone, usd in zones.items()), *others]
    dearer = [offer(usd * 2, zone=zone) for zone, usd in zones.items()]
    cheaper = [replace(other, usd_micros_per_hour=4_000_000) for other in others]
    gone = offer(9_000_000, instance_type=shapes[10].name, region="eu-west-3")
    types = (*TYPES, *shapes)
    return snapshot_of(types, [*before, gone]), snapshot_of(types, [*dearer, *cheaper])


def test_what_went_is_never_hidden_behind_the_same_move_in_many_places(tmp_path: Path) -> None:
    gpuplan = open_services(Environment(database_url=f"sqlite:///{tmp_path / 'moves.sqlite3'}"))
    for many_move in many_moves():
        gpuplan.store.put_snapshot(many_move, source="refresh")
    page = gpuplan.price_history.diff(*gpuplan.price_history.compared(None, None))
    lines = list(render_diff(page))
    [dearer] = [line for line in lines if line.startswith("aws") and "40 places" in line]
    assert "$1.0000 to $1.0000  $2.0000 to $2.0001  +100.0 %" in dearer
    assert "\nCheaper: 10 offers" in lines
    assert "and 2 more offers; --all lists them" in lines
    assert lines.index("\nGone: 1 offer") > lines.index("\nCheaper: 10 offers")
    assert any("p30.48xlarge" in line and "eu-west-3" in line for line in lines)
    whole = list(render_diff(gpuplan.price_history.diff(*gpuplan.price_history.compared(None, None)), everything=True))
    assert sum("zone-" in line for line in whole) == 40
    gpuplan.store.close()


def test_offers_that_are_only_stale_are_counted_and_listed_when_asked(ask: Run, ids: list[str]) -> None:
    output = ask("diff", ids[1], ids[0]).out
    assert "Fresh again" not in output
    counts = next(line.split() for line in output.splitlines() if line.startswith("aws"))
    assert counts == ["aws", "0", "1", "0", "0", "0", "0", "0", "1"]
    assert "Fresh again: 1 offer" in ask("diff", ids[1], ids[0], "--all").out


def test_a_diff_as_csv_has_its_fixed_columns(ask: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(ask("diff", "--format", "csv").out)))
    assert tuple(rows[0]) == DIFF_COLUMNS
    assert [row["what"] for row in rows] == ["changed", "vanished", "new"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["feed"], "FROM: no snapshot 'feed'; nearest: "),
        (["--provider", "ibm"], "provider: unknown provider 'ibm'; accepted: aws, azure, coreweave"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(ask: Run, arguments: list[str], message: str) -> None:
    ended = ask("diff", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err


def test_the_first_snapshot_has_nothing_before_it(run: Run) -> None:
    ended = run("diff")
    assert ended.code == 2
    assert "is the first that is stored and followed none" in ended.err


def test_prices_over_http_are_those_of_the_command_line(site: httpx.Client, ask: Run) -> None:
    wanted = {"instance_type": NAME, "region": "us-*"}
    answer = site.get("/v1/prices", params=wanted).json()
    printed = json.loads(ask("history", NAME, "--region", "us-*", "--format", "json").out)
    assert answer == printed | {"next_cursor": None}


def test_pages_of_prices_fit_together_although_a_refresh_comes_in_between(
    site: httpx.Client, gpuplan_of_nights: Services
) -> None:
    first = site.get("/v1/prices", params={"instance_type": NAME, "limit": 4})
    gpuplan_of_nights.store.put_snapshot(snapshot_of(TYPES, [offer(1, observed_at=night(3))]), source="refresh")
    rest = site.get(first.links["next"]["url"]).json()
    rows = first.json()["prices"] + rest["prices"]
    assert [short(row) for row in rows] == PRICES
    assert rest["next_cursor"] is None
    assert site.get("/v1/prices", params={"instance_type": NAME}).json()["total"] == 7


def test_a_history_is_kept_by_its_etag_until_a_snapshot_comes_or_goes(
    site: httpx.Client, gpuplan_of_nights: Services
) -> None:
    wanted = {"instance_type": NAME}
    etag = site.get("/v1/prices", params=wanted).headers["etag"]
    again = {"If-None-Match": etag}
    assert site.get("/v1/prices", params=wanted, headers=again).status_code == 304
    assert gpuplan_of_nights.retention.retain(now=night(5_000))["snapshots"] == 2
    assert site.get("/v1/prices", params=wanted, headers=again).status_code == 200


def test_prices_and_changes_come_as_csv_when_asked_for(site: httpx.Client, ids: list[str]) -> None:
    headers = {"accept": "text/csv"}
    prices = site.get("/v1/prices", params={"instance_type": NAME}, headers=headers)
    assert prices.text.splitlines()[0] == ",".join(HISTORY_COLUMNS)
    changes = site.get(f"/v1/snapshots/{ids[2]}/diff", headers=headers)
    assert changes.headers["content-type"].startswith("text/csv")
    assert changes.text.splitlines()[0] == ",".join(DIFF_COLUMNS)


def test_a_diff_over_http_is_that_of_the_command_line(
    site: httpx.Client, gpuplan_of_nights: Services, ids: list[str]
) -> None:
    answer = site.get(f"/v1/snapshots/{ids[2][:9]}/diff", params={"against": ids[0]}).json()
    page = gpuplan_of_nights.price_history.diff(*gpuplan_of_nights.price_history.compared(ids[0], ids[2]))
    assert answer == wire(comparison(page)) | {"next_cursor": None}
    assert answer["changes"][0]["change_percent"] == -40.0


def test_pages_of_a_diff_fit_together(site: httpx.Client, ids: list[str]) -> None:
    address = f"/v1/snapshots/{ids[2]}/diff"
    whole = site.get(address).json()["changes"]
    rows, following = [], f"{address}?limit=1"
    while following:
        page = site.get(following)
        rows += page.json()["changes"]
        following = page.links["next"]["url"] if "next" in page.links else ""
    assert rows == whole
    cursor = site.get(f"{address}?limit=1").json()["next_cursor"]
    assert site.get(f"/v1/snapshots/{ids[1]}/diff", params={"cursor": cursor}).status_code == 422


def test_a_diff_is_kept_by_its_etag(site: httpx.Client, ids: list[str]) -> None:
    address = f"/v1/snapshots/{ids[2]}/diff"
    etag = site.get(address).headers["etag"]
    assert site.get(address, headers={"If-None-Match": etag}).status_code == 304


@pytest.mark.parametrize(
    ("address", "status", "pointer", "within"),
    [
        ("/v1/prices", 422, "/instance_type", "query"),
        ("/v1/prices?instance_type=p9", 422, "/instance_type", "query"),
        (f"/v1/prices?instance_type={NAME}&since=x", 422, "/since", "query"),
        (f"/v1/prices?instance_type={NAME}&cursor=x", 422, "/cursor", "query"),
        (f"/v1/prices?instance_type={NAME}&regoin=x", 422, "/regoin", "query"),
        ("/v1/snapshots/feed/diff", 404, "/snapshot", "path"),
        ("/v1/snapshots/{first}/diff", 422, "/against", "query"),
        ("/v1/snapshots/{first}/diff?against=feed", 422, "/against", "query"),
    ],
)
def test_what_cannot_be_shown_is_a_problem_with_a_pointer(
    site: httpx.Client, ids: list[str], address: str, status: int, pointer: str, within: str
) -> None:
    response = site.get(address.format(first=ids[0]))
    assert response.status_code == status
    [error] = response.json()["errors"]
    assert (error["pointer"], error["in"]) == (pointer, within)


def point(usd_micros: int, *seen: tuple[int, bool]) -> PricePoint:
    """A price that was seen on these nights, each joined to the one before or not."""
    return PricePoint(
        key=offer().key,
        usd_micros_per_hour=usd_micros,
        since=night(seen[0][0]),
        until=None,
        vanished=False,
        available=True,
        source="",
        observed_at=night(seen[-1][0]),
        stale_since=None,
        modelled=(),
        partial=(),
        observations=tuple(Observation(night(day), joined) for day, joined in seen),
    )


def test_a_sparkline_has_marks_where_a_price_was_seen_and_gaps_elsewhere() -> None:
    rising = [point(1_000_000, (0, False)), point(8_000_000, (2, False)), point(4_500_000, (3, True), (5, True))]
    assert sparkline(rising, (night(0), night(5)), width=6) == "▁·█▅▅▅"
    assert sparkline([point(1, (0, False), (3, False))], (night(0), night(5)), width=6) == "▁··▁··"


def test_a_price_that_was_seen_once_is_one_mark_and_no_line() -> None:
    assert sparkline([point(5, (1, False))], (night(0), night(5)), width=6) == "·▁····"
    assert sparkline([point(5, (1, False))], (night(1), night(1)), width=6) == "▁·····"


def test_a_history_says_when_each_price_was_really_seen(ask: Run) -> None:
    rows = json.loads(ask("history", NAME, "--region", "e*", "--format", "json").out)["prices"]
    days = {row["region"]: [(one["from"][:10], one["to"][:10], one["times"]) for one in row["seen"]] for row in rows}
    assert days == {"eu-north-1": [("2026-11-01", "2026-11-01", 1)], "eu-west-1": [("2026-11-01", "2026-11-02", 2)]}
    output = ask("history", NAME, "--region", "eu-north-1").out
    assert "▁···········" in output


def test_retention_follows_the_settings_file_and_a_kept_snapshot_can_still_be_planned_on(
    url: str, ids: list[str], tmp_path: Path, ask: Run, job: dict[str, Any], job_file: Callable[..., Path]
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("retention: {every_snapshot_days: 1, weekly_snapshot_days: 1}", encoding="utf-8")
    gpuplan = open_services(Environment(database_url=url, settings=settings))
    forgotten = gpuplan.retention.retain(now=night(2))
    assert (forgotten["snapshots"], forgotten["prices"]) == (1, 1)
    gpuplan.store.close()
    planned = job_file(job)
    planned_again = ask("plan", planned, "--snapshot", ids[1], "--json")
    assert planned_again.code in {0, 4}
    answer = json.loads(planned_again.out)
    assert (answer.get("plan") or answer["infeasible"])["snapshot_id"] == ids[1]
    dropped = ask("plan", planned, "--snapshot", ids[0])
    assert dropped.code == 2
    assert dropped.err.startswith(f"gpuplan: snapshot: no snapshot '{ids[0]}'; nearest: ")
