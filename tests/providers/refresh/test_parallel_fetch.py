"""Every region is asked, no cloud waits for another, and nothing that hangs or breaks loses the rest."""

import logging
import threading
from functools import partial

import pytest

from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.providers.contract import Rows
from gpuplan.providers.refresh.parallel_fetch import gather
from tests.providers.fake_clouds import FakeCloud, price, rows


def test_every_region_of_every_cloud_is_read() -> None:
    clouds = {name: FakeCloud(name=name, answers={f"r{i}": rows(price(f"r{i}")) for i in range(9)}) for name in "ab"}
    result = gather({name: partial(clouds.__getitem__, name) for name in clouds}, limit_seconds=30)
    assert {name: sorted(item.rows) for name, item in result.items()} == {
        key: [f"r{i}" for i in range(9)] for key in "ab"
    }


def test_no_more_regions_are_asked_at_once_than_the_provider_allows() -> None:
    at_once, most, lock = 0, 0, threading.Lock()
    pause = threading.Event()

    def answer() -> Rows:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        pause.wait(0.01)
        with lock:
            at_once -= 1
        return Rows()

    cloud = FakeCloud(parallel=3, answers={f"r{i}": answer for i in range(20)})
    assert len(gather({"aws": lambda: cloud}, limit_seconds=30)["aws"].rows) == 20
    assert most == 3


def test_a_region_that_fails_leaves_the_others_whole() -> None:
    cloud = FakeCloud(
        answers={
            "up": rows(price("up")),
            "down": ProviderFailure("DescribeInstanceTypes: HTTP 503"),
            "gone": UnusableInput.at("region", message="does not exist"),
        }
    )
    result = gather({"aws": lambda: cloud}, limit_seconds=30)["aws"]
    assert list(result.rows) == ["up"]
    assert result.failed == {"down": "DescribeInstanceTypes: HTTP 503", "gone": "region: does not exist"}


def test_a_bug_in_one_region_is_said_and_its_place_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    cloud = FakeCloud(answers={"up": rows(price("up")), "odd": KeyError("unitPrice")})
    with caplog.at_level(logging.DEBUG, "gpuplan.refresh"):
        result = gather({"aws": lambda: cloud}, limit_seconds=30)["aws"]
    assert (list(result.rows), result.failed) == (["up"], {"odd": "unexpected KeyError: 'unitPrice' (please report)"})
    assert "fake_clouds.py" in caplog.text


def test_a_secret_in_an_error_is_shown_nowhere(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2hunter2")
    cloud = FakeCloud(answers={"a": RuntimeError("bad hunter2hunter2"), "b": ProviderFailure("bad hunter2hunter2")})
    with caplog.at_level(logging.DEBUG):
        result = gather({"aws": lambda: cloud}, limit_seconds=30)["aws"]
    assert "hunter2" not in f"{result.failed} {caplog.text}"
    assert result.failed["b"] == "bad ***"


@pytest.mark.parametrize("error", [ProviderFailure("no credentials"), ValueError("broken")])
def test_a_cloud_that_cannot_be_asked_at_all_does_not_stop_the_others(error: Exception) -> None:
    broken = FakeCloud(name="gcp", listing=error)
    fine = FakeCloud(answers={"r1": rows(price())})
    result = gather({"gcp": lambda: broken, "aws": lambda: fine}, limit_seconds=30)
    assert str(error) in result["gcp"].failure
    assert result["gcp"].listed is None
    assert list(result["aws"].rows) == ["r1"]


def test_a_cloud_without_regions_has_failed() -> None:
    assert gather({"aws": FakeCloud}, limit_seconds=30)["aws"].failure == "the provider lists no regions"


class SilentCloud(FakeCloud):
    """Never says which regions it has."""

    def __init__(self, hanging: threading.Event) -> None:
        super().__init__(name="gcp")
        self.hanging = hanging

    def regions(self) -> list[str]:
        self.hanging.wait(60)
        return []


def test_what_hangs_has_failed_when_the_time_is_up_and_the_rest_is_there() -> None:
    hanging = threading.Event()

    def hang() -> Rows:
        hanging.wait(60)
        return Rows()

    cloud = FakeCloud(parallel=2, answers={"slow": hang, "r1": rows(price()), "r2": rows(price("r2"))})
    silent = SilentCloud(hanging)

    try:
        result = gather({"aws": lambda: cloud, "gcp": lambda: silent}, limit_seconds=2.0)
    finally:
        hanging.set()
    assert sorted(result["aws"].rows) == ["r1", "r2"]
    assert result["aws"].failed == {"slow": "not read within 2 seconds"}
    assert result["gcp"].failure == "the regions were not read within 2 seconds"


def test_progress_is_told_of_every_region() -> None:
    reported: list[tuple[str, int, int | None]] = []
    cloud = FakeCloud(answers={"r1": rows(price()), "r2": ProviderFailure("down")})
    gather({"aws": lambda: cloud}, limit_seconds=30, progress=lambda *step: reported.append(step))
    assert reported == [("aws", 0, 2), ("aws", 1, 2), ("aws", 2, 2)]
