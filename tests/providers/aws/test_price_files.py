"""AWS without credentials: what a refresh reads from the public files."""

import csv
import gzip
import io
import json
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tenacity import wait_none

from gpuplan.catalog.model.interruption_rates import DEFAULT_INTERRUPTIONS_PER_HOUR, interruptions_per_hour
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.providers.aws import provider
from gpuplan.providers.aws.price_files import LISTED_KINDS, WITHOUT_CREDENTIALS, price_files_provider
from gpuplan.providers.aws.public_offers import hardware
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.contract import Provider, Rows
from tests.clouds.aws import ADVISOR_PATH, AwsCloud
from tests.clouds.aws_catalogue import as_read, aws_catalogue
from tests.clouds.server import CloudServer, Reply, Request, answering, html, reset_after, truncated
from tests.providers.aws.price_documents import PREAMBLE, csv_file, json_file, product, reserved

READ_AT = datetime(2026, 11, 21, 3, tzinfo=UTC)
OFFERS = "/offers/v1.0/aws/AmazonEC2"
VERSION = f"{OFFERS}/20261120000000"
PLANS = "/savingsPlan/v1.0/aws/AWSComputeSavingsPlan"
ADVISOR = "/spot-advisor-data.json"
P4D = product()
P4D_WEST = product(sku="WEST", regionCode="us-west-2", usd="21.9576400000", usagetype="USW2-BoxUsage:p4d.24xlarge")
T4 = product(sku="T4", instanceType="g4dn.xlarge", gpu="1", usd="0.5260000000")
NO_GPU = product(sku="M5", instanceType="m5.large", gpu="", usd="0.0960000000")


@dataclass(slots=True)
class Files:
    """A server of files by path; what is not there is 404."""

    files: dict[str, Reply] = field(default_factory=dict)
    server: CloudServer = field(init=False)

    def __post_init__(self) -> None:
        self.server = CloudServer(self._answer)

    def _answer(self, request: Request) -> Reply:
        return self.files.get(request.path, Reply(status=404, body=b"<Error/>", content_type="application/xml"))

    def put(self, path: str, body: bytes | dict[str, Any], **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.files[path] = Reply(body=data, content_type="application/octet-stream", headers=named)

    def index(self, *codes: str) -> None:
        entries = {code: {"regionCode": code, "currentVersionUrl": f"{VERSION}/{code}/index.json"} for code in codes}
        self.put(f"{OFFERS}/current/region_index.json", {"regions": entries})

    def advise(self, row: Mapping[str, Any], *places: tuple[str, str]) -> None:
        ranges = [{"index": number, "max": largest} for number, largest in enumerate((5, 11, 16, 22, 100))]
        regions: dict[str, Any] = {}
        for region, name in places:
            regions.setdefault(region, {"Linux": {}})["Linux"][name] = dict(row)
        self.put(ADVISOR, {"ranges": ranges, "spot_advisor": regions})

    def provider(self) -> Provider:
        sources = Sources(
            aws_price_files_url=self.server.url, aws_spot_advisor_url=self.server.url + ADVISOR, paced=False
        )
        return price_files_provider(sources, read_at=READ_AT)

    def asked(self, ending: str) -> int:
        return sum(request.path.endswith(ending) for request in self.server.requests)


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again is tried at once."""
    monkeypatch.setattr("gpuplan.providers.feed_client._backing_off", wait_none())


@pytest.fixture
def files() -> Iterator[Files]:
    served = Files()
    served.advise({"s": 64, "r": 3}, ("us-east-1", "g4dn.xlarge"), ("us-east-1", "p4d.24xlarge"))
    with served.server.running():
        yield served


def prices(rows: Rows) -> dict[tuple[str, str, str], int]:
    return {
        (offer.region, offer.instance_type, offer.price_kind): offer.usd_micros_per_hour
        for offer in rows.offers
        if offer.price_kind in LISTED_KINDS
    }


def spot(rows: Rows) -> list[Offer]:
    return [offer for offer in rows.offers if offer.price_kind == "spot"]


def only_prices_of_the_p4d(rows: Rows) -> bool:
    return prices(rows) == {("us-east-1", "p4d.24xlarge", "on_demand"): 21_957_642}


def test_a_region_is_read_from_the_file_that_the_index_names(files: Files) -> None:
    files.index("us-east-1", "us-west-2")
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([P4D, NO_GPU]))
    files.put(f"{VERSION}/us-west-2/index.csv", csv_file([P4D_WEST]))
    provider = files.provider()
    assert (provider.name, list(provider.regions())) == ("aws", ["us-east-1", "us-west-2"])
    east, west = provider.fetch("us-east-1"), provider.fetch("us-west-2")
    assert only_prices_of_the_p4d(east)
    assert prices(west) == {("us-west-2", "p4d.24xlarge", "on_demand"): 21_957_640}
    assert [(row.name, row.accelerator, row.devices) for row in east.instance_types] == [
        ("p4d.24xlarge", "A100-40GB-SXM", 8)
    ]
    (offer,) = [offer for offer in east.offers if offer.price_kind == "on_demand"]
    assert (offer.zone, offer.observed_at, offer.source) == ("", READ_AT, "AWS price list files")


def test_the_lines_of_one_reservation_are_joined_into_its_price(files: Files) -> None:
    terms = [
        reserved("HU7G6KETJZ", "1yr", "standard", "Partial Upfront", hourly="1.0000000000", fee="8760"),
        reserved("MZU6U2429S", "3yr", "convertible", "All Upfront", hourly="0.0000000000", fee="78840"),
    ]
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([product(reserved_terms=terms)]))
    result = prices(files.provider().fetch("us-east-1"))
    assert {kind: micros for (_, _, kind), micros in result.items()} == {
        "on_demand": 21_957_642,
        "reserved_1y_partial_upfront": 2_000_000,
        "reserved_3y_convertible_all_upfront": 3_000_000,
    }


def test_lines_of_one_product_may_stand_anywhere_in_the_file(files: Files) -> None:
    term = reserved("HU7G6KETJZ", "1yr", "standard", "Partial Upfront", hourly="1.0000000000", fee="8760")
    head, *lines = csv_file([product(reserved_terms=[term]), T4], preamble=[]).splitlines(keepends=True)
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.csv", head + b"".join(reversed(lines)))
    result = prices(files.provider().fetch("us-east-1"))
    assert result["us-east-1", "p4d.24xlarge", "reserved_1y_partial_upfront"] == 2_000_000
    assert result["us-east-1", "g4dn.xlarge", "on_demand"] == 526_000


@pytest.mark.parametrize("lines", [0, 1, 5, 9])
def test_the_header_is_found_by_its_first_column_and_not_by_counting_lines(files: Files, lines: int) -> None:
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([P4D], preamble=(PREAMBLE * 2)[:lines]))
    assert only_prices_of_the_p4d(files.provider().fetch("us-east-1"))


def test_a_byte_order_mark_and_carriage_returns_are_no_part_of_a_cell(files: Files) -> None:
    files.index("us-east-1")
    body = b"\xef\xbb\xbf" + csv_file([P4D], preamble=[]).replace(b"\n", b"\r\n")
    files.put(f"{VERSION}/us-east-1/index.csv", body)
    assert only_prices_of_the_p4d(files.provider().fetch("us-east-1"))


def test_a_compressed_answer_is_read_as_it_comes(files: Files) -> None:
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.csv", gzip.compress(csv_file([P4D])), Content_Encoding="gzip")
    assert only_prices_of_the_p4d(files.provider().fetch("us-east-1"))


def test_a_file_without_some_columns_is_read_by_those_it_has(files: Files) -> None:
    sparse = product(without=["usagetype", "operation", "marketoption", "licenseModel", "gpu", "gpuMemory"])
    lines = csv_file([sparse], preamble=[]).replace(b'"usageType"', b'"Unheard Of"').replace(b'"Tenancy"', b'"X"')
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.csv", lines)
    assert only_prices_of_the_p4d(files.provider().fetch("us-east-1"))


def test_where_there_is_no_csv_the_json_is_read(files: Files) -> None:
    term = reserved("HU7G6KETJZ", "1yr", "standard", "Partial Upfront", hourly="1.0000000000", fee="8760")
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.json", json_file([product(reserved_terms=[term]), NO_GPU]))
    assert prices(files.provider().fetch("us-east-1")) == {
        ("us-east-1", "p4d.24xlarge", "on_demand"): 21_957_642,
        ("us-east-1", "p4d.24xlarge", "reserved_1y_partial_upfront"): 2_000_000,
    }


def test_csv_and_json_say_the_same(files: Files) -> None:
    terms = [reserved("4NA7Y494T4", "1yr", "standard", "No Upfront", hourly="13.8")]
    documents = [product(reserved_terms=terms), T4, NO_GPU, product(sku="B", marketoption="CapacityBlock", usd="0")]
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file(documents))
    of_csv = files.provider().fetch("us-east-1")
    del files.files[f"{VERSION}/us-east-1/index.csv"]
    files.put(f"{VERSION}/us-east-1/index.json", json_file(documents))
    assert files.provider().fetch("us-east-1").offers == of_csv.offers


def test_without_an_index_the_known_regions_are_looked_for_one_by_one(files: Files) -> None:
    files.put(f"{OFFERS}/current/us-east-1/index.csv", csv_file([P4D]))
    provider = files.provider()
    assert {"us-east-1", "eu-west-1"} <= set(provider.regions())
    assert "cn-north-1" not in provider.regions()
    assert only_prices_of_the_p4d(provider.fetch("us-east-1"))
    with pytest.raises(ProviderFailure, match="eu-west-1: no price file below http://127"):
        provider.fetch("eu-west-1")


def test_the_file_of_all_regions_is_read_once_where_there_is_none_per_region(files: Files) -> None:
    files.put(f"{OFFERS}/current/index.csv", csv_file([P4D, P4D_WEST]))
    provider = files.provider()
    assert only_prices_of_the_p4d(provider.fetch("us-east-1"))
    assert prices(provider.fetch("us-west-2")) == {("us-west-2", "p4d.24xlarge", "on_demand"): 21_957_640}
    assert provider.fetch("eu-west-1").offers == ()
    assert files.asked("current/index.csv") == 1


def test_a_moved_version_is_found_under_current(files: Files) -> None:
    files.index("us-east-1")
    files.put(f"{OFFERS}/current/us-east-1/index.csv", csv_file([P4D]))
    assert only_prices_of_the_p4d(files.provider().fetch("us-east-1"))


def test_an_index_may_be_a_list_and_its_addresses_absolute(files: Files) -> None:
    entry = {"regionCode": "us-east-1", "versionUrl": f"https://elsewhere.example{VERSION}/us-east-1/index.json"}
    files.put(f"{OFFERS}/current/region_index.json", {"regions": [entry]})
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([P4D]))
    assert only_prices_of_the_p4d(files.provider().fetch("us-east-1"))


def test_wavelength_zones_of_the_index_are_no_regions(files: Files) -> None:
    files.index("us-east-1", "us-east-1-wl1-bos-wlz-1", "us-west-2-lax-1")
    assert list(files.provider().regions()) == ["us-east-1", "us-west-2-lax-1"]


def test_a_local_zone_in_the_file_of_its_region_comes_with_the_region(files: Files) -> None:
    zone = product(sku="LAX", regionCode="us-west-2-lax-1", locationType="AWS Local Zone", usd="30")
    wavelength = product(sku="WL", regionCode="us-west-2-wl1-las-wlz-1", locationType="AWS Wavelength Zone")
    files.index("us-west-2")
    files.put(f"{VERSION}/us-west-2/index.csv", csv_file([P4D_WEST, zone, wavelength]))
    rows = files.provider().fetch("us-west-2")
    assert [(offer.region, offer.zone) for offer in rows.offers] == [
        ("us-west-2", ""),
        ("us-west-2-lax-1", "us-west-2-lax-1"),
    ]


def test_a_local_zone_with_a_file_of_its_own_is_a_region_and_comes_once(files: Files) -> None:
    zone = product(sku="LAX", regionCode="us-west-2-lax-1", locationType="AWS Local Zone", usd="30")
    files.index("us-west-2", "us-west-2-lax-1")
    for code in ("us-west-2", "us-west-2-lax-1"):
        files.put(f"{VERSION}/{code}/index.csv", csv_file([P4D_WEST, zone]))
    provider = files.provider()
    assert {offer.region for offer in provider.fetch("us-west-2").offers} == {"us-west-2"}
    assert {offer.region for offer in provider.fetch("us-west-2-lax-1").offers} == {"us-west-2-lax-1"}


def test_a_region_in_the_file_of_another_is_left_out_and_noted(files: Files) -> None:
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([P4D, product(sku="MX", regionCode="mx-north-7")]))
    rows = files.provider().fetch("us-east-1")
    assert only_prices_of_the_p4d(rows)
    assert "mx-north-7: 1 prices in the file of another region are left out, for no index lists it" in rows.notes


def test_an_accelerator_that_nobody_knows_is_set_aside_and_noted_once(files: Files) -> None:
    new = [
        product(sku=f"P9{region}", instanceType="p9.48xlarge", regionCode=region)
        for region in ("us-east-1", "us-west-2")
    ]
    uncounted = product(sku="T9", instanceType="trn9.48xlarge", gpu="NA")
    odd_name = product(sku="ZZ", instanceType="zz1.large", gpu="2")
    files.index("us-east-1", "us-west-2")
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([P4D, new[0], uncounted, odd_name]))
    files.put(f"{VERSION}/us-west-2/index.csv", csv_file([P4D_WEST, new[1]]))
    provider = files.provider()
    east, west = provider.fetch("us-east-1"), provider.fetch("us-west-2")
    assert {row.what for row in east.quarantined} == {
        "p9.48xlarge in us-east-1",
        "trn9.48xlarge in us-east-1",
        "zz1.large in us-east-1",
    }
    assert {row.what for row in west.quarantined} == {"p9.48xlarge in us-west-2"}
    notes = [note for rows in (east, west) for note in rows.notes if "p9.48xlarge" in note]
    assert notes == ["unknown accelerator type p9.48xlarge: priced by AWS, its hardware is in no table of gpuplan"]
    assert only_prices_of_the_p4d(east)


def test_machines_that_do_not_train_are_left_out_without_a_word(files: Files) -> None:
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([P4D, product(sku="F1", instanceType="f1.2xlarge")]))
    rows = files.provider().fetch("us-east-1")
    assert only_prices_of_the_p4d(rows)
    assert rows.quarantined == ()


def test_a_zero_price_is_set_aside_with_its_reason(files: Files) -> None:
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([P4D, product(sku="P5", instanceType="p5.48xlarge", usd="0")]))
    rows = files.provider().fetch("us-east-1")
    assert only_prices_of_the_p4d(rows)
    assert [row.reason for row in rows.quarantined] == ["a price of zero means unknown, never free"]


def test_an_implausible_price_is_set_aside(files: Files) -> None:
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([product(usd="999999")]))
    rows = files.provider().fetch("us-east-1")
    assert rows.offers == ()
    assert any("is not a plausible price" in row.reason for row in rows.quarantined)


def test_spot_is_modelled_from_the_saving_and_says_so(files: Files) -> None:
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([T4]))
    rows = files.provider().fetch("us-east-1")
    (offer,) = spot(rows)
    assert offer.usd_micros_per_hour == 189_360
    assert offer.zone == ""
    assert offer.modelled == ("spot_price",)
    assert offer.interruptions_per_hour == interruptions_per_hour("15-20%")
    assert "spot" not in rows.whole_kinds
    assert "on_demand" in rows.whole_kinds
    assert "reserved_3y_convertible_all_upfront" in rows.whole_kinds


def test_a_spot_price_without_a_band_says_that_its_rate_is_modelled_too(files: Files) -> None:
    files.advise({"s": 64}, ("us-east-1", "g4dn.xlarge"))
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([T4]))
    (offer,) = spot(files.provider().fetch("us-east-1"))
    assert offer.modelled == ("spot_price", "interruption_rate")
    assert offer.interruptions_per_hour == DEFAULT_INTERRUPTIONS_PER_HOUR


@pytest.mark.parametrize("saving", [0, 90, 95])
def test_a_saving_that_is_no_discount_or_at_the_floor_models_no_price(files: Files, saving: int) -> None:
    files.advise({"s": saving, "r": 0}, ("us-east-1", "g4dn.xlarge"))
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([T4]))
    rows = files.provider().fetch("us-east-1")
    assert spot(rows) == []
    assert [row.what for row in rows.quarantined] == [f"g4dn.xlarge in us-east-1, spot at {saving} % below on-demand"]


def test_a_broken_advisor_leaves_the_list_prices_and_is_told_once(files: Files) -> None:
    del files.files[ADVISOR]
    files.index("us-east-1", "us-west-2")
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([P4D]))
    files.put(f"{VERSION}/us-west-2/index.csv", csv_file([P4D_WEST]))
    provider = files.provider()
    east, west = provider.fetch("us-east-1"), provider.fetch("us-west-2")
    assert only_prices_of_the_p4d(east)
    assert len(west.offers) == 1
    reported = {line for rows in (east, west) for line in rows.provider_failures if line.startswith("spot advisor: ")}
    assert len(reported) == 1
    assert files.asked(ADVISOR) == 1


def test_what_needs_credentials_is_a_note_of_the_provider_that_says_what_to_set(files: Files) -> None:
    files.index("us-east-1", "us-west-2")
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([P4D]))
    files.put(f"{VERSION}/us-west-2/index.csv", csv_file([P4D_WEST]))
    provider = files.provider()
    for region in ("us-west-2", "us-east-1"):
        rows = provider.fetch(region)
        assert WITHOUT_CREDENTIALS in rows.provider_notes
        assert (rows.failures, rows.provider_failures) == ((), ())
    assert "AWS_ACCESS_KEY_ID" in WITHOUT_CREDENTIALS


def test_a_connection_reset_in_the_middle_reads_the_file_again_from_the_start(files: Files) -> None:
    files.index("us-east-1")
    files.put(
        f"{VERSION}/us-east-1/index.csv",
        csv_file([P4D] + [product(sku=f"S{n}", instanceType="c5.large") for n in range(500)]),
    )
    files.server.break_with(reset_after(0.5), when=lambda request: request.path.endswith("index.csv"), times=2)
    assert only_prices_of_the_p4d(files.provider().fetch("us-east-1"))
    assert files.asked("index.csv") == 3


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_a_file_that_ends_in_the_middle_is_read_again_and_never_half_taken(files: Files, ending: str) -> None:
    files.index("us-east-1")
    body = csv_file([P4D, T4]) if ending == "csv" else json_file([P4D, T4])
    files.put(f"{VERSION}/us-east-1/index.{ending}", body)
    files.server.break_with(truncated, when=lambda request: request.path.endswith(f"/index.{ending}"), times=1)
    assert len(prices(files.provider().fetch("us-east-1"))) == 2


def test_a_region_whose_file_always_breaks_fails_and_leaves_the_others(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuplan.providers.feed_client.ATTEMPTS", 2)
    files.index("us-east-1", "us-west-2")
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([P4D]))
    files.put(f"{VERSION}/us-west-2/index.csv", csv_file([P4D_WEST]))
    files.server.break_with(reset_after(0.5), when=lambda request: "us-west-2" in request.path)
    provider = files.provider()
    with pytest.raises(ProviderFailure, match=r"us-west-2/index\.csv"):
        provider.fetch("us-west-2")
    assert only_prices_of_the_p4d(provider.fetch("us-east-1"))


@pytest.mark.parametrize(
    "change",
    [html, answering(403, b"<Error/>"), answering(200, b"no,price,file\n" * 300), answering(200, b"x" * 200_000)],
)
def test_what_is_no_price_file_fails_in_one_line(files: Files, change: Any) -> None:
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([P4D]))
    files.server.break_with(change, when=lambda request: request.path.endswith("index.csv"))
    with pytest.raises(ProviderFailure, match=r"^http://127[^\n]*us-east-1/index\.csv: [^\n]+$"):
        files.provider().fetch("us-east-1")


@pytest.mark.parametrize(
    "change", [html, answering(200, b'{"regions": {}}'), answering(200, b"[]"), answering(200, b'{"regions": 5}')]
)
def test_an_index_that_lists_nothing_is_a_provider_that_cannot_be_asked(files: Files, change: Any) -> None:
    files.server.break_with(change, when=lambda request: request.path.endswith("region_index.json"))
    with pytest.raises(ProviderFailure, match="region_index"):
        files.provider().regions()


def test_a_region_that_does_not_exist_is_named(files: Files) -> None:
    files.index("us-east-1")
    with pytest.raises(UnusableInput, match="region: 'us-east-9' is none that AWS has prices for: us-east-1"):
        files.provider().fetch("us-east-9")


def test_a_region_without_accelerators_has_no_rows_and_no_failure(files: Files) -> None:
    files.index("us-east-1", "ca-west-1")
    files.put(f"{VERSION}/ca-west-1/index.csv", csv_file([product(sku="C", instanceType="m5.large", gpu="")]))
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([P4D]))
    provider = files.provider()
    provider.fetch("us-east-1")
    rows = provider.fetch("ca-west-1")
    assert replace(rows, provider_notes=()) == Rows(whole_kinds=LISTED_KINDS)


def test_threads_that_want_one_file_read_it_once(files: Files) -> None:
    files.put(f"{OFFERS}/current/index.csv", csv_file([P4D, P4D_WEST]))
    files.server.latency_seconds = 0.02
    provider = files.provider()
    rowses: list[Rows] = []
    threads = [
        threading.Thread(target=lambda region=region: rowses.append(provider.fetch(region)))
        for region in ("us-east-1", "us-west-2", "eu-west-1", "us-east-2")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(len(prices(rows)) for rows in rowses) == 2
    assert files.asked("current/index.csv") == 1


def rates_line(
    name: str,
    rate: str,
    *,
    years: str = "1",
    option: str = "No Upfront",
    usage: str = "BoxUsage",
    operation: str = "RunInstances",
    region: str = "us-east-1",
    plan: str = "Compute",
    currency: str = "USD",
) -> dict[str, str]:
    return {
        "SKU": f"PLAN-{plan}-{years}-{option}",
        "RateCode": f"PLAN.{name}",
        "Unit": "Hrs",
        "DiscountedRate": rate,
        "Currency": currency,
        "DiscountedUsageType": f"{usage}:{name}",
        "DiscountedOperation": operation,
        "PurchaseOption": option,
        "LeaseContractLength": years,
        "LeaseContractLengthUnit": "year",
        "Product Family": f"{plan}SavingsPlans",
        "DiscountedRegionCode": region,
        "DiscountedInstanceType": name,
    }


RATES = [
    rates_line("p4d.24xlarge", "14.77"),
    rates_line("p4d.24xlarge", "13.20", plan="EC2Instance"),
    rates_line("p4d.24xlarge", "9.90", years="3"),
    rates_line("p4d.24xlarge", "1.00", option="All Upfront"),
    rates_line("p4d.24xlarge", "2.00", operation="RunInstances:0002"),
    rates_line("p4d.24xlarge", "3.00", usage="UnusedBox"),
    rates_line("p4d.24xlarge", "4.00", usage="DedicatedUsage"),
    rates_line("m5.large", "0.05"),
    rates_line("g4dn.xlarge", "0"),
    rates_line("g5.xlarge", "7.1", currency="CNY"),
]


def plans_as_csv(rates: list[dict[str, str]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(PREAMBLE)
    writer.writerow(rates[0])
    writer.writerows(rate.values() for rate in rates)
    return text.getvalue().encode()


def plans_as_json(rates: list[dict[str, str]]) -> bytes:
    plans: dict[str, Any] = {}
    products: dict[str, Any] = {}
    for rate in rates:
        sku, years, option = rate["SKU"], rate["LeaseContractLength"], rate["PurchaseOption"]
        products[sku] = {"sku": sku, "productFamily": rate["Product Family"], "attributes": {"purchaseOption": option}}
        description = f"{years} year {option} {'EC2 Instance' if 'EC2' in sku else 'Compute'} Savings Plan"
        length = {"duration": int(years), "unit": "year"}
        plan = plans.setdefault(
            sku, {"sku": sku, "description": description, "leaseContractLength": length, "rates": []}
        )
        plan["rates"].append(
            {
                "discountedUsageType": rate["DiscountedUsageType"],
                "discountedOperation": rate["DiscountedOperation"],
                "unit": "Hrs",
                "discountedRate": {"price": rate["DiscountedRate"], "currency": rate["Currency"]},
                "discountedRegionCode": rate["DiscountedRegionCode"],
                "discountedInstanceType": rate["DiscountedInstanceType"],
            }
        )
    return json.dumps({"products": list(products.values()), "terms": {"savingsPlan": list(plans.values())}}).encode()


def with_plans(files: Files, *codes: str) -> None:
    entries = [{"regionCode": code, "versionUrl": f"{PLANS}/2026/{code}/index.json"} for code in codes]
    files.put(f"{PLANS}/current/region_index.json", {"regions": entries})


@pytest.mark.parametrize(("ending", "written"), [("csv", plans_as_csv), ("json", plans_as_json)])
def test_the_cheaper_plan_without_upfront_payment_is_the_savings_plan_rate(
    files: Files, ending: str, written: Any
) -> None:
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([P4D]))
    with_plans(files, "us-east-1")
    files.put(f"{PLANS}/2026/us-east-1/index.{ending}", written(RATES))
    rows = files.provider().fetch("us-east-1")
    result = {
        offer.price_kind: (offer.usd_micros_per_hour, offer.source)
        for offer in rows.offers
        if offer.price_kind.startswith("savings_plan")
    }
    assert result == {
        "savings_plan_1y": (13_200_000, "AWS savings plan price files (EC2 Instance Savings Plan)"),
        "savings_plan_3y": (9_900_000, "AWS savings plan price files (Compute Savings Plan)"),
    }
    assert {"savings_plan_1y", "savings_plan_3y"} <= rows.whole_kinds
    assert sorted(row.what for row in rows.quarantined) == [
        "g4dn.xlarge in us-east-1, savings_plan_1y",
        "g5.xlarge in us-east-1, savings_plan_1y",
    ]


def test_rates_of_a_local_zone_come_with_its_region(files: Files) -> None:
    zone = product(sku="LAX", regionCode="us-west-2-lax-1", locationType="AWS Local Zone", usd="30")
    files.index("us-west-2")
    files.put(f"{VERSION}/us-west-2/index.csv", csv_file([P4D_WEST, zone]))
    with_plans(files, "us-west-2")
    files.put(
        f"{PLANS}/2026/us-west-2/index.csv",
        plans_as_csv(
            [
                rates_line("p4d.24xlarge", rate, region=code)
                for code, rate in (("us-west-2", "14"), ("us-west-2-lax-1", "15"))
            ]
        ),
    )
    result = {
        (offer.region, offer.zone, offer.usd_micros_per_hour)
        for offer in files.provider().fetch("us-west-2").offers
        if offer.price_kind == "savings_plan_1y"
    }
    assert result == {("us-west-2", "", 14_000_000), ("us-west-2-lax-1", "us-west-2-lax-1", 15_000_000)}


def test_without_savings_plan_files_their_rates_stay_and_a_note_says_so(files: Files) -> None:
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([P4D]))
    rows = files.provider().fetch("us-east-1")
    assert [note for note in rows.provider_notes if note.startswith("savings plans: ")]
    assert not {kind for kind in rows.whole_kinds if kind.startswith("savings_plan")}
    assert rows.failures == ()


def test_a_savings_plan_file_that_fails_leaves_the_list_prices(files: Files) -> None:
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.csv", csv_file([P4D]))
    with_plans(files, "us-east-1")
    files.put(f"{PLANS}/2026/us-east-1/index.csv", b"<html>")
    rows = files.provider().fetch("us-east-1")
    assert only_prices_of_the_p4d(rows)
    assert any(line.startswith("savings plans: http://127") for line in rows.failures)
    assert not {kind for kind in rows.whole_kinds if kind.startswith("savings_plan")}


def _peak_bytes(read: Callable[[], Rows]) -> int:
    """While reading, the files of the server itself aside."""
    tracemalloc.start()
    try:
        assert only_prices_of_the_p4d(read())
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_csv_of_20_mb_is_read_in_a_tenth_of_its_size(files: Files) -> None:
    systems = ("Windows", "RHEL", "SUSE", "Linux") * 25
    plenty = [product(sku=f"S{n}", instanceType="m5.large", gpu="", operatingSystem=os) for n, os in enumerate(systems)]
    lines = csv_file(plenty, preamble=[]).split(b"\n", 1)[1]
    last = csv_file([P4D], preamble=[]).split(b"\n", 1)[1]
    body = csv_file([]) + lines * (20_000_000 // len(lines) + 1) + last
    assert len(body) > 20_000_000
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.csv", body)
    provider = files.provider()
    provider.regions()
    hardware()
    assert _peak_bytes(lambda: provider.fetch("us-east-1")) < 2_000_000


def test_a_json_file_is_read_in_a_part_of_its_size(files: Files) -> None:
    plenty = {f"SKU{number}": NO_GPU["product"] for number in range(5_000)}
    whole = json.loads(json_file([P4D]))
    body = json.dumps({"products": plenty | whole["products"], "terms": whole["terms"]}).encode()
    assert len(body) > 2_300_000
    files.index("us-east-1")
    files.put(f"{VERSION}/us-east-1/index.json", body)
    provider = files.provider()
    provider.regions()
    hardware()
    assert _peak_bytes(lambda: provider.fetch("us-east-1")) < 1_200_000


def test_a_refresh_without_keys_gives_back_the_list_prices_of_the_whole_catalogue(no_aws_keys: None) -> None:
    catalogue = aws_catalogue()
    with AwsCloud(catalogue).running() as server:
        sources = Sources(aws_spot_advisor_url=server.url + ADVISOR_PATH, aws_price_files_url=server.url, paced=False)
        aws = provider(sources, read_at=READ_AT)
        fetched = {region: aws.fetch(region) for region in aws.regions()}
    served = {as_read(offer, READ_AT) for offer in catalogue.offers if offer.price_kind in LISTED_KINDS}
    read = [
        as_read(offer, READ_AT)
        for rows in fetched.values()
        for offer in rows.offers
        if offer.price_kind in LISTED_KINDS
    ]
    assert len(read) == len(set(read))
    assert set(read) == served
    machines = {row for rows in fetched.values() for row in rows.instance_types}
    assert machines == {
        row for row in catalogue.instance_types if row.name in {offer.instance_type for offer in served}
    }
    assert {line for rows in fetched.values() for line in (*rows.failures, *rows.provider_failures)} == set()
    assert all(WITHOUT_CREDENTIALS in rows.provider_notes for rows in fetched.values())
    assert all(offer.modelled for rows in fetched.values() for offer in spot(rows))
    assert sum(len(spot(rows)) for rows in fetched.values()) > 100
