"""The public spot advisor feed."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from gpuplan.catalog.model.interruption_rates import interruptions_per_hour
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.aws.advisor import SpotAdvisor, read_advice
from gpuplan.providers.cloud_endpoints import Sources
from tests.clouds.server import CloudServer, Reply, answering, html, truncated

RANGES = [
    {"index": 0, "label": "<5%", "dots": 0, "max": 5},
    {"index": 1, "label": "5-10%", "dots": 1, "max": 11},
    {"index": 2, "label": "10-15%", "dots": 2, "max": 16},
    {"index": 3, "label": "15-20%", "dots": 3, "max": 22},
    {"index": 4, "label": ">20%", "dots": 4, "max": 100},
]
PLACE = ("us-east-1", "g4dn.xlarge")


def feed(row: Any, *, ranges: Any = RANGES, system: str = "Linux") -> dict[str, Any]:
    return {"ranges": ranges, "spot_advisor": {PLACE[0]: {system: {PLACE[1]: row}}}}


def test_r_is_the_position_of_a_band_and_no_percentage() -> None:
    advice = read_advice(feed({"s": 64, "r": 3}))
    assert advice.interruptions_per_hour == {PLACE: interruptions_per_hour("15-20%")}
    assert advice.savings_pct == {PLACE: 64}


def test_the_operating_system_is_linux_and_windows_rows_are_not_read() -> None:
    document = feed({"s": 64, "r": 3})
    document["spot_advisor"]["us-east-1"]["Windows"] = {"p3.2xlarge": {"s": 10, "r": 0}}
    assert set(read_advice(document).savings_pct) == {PLACE}


@pytest.mark.parametrize(
    "ranges",
    [
        [{"label": " < 5 % "}, {"label": "5-10%"}, {"label": "10-15%"}, {"label": "15-20%"}, {"label": ">20%"}],
        [{"max": 5}, {"max": 11}, {"max": 16}, {"max": "22"}, {"max": 100}],
        list(reversed(RANGES)),
    ],
    ids=["labels alone", "largest shares alone", "in another order"],
)
def test_a_band_is_known_by_what_its_range_says(ranges: list[dict[str, Any]]) -> None:
    advice = read_advice(feed({"s": 64, "r": 3}, ranges=ranges))
    assert advice.interruptions_per_hour == {PLACE: interruptions_per_hour("15-20%")}


@pytest.mark.parametrize("row", [{"s": 64, "r": 9}, {"s": 64}, {"s": 64, "r": "x"}, {"s": 64, "r": None}])
def test_a_row_in_no_band_has_its_saving_and_no_rate(row: dict[str, Any]) -> None:
    advice = read_advice(feed(row))
    assert advice.interruptions_per_hour == {}
    assert advice.savings_pct == {PLACE: 64}


@pytest.mark.parametrize("saving", [None, "much", -3, 101, float("inf")])
def test_a_saving_that_is_no_percentage_is_none(saving: Any) -> None:
    assert read_advice(feed({"s": saving, "r": 0})).savings_pct == {}


@pytest.mark.parametrize(
    "document",
    [[], None, "text", {}, feed({"s": 1, "r": 0}, ranges=None), feed({"s": 1, "r": 0}, system="Windows"), feed("x")],
)
def test_a_feed_of_another_shape_fails_in_one_line(document: Any) -> None:
    with pytest.raises(ProviderFailure, match=r"^spot advisor: the feed has no .*its format may have changed$"):
        read_advice(document)


def served(document: Any) -> CloudServer:
    return CloudServer(lambda _: Reply(body=json.dumps(document).encode()))


def advisor(server: CloudServer) -> SpotAdvisor:
    return SpotAdvisor(Sources(aws_spot_advisor_url=f"{server.url}/spot-advisor-data.json"))


def test_the_feed_is_read_once_however_many_threads_ask() -> None:
    server = served(feed({"s": 64, "r": 3}))
    server.latency_seconds = 0.05
    with server.running():
        shared = advisor(server)
        result: list[Any] = []
        threads = [threading.Thread(target=lambda: result.append(shared.interruption_rates())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(result) == 8
        assert shared.savings() == {PLACE: 64}
    assert len(server.requests) == 1


@pytest.mark.parametrize("change", [html, answering(403, b"<Error/>", content_type="application/xml")])
def test_a_feed_that_does_not_answer_fails_once_and_for_all(change: Any) -> None:
    server = served(feed({"s": 64, "r": 3}))
    server.break_with(change)
    with server.running():
        shared = advisor(server)
        for ask in (shared.interruption_rates, shared.savings):
            with pytest.raises(ProviderFailure, match=r"spot-advisor-data\.json"):
                ask()
    assert len(server.requests) == 1


def test_a_feed_cut_off_once_is_read_again() -> None:
    server = served(feed({"s": 64, "r": 3}))
    server.break_with(truncated, times=1)
    with server.running():
        assert advisor(server).savings() == {PLACE: 64}


def test_a_throttled_feed_is_asked_again_when_it_says() -> None:
    server = served(feed({"s": 64, "r": 3}))
    server.break_with(answering(503, b"Slow Down", content_type="text/plain", Retry_After="0"), times=2)
    with server.running():
        assert advisor(server).savings() == {PLACE: 64}
    assert len(server.requests) == 3


@pytest.mark.shared_data
def test_the_recorded_feed_gives_five_rates_and_lists_retired_types(shared_data: Path) -> None:
    path = shared_data / "wire" / "aws" / "spot-advisor-data.accelerators.json"
    advice = read_advice(json.loads(path.read_text(encoding="utf-8")))
    assert len(set(advice.interruptions_per_hour.values())) == 5
    assert advice.savings_pct["us-east-1", "g4dn.xlarge"] == 64
    assert advice.interruptions_per_hour["us-east-1", "g4dn.xlarge"] == interruptions_per_hour("15-20%")
    assert any(name.startswith("p2.") for _, name in advice.savings_pct)
