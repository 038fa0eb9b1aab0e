"""The chart of a plan: a picture at a signed address that ends, or one uploaded where the page has no public address."""

import struct
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from gpuplan.api.http.http_service import create_service
from gpuplan.api.slack.charts import LIFETIME, chart_url
from gpuplan.api.slack.workspaces import allow, remove
from tests.api.slack.conftest import PAGE, PLAN, Acme, Served
from tests.clouds.slack import TEAM, Seen


def picture(message: Seen) -> dict[str, Any]:
    [block] = [block for block in message.body["blocks"] if block["type"] == "image"]
    return dict(block)


@pytest.fixture
def address(acme: Acme) -> str:
    """Where Slack fetches the chart of a plan, on the service under test."""
    url = str(picture(acme.asks(PLAN))["image_url"])
    assert url.startswith(f"{PAGE}/slack/charts/plan-")
    return url.removeprefix(PAGE)


def changed(address: str, **values: object) -> str:
    parts = urlsplit(address)
    return f"{parts.path}?{urlencode(dict(parse_qsl(parts.query)) | values)}"


def test_a_plan_comes_with_its_chart_as_a_png_that_is_described(acme: Acme, address: str) -> None:
    png = acme.service.get(address)
    assert (png.status_code, png.headers["content-type"]) == (200, "image/png")
    assert png.content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png.content[16:24])
    assert width > 1000
    assert height > 500
    assert picture(acme.slack.seen[0])["alt_text"].startswith("Chart of cost against time: ")


@pytest.mark.parametrize(
    "change",
    [
        {"signature": "0" * 64},
        {"signature": "é"},
        {"workspace": "T0OTHER"},
        {"until": 10**10},
    ],
)
def test_an_address_that_we_did_not_sign_is_refused(acme: Acme, address: str, change: dict[str, object]) -> None:
    assert acme.service.get(changed(address, **change)).status_code == 403


def test_a_signature_is_good_for_one_plan(acme: Acme, address: str) -> None:
    assert acme.service.get(address.replace("/plan-", "/plan-0")).status_code == 403
    assert acme.service.get(urlsplit(address).path).status_code == 422


def test_an_address_ends(acme: Acme, address: str) -> None:
    plan_id = urlsplit(address).path.rpartition("/")[2].removesuffix(".png")
    past = datetime.now(UTC) - LIFETIME - timedelta(days=2)
    old = chart_url(acme.settings, plan_id, TEAM, past).removeprefix(PAGE)
    assert acme.service.get(old).status_code == 410
    gone = chart_url(acme.settings, "plan-00000000000000000000", TEAM, datetime.now(UTC)).removeprefix(PAGE)
    assert acme.service.get(gone).status_code == 404


def test_a_workspace_that_was_removed_sees_no_more_charts(acme: Acme, address: str) -> None:
    remove(acme.gpuplan, TEAM)
    assert acme.service.get(address).status_code == 403
    allow(acme.gpuplan, TEAM, scope="plan", name="acme")
    assert acme.service.get(address).status_code == 200


def test_a_chart_is_uploaded_where_the_page_has_no_public_address(acme: Acme, served: Served) -> None:
    settings = replace(acme.settings, page_url="http://gpuplan.internal:8080")
    with served(create_service(acme.gpuplan, slack=settings)) as service:
        inside = replace(acme, service=service, settings=settings)
        file = picture(inside.asks(PLAN))["slack_file"]
        assert acme.slack.uploaded[file["id"]].startswith(b"\x89PNG")
        assert acme.slack.shared == []


def test_where_slack_takes_no_picture_the_rest_is_told(acme: Acme) -> None:
    acme.slack.takes_pictures = False
    message = acme.asks(PLAN)
    kinds = [block["type"] for block in message.body["blocks"]]
    assert "image" not in kinds
    assert "table" in kinds


def test_an_answer_without_a_plan_has_no_chart(acme: Acme) -> None:
    message = acme.asks("plan llama-3-8b tokens=300B by=1d max=$100")
    assert "image" not in [block["type"] for block in message.body["blocks"]]
