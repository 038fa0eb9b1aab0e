"""AWS through boto3 against a local server that serves our own catalogue: it comes back row for row."""

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from gpuplan.catalog.model.interruption_rates import DEFAULT_INTERRUPTIONS_PER_HOUR
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.catalog.snapshots.snapshot import Snapshot, snapshot_of
from gpuplan.providers.aws import provider
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.contract import Provider, Rows
from tests.clouds.aws import AwsCloud, asks
from tests.clouds.aws_catalogue import as_read, aws_catalogue, machines_of, smaller
from tests.clouds.aws_xml import ec2_error
from tests.clouds.server import answering
from tests.providers.aws.conftest import KEY_ID, READ_AT, AskAws, aws_at, made_up_keys

EVERY_KIND = frozenset(offer.price_kind for offer in aws_catalogue().offers)
FEW = ("us-east-1", "us-west-2", "us-west-2-lax-1", "us-gov-west-1")
IN_PAGES = (
    "DescribeInstanceTypeOfferings",
    "DescribeInstanceTypes",
    "DescribeSavingsPlansOfferingRates",
    "DescribeSpotPriceHistory",
    "GetProducts",
)


type Asked = tuple[AwsCloud, dict[str, Rows]]


@pytest.fixture(scope="module")
def few_regions() -> Iterator[Asked]:
    """What a few regions of every sort give, and the server with the calls that it got."""
    cloud = AwsCloud(smaller(aws_catalogue(), *FEW))
    with cloud.running() as server, pytest.MonkeyPatch.context() as environment:
        made_up_keys(environment)
        yield cloud, fetched(aws_at(server, environment))


@pytest.fixture(scope="module")
def whole_catalogue() -> Iterator[Asked]:
    """What a refresh gives of all that we know of AWS, among many ordinary machines, and the server with its calls."""
    cloud = AwsCloud(aws_catalogue(), ordinary_types=150)
    with cloud.running() as server, pytest.MonkeyPatch.context() as environment:
        made_up_keys(environment)
        yield cloud, fetched(aws_at(server, environment))


def of_few_types() -> Snapshot:
    """Every fourth machine of a few regions: what tests of pages need, of which a walk takes seconds."""
    few = smaller(aws_catalogue(), *FEW)
    types = few.instance_types[::4]
    names = {item.name for item in types}
    return snapshot_of(types, [offer for offer in few.offers if offer.instance_type in names])


def fetched(aws: Provider) -> dict[str, Rows]:
    """Every region's rows, asked for as a refresh does."""
    with ThreadPoolExecutor(aws.parallel) as pool:
        names = aws.regions()
        return dict(zip(names, pool.map(aws.fetch, names), strict=True))


def offers_of(rows: Mapping[str, Rows]) -> dict[tuple[str, ...], Offer]:
    result = [offer for row in rows.values() for offer in row.offers]
    assert len({offer.key for offer in result}) == len(result)
    return {offer.key: replace(offer, source="") for offer in result}


def types_of(rows: Mapping[str, Rows]) -> dict[str, InstanceType]:
    return {instance_type.name: instance_type for one in rows.values() for instance_type in one.instance_types}


def served(snapshot: Snapshot) -> dict[tuple[str, ...], Offer]:
    return {offer.key: as_read(offer, READ_AT) for offer in snapshot.offers}


def test_a_refresh_gives_back_the_aws_catalogue_row_for_row(whole_catalogue: Asked) -> None:
    _, rows = whole_catalogue
    assert offers_of(rows) == served(aws_catalogue())
    machines = machines_of(aws_catalogue())
    priced = {offer.instance_type for offer in aws_catalogue().offers}
    assert types_of(rows) == {name: machine for name, machine in machines.items() if name in priced}
    assert [
        provider_failure
        for one in rows.values()
        for provider_failure in (*one.provider_failures, *one.failures, *one.quarantined)
    ] == []
    assert rows["us-east-1"].whole_kinds == EVERY_KIND


def test_small_pages_give_the_same_rows(ask_aws: AskAws) -> None:
    few = of_few_types()
    cloud = AwsCloud(few, page_size=3)
    with cloud.running() as server:
        assert offers_of(fetched(ask_aws(server))) == served(few)
    turned = [request for request in cloud.requests if b"extToken" in request.body]
    assert [action for action in IN_PAGES if not any(asks(action)(item) for item in turned)] == []


@pytest.mark.slow(reason="one long case")
def test_a_server_that_knows_no_filters_gives_the_same_rows_and_is_not_asked_a_hundred_times(ask_aws: AskAws) -> None:
    # Every machine, since those that a list does not hold are asked for one by one.
    few = smaller(aws_catalogue(), "us-east-1", "us-gov-west-1")
    cloud = AwsCloud(few, knows_filters=False)
    with cloud.running() as server:
        assert offers_of(fetched(ask_aws(server))) == served(few)
    first_pages = [
        request for request in cloud.requests if asks("GetProducts")(request) and b"NextToken" not in request.body
    ]
    assert len(first_pages) < 60


def test_sources_are_few_and_the_same_every_night(few_regions: Asked) -> None:
    rows = few_regions[1]["us-east-1"]
    assert {offer.source for offer in rows.offers} == {
        "AWS Price List API",
        "AWS Savings Plans API (EC2 Instance plan)",
        "EC2 DescribeSpotPriceHistory",
        "EC2 DescribeCapacityBlockOfferings",
    }
    assert {offer.observed_at for offer in rows.offers} == {READ_AT}


def test_what_ec2_states_of_a_machine_is_taken_over_what_our_table_says(ask_aws: AskAws) -> None:
    few = smaller(aws_catalogue(), "us-east-1")
    changed = [
        replace(instance_type, vcpus=200.0) if instance_type.name == "p5.48xlarge" else instance_type
        for instance_type in few.instance_types
    ]
    with AwsCloud(snapshot_of(changed, few.offers)).running() as server:
        rows = ask_aws(server).fetch("us-east-1")
    made = types_of({"": rows})["p5.48xlarge"]
    assert (made.vcpus, made.intranode_gbs, made.source) == (200.0, 450.0, made.source)
    assert made.source.startswith("EC2 DescribeInstanceTypes")
    assert made.as_of == "2026-11-21"


def test_a_type_and_a_family_that_nobody_has_heard_of_are_priced_if_the_device_is_known(ask_aws: AskAws) -> None:
    few = smaller(aws_catalogue(), "us-east-1")
    new = replace(machines_of(few)["p5.48xlarge"], name="p9.96xlarge")
    offers = [
        replace(offer, instance_type="p9.96xlarge") for offer in few.offers if offer.instance_type == "p5.48xlarge"
    ]
    with AwsCloud(snapshot_of([*few.instance_types, new], [*few.offers, *offers])).running() as server:
        rows = ask_aws(server).fetch("us-east-1")
    made = types_of({"": rows})["p9.96xlarge"]
    assert (made.accelerator, made.devices) == ("H100-80GB-SXM", 8)
    assert (made.intranode_link, made.intranode_gbs) == ("", None)
    kinds = {offer.price_kind for offer in rows.offers if offer.instance_type == "p9.96xlarge"}
    assert kinds == {offer.price_kind for offer in offers}


def test_an_unknown_accelerator_is_listed_and_never_dropped_silently(ask_aws: AskAws) -> None:
    few = smaller(aws_catalogue(), "us-east-1")
    new = replace(machines_of(few)["p5.48xlarge"], name="p9.96xlarge")
    offers = [
        replace(offer, instance_type="p9.96xlarge") for offer in few.offers if offer.instance_type == "p5.48xlarge"
    ]
    cloud = AwsCloud(snapshot_of([*few.instance_types, new], [*few.offers, *offers]))
    renamed = cloud.answer

    def answer(request):  # type: ignore[no-untyped-def]
        reply = renamed(request)
        return replace(reply, body=reply.body.replace(b"<name>H100</name>", b"<name>R100</name>"))

    cloud.answer = answer
    with cloud.running() as server:
        rows = ask_aws(server).fetch("us-east-1")
    assert "unknown accelerator R100 (81920 MiB) of p9.96xlarge" in rows.provider_notes
    assert "p9.96xlarge" in {item.what for item in rows.quarantined}
    assert "p9.96xlarge" not in types_of({"": rows})
    assert "p5.48xlarge" in types_of({"": rows})


def test_a_region_that_is_not_opted_in_keeps_its_list_prices_and_is_never_called(ask_aws: AskAws) -> None:
    few = smaller(aws_catalogue(), "us-east-1", "af-south-1", "af-south-1-los-1")
    cloud = AwsCloud(few, not_enabled=["af-south-1"])
    with cloud.running() as server:
        rows = fetched(ask_aws(server))
    listed = [
        offer
        for offer in few.offers
        if offer.region == "af-south-1" and offer.price_kind not in ("spot", "capacity_block")
    ]
    assert {offer.key for offer in rows["af-south-1"].offers} == {offer.key for offer in listed}
    assert not any(offer.available for offer in (*rows["af-south-1"].offers, *rows["af-south-1-los-1"].offers))
    assert any("not enabled" in note for note in rows["af-south-1"].notes)
    assert rows["af-south-1"].failures == ()
    assert rows["af-south-1"].closed
    assert rows["af-south-1-los-1"].closed
    assert not rows["us-east-1"].closed
    assert "spot" not in rows["af-south-1"].whole_kinds
    assert not [request for request in cloud.requests if asks("", "af-south-1")(request) and b"Action=" in request.body]


def test_a_local_zone_is_a_region_of_its_own_and_is_never_called(few_regions: Asked) -> None:
    cloud, rows = few_regions
    assert {(offer.region, offer.zone) for offer in rows["us-west-2-lax-1"].offers} == {
        ("us-west-2-lax-1", "us-west-2-lax-1")
    }
    assert all(offer.available for offer in rows["us-west-2-lax-1"].offers)
    assert not [
        request for request in cloud.requests if "us-west-2-lax-1/ec2" in request.headers.get("authorization", "")
    ]


def test_wavelength_zones_are_left_out_with_a_note(few_regions: Asked) -> None:
    _, rows = few_regions
    assert not [name for name in rows if "-wl1" in name]
    assert [
        note
        for row in rows.values()
        for note in row.provider_notes
        if "Wavelength" in note and "us-east-1-wl1-bos1" in note
    ]


def test_regions_of_another_partition_have_list_prices_only(few_regions: Asked) -> None:
    rows = few_regions[1]["us-gov-west-1"]
    assert rows.offers
    assert "spot" not in rows.whole_kinds
    assert any("list prices only" in note for note in rows.notes)
    assert rows.closed


def test_no_region_is_taken_for_closed_while_ec2_does_not_say_which_there_are(ask_aws: AskAws) -> None:
    cloud = AwsCloud(smaller(aws_catalogue(), "us-east-1", "us-gov-west-1"))
    denied = ec2_error("UnauthorizedOperation", "You are not authorized to perform this operation")
    cloud.break_with(answering(403, denied, content_type="text/xml"), when=asks("DescribeRegions"))
    with cloud.running() as server:
        assert not ask_aws(server).fetch("us-gov-west-1").closed


def test_a_machine_that_ec2_no_longer_describes_is_priced_and_noted(ask_aws: AskAws) -> None:
    cloud = AwsCloud(smaller(aws_catalogue(), "us-east-1"))
    undescribed = [name for name in cloud.ec2.sold("us-east-1") if name.startswith("p3.")]
    for name in undescribed:
        del cloud.ec2._records[name]
    with cloud.running() as server:
        rows = ask_aws(server).fetch("us-east-1")
    [note] = [
        provider_note for provider_note in rows.provider_notes if "not described to this account" in provider_note
    ]
    assert all(name in note for name in undescribed)
    assert {offer.instance_type for offer in rows.offers if offer.available} >= set(undescribed)


def test_a_region_that_does_not_exist_is_refused_by_name(ask_aws: AskAws) -> None:
    with AwsCloud(smaller(aws_catalogue(), "us-east-1")).running() as server, pytest.raises(UnusableInput) as refused:
        ask_aws(server).fetch("us-east-9")
    assert "region: AWS has no region 'us-east-9'; accepted: us-east-1" in str(refused.value)


def test_a_list_price_of_a_type_that_is_not_on_sale_there_is_not_available(ask_aws: AskAws) -> None:
    few = smaller(aws_catalogue(), "us-east-1")
    cloud = AwsCloud(few)
    cloud.ec2.sold = lambda region: {"p5.48xlarge"}  # type: ignore[method-assign]
    with cloud.running() as server:
        rows = ask_aws(server).fetch("us-east-1")
    assert {offer.available for offer in rows.offers if offer.instance_type == "p5.48xlarge"} == {True}
    assert {offer.available for offer in rows.offers if offer.instance_type == "g5.xlarge"} == {False}


def test_a_spot_row_without_a_published_band_carries_the_measured_rate_and_says_so(few_regions: Asked) -> None:
    modelled = [offer for region_rows in few_regions[1].values() for offer in region_rows.offers if offer.modelled]
    assert {offer.interruptions_per_hour for offer in modelled} == {DEFAULT_INTERRUPTIONS_PER_HOUR}
    assert {offer.modelled for offer in modelled} == {("interruption_rate",)}


def test_the_shared_lists_are_read_once_for_all_regions(few_regions: Asked) -> None:
    cloud, _ = few_regions
    bodies = [request.body for request in cloud.requests if asks("GetProducts")(request)]
    assert len(set(bodies)) == len(bodies)
    assert len([request for request in cloud.requests if asks("DescribeRegions")(request)]) == 1


def test_each_type_is_described_once_and_not_in_every_region(whole_catalogue: Asked) -> None:
    cloud, _ = whole_catalogue
    assert len([request for request in cloud.requests if asks("DescribeInstanceTypes")(request)]) < 20


def test_without_credentials_the_public_price_files_are_asked(no_aws_keys: None) -> None:
    aws = provider(Sources(), read_at=READ_AT)
    assert type(aws).__module__ == "gpuplan.providers.aws.price_files"


def test_half_a_pair_of_keys_is_said_when_aws_is_asked(no_aws_keys: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    with pytest.raises(
        ProviderFailure, match=r"the AWS credentials cannot be read: .*AWS_SECRET_ACCESS_KEY"
    ) as failure:
        provider(Sources(), read_at=READ_AT).regions()
    assert KEY_ID not in str(failure.value)


def test_a_profile_that_does_not_exist_is_said_when_aws_is_asked(
    no_aws_keys: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(ProviderFailure, match=r"profile .*nobody"):
        provider(Sources(), read_at=READ_AT).fetch("us-east-1")


def test_spot_is_asked_for_at_the_time_of_reading(few_regions: Asked) -> None:
    cloud, _ = few_regions
    bodies = [request.body.decode() for request in cloud.requests if asks("DescribeSpotPriceHistory")(request)]
    assert {body.count("2026-11-21T02%3A30%3A00Z") for body in bodies} == {2}


def test_a_denied_price_list_is_not_asked_for_a_hundred_types(ask_aws: AskAws) -> None:
    cloud = AwsCloud(smaller(aws_catalogue(), "us-east-1"))
    denied = json.dumps(
        {"__type": "AccessDeniedException", "Message": "not authorized to perform: pricing:GetProducts"}
    )
    cloud.break_with(answering(400, denied.encode()), when=asks("GetProducts"))
    with cloud.running() as server:
        rows = ask_aws(server).fetch("us-east-1")
    assert len([request for request in cloud.requests if asks("GetProducts")(request)]) <= 16
    (line,) = rows.provider_failures
    assert "prices of 99 of 99 types" in line
