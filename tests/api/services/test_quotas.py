"""`gpuplan quotas` writes a settings file that plans keep to, over boto3 and a real socket."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuplan.api.schemas.settings_file import planner_settings
from gpuplan.catalog.model.capacity_answers import quota_codes
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_instance_types
from gpuplan.planner.candidates.quota_limits import binding
from gpuplan.planner.model.quota import Quota
from tests.api.conftest import Ended
from tests.clouds.aws_quotas import AwsQuotaCloud
from tests.clouds.server import answering, html
from tests.providers.aws.conftest import made_up_keys

EAST, WEST = "us-east-1", "us-west-2"
DENIED = b'{"__type": "AccessDeniedException", "Message": "not authorized to perform servicequotas:ListServiceQuotas"}'
THROTTLED = b'{"__type": "TooManyRequestsException", "Message": "Rate exceeded"}'


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsQuotaCloud]:
    made_up_keys(monkeypatch)
    values = {(region, code): 96.0 for region in (EAST, WEST) for code in quota_codes("aws")}
    cloud = AwsQuotaCloud(values | {(EAST, "L-417A185B"): 192.0, (EAST, "L-C4BD4855"): 0.0})
    with cloud.running() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SERVICE_QUOTAS", server.url)
        yield cloud


def quotas_in(text: str, tmp_path: Path) -> tuple[Quota, ...]:
    """The quotas as a plan reads them from the file."""
    path = tmp_path / "quotas.yaml"
    path.write_text(text, encoding="utf-8")
    return planner_settings(path).quotas


def test_the_output_is_a_settings_file_with_every_page_of_the_answer(
    run: Callable[..., Ended], cloud: AwsQuotaCloud, tmp_path: Path
) -> None:
    ended = run("quotas", "--fresh", "--region", EAST, "--region", WEST)
    assert (ended.code, ended.err) == (0, "")
    quotas = quotas_in(ended.out, tmp_path)
    assert len(quotas) == 2 * len(quota_codes("aws"))
    known = {(quota.region, quota.code): quota for quota in quotas}
    assert known[EAST, "L-417A185B"].vcpus == 192
    assert known[EAST, "L-C4BD4855"].vcpus == 0
    assert known[WEST, "L-417A185B"].vcpus == 96


def test_each_machine_meets_the_quota_of_its_family_and_price_kind(
    run: Callable[..., Ended], cloud: AwsQuotaCloud, tmp_path: Path
) -> None:
    quotas = quotas_in(run("quotas", "--fresh", "--region", EAST).out, tmp_path)
    types = {row.name: row for row in embedded_instance_types() if row.provider == "aws"}
    expected = {
        ("p5.48xlarge", "on_demand"): "L-417A185B",
        ("p5.48xlarge", "spot"): "L-C4BD4855",
        ("p4d.24xlarge", "spot"): "L-7212CCBC",
        ("gr6.4xlarge", "on_demand"): "L-DB2E81BA",
        ("g5.xlarge", "spot"): "L-3819A6DF",
        ("trn1.32xlarge", "on_demand"): "L-2C3B7624",
    }
    bound = {(name, kind): binding(quotas, types[name], EAST, kind) for name, kind in expected}
    assert {key: quota and quota.code for key, quota in bound.items()} == expected
    assert binding(quotas, types["p5.48xlarge"], WEST, "on_demand") is None


def test_nonsense_and_missing_values_are_not_believed_and_are_named(
    run: Callable[..., Ended], cloud: AwsQuotaCloud, tmp_path: Path
) -> None:
    cloud.values |= {(EAST, "L-417A185B"): -1.0, (EAST, "L-C4BD4855"): 1e12}
    del cloud.values[EAST, "L-85EED4F7"]
    out = run("quotas", "--fresh", "--region", EAST).out
    codes = {quota.code for quota in quotas_in(out, tmp_path)}
    assert codes == set(quota_codes("aws")) - {"L-417A185B", "L-C4BD4855", "L-85EED4F7"}
    comments = [line for line in out.splitlines() if line.startswith("# not learned")]
    assert len(comments) == 3
    assert any("L-85EED4F7" in line and "does not list" in line for line in comments)
    assert any("-1.0; accepted: 0 to 10000000" in line for line in comments)


def test_a_region_that_refuses_is_named_beside_the_others(run: Callable[..., Ended], cloud: AwsQuotaCloud) -> None:
    cloud.break_with(answering(400, DENIED), when=lambda request: WEST in request.headers.get("authorization", ""))
    answer = json.loads(run("quotas", "--fresh", "--region", EAST, "--region", WEST, "--json").out)
    assert {row["region"] for row in answer["quotas"]} == {EAST}
    [missing] = answer["not_learned"]
    assert missing["region"] == WEST
    assert "AccessDeniedException" in missing["reason"]


def test_a_throttled_question_is_repeated(run: Callable[..., Ended], cloud: AwsQuotaCloud) -> None:
    cloud.break_with(answering(429, THROTTLED), times=1)
    assert len(json.loads(run("quotas", "--fresh", "--region", EAST, "--json").out)["quotas"]) == len(
        quota_codes("aws")
    )


def test_no_quota_at_all_is_a_failure(run: Callable[..., Ended], cloud: AwsQuotaCloud) -> None:
    cloud.break_with(answering(400, DENIED))
    ended = run("quotas", "--fresh", "--region", EAST)
    assert (ended.code, ended.out) == (3, "")
    assert f"aws {EAST}: " in ended.err
    assert "servicequotas:ListServiceQuotas" in ended.err


def test_a_foreign_page_is_a_failure(run: Callable[..., Ended], cloud: AwsQuotaCloud) -> None:
    cloud.break_with(html)
    ended = run("quotas", "--fresh", "--region", EAST)
    assert (ended.code, ended.out) == (3, "")


@pytest.mark.parametrize("regions", [(), ("NORWAY-1",), ("us-gov-west-1",), ("us-west-2-lax-1",)])
def test_only_regions_of_the_three_clouds_are_accepted(run: Callable[..., Ended], regions: tuple[str, ...]) -> None:
    ended = run("quotas", "--fresh", *(word for region in regions for word in ("--region", region)))
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("gpuplan: region")
    assert "us-east-1" in ended.err


def test_more_quotas_than_settings_take_are_refused(run: Callable[..., Ended], cloud: AwsQuotaCloud) -> None:
    regions = (EAST, WEST, "us-east-2", "eu-west-1", "eu-central-1", "ap-south-1")
    cloud.values |= {(region, code): 8.0 for region in regions for code in quota_codes("aws")}
    ended = run("quotas", "--fresh", *(word for region in regions for word in ("--region", region)))
    assert (ended.code, ended.out) == (2, "")
    assert "name fewer" in ended.err
