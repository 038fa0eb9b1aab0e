"""The real command against local clouds over sockets: row for row, with a cloud down, killed, and on a full disk."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from gpuplan.api.cli.main import main
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.snapshots.snapshot import Snapshot, snapshot_of
from gpuplan.catalog.store.store import Store
from tests.clouds.aws import ADVISOR_PATH, AwsCloud
from tests.clouds.aws_catalogue import aws_catalogue, smaller
from tests.clouds.azure import SUBSCRIPTION, azure_cloud, azure_offers
from tests.clouds.gcp import GcpCatalogue, GcpServer, gcp_catalogue
from tests.clouds.server import CloudServer, Reply, answering, html
from tests.e2e.forked import forked
from tests.e2e.unpaced_process import unpaced, unpaced_world, unpaced_world_without_room

ROOT = Path(__file__).resolve().parents[2]
GPUPLAN = (sys.executable, "-m", "gpuplan.api.cli.main")
#: The same in a world whose clouds take any number of calls a second.
UNPACED = (sys.executable, "-m", "tests.e2e.unpaced_process")
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#: What a refresh from the local Azure asks.
AZURE_CALLS = 67
#: Longer than anybody would wait for a test.
HANGS_SECONDS = 120
FOREIGN = ("GPUPLAN_", "AWS_", "AZURE_", "GOOGLE_", "CLOUDSDK_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clouds:
    """Three running servers, what they hold, and the environment that leads to them."""

    aws: AwsCloud
    azure: CloudServer
    gcp: GcpServer
    offers: tuple[Offer, ...]
    shipped: Path

    def environment(self, folder: Path) -> dict[str, str]:
        shutil.copy(self.shipped, folder / "gpuplan.sqlite3")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        services = {f"AWS_ENDPOINT_URL_{name}": self.aws.url for name in ("EC2", "PRICING", "SAVINGSPLANS")}
        gcp = {f"GPUPLAN_GCP_{name}_ENDPOINT": self.gcp.url for name in ("COMPUTE", "BILLING", "TPU")}
        azure = {f"GPUPLAN_AZURE_{name}_ENDPOINT": self.azure.url for name in ("RETAIL", "ARM")}
        return (
            inherited
            | services
            | gcp
            | azure
            | {
                "GPUPLAN_DATABASE_URL": f"sqlite:///{folder / 'gpuplan.sqlite3'}",
                "GPUPLAN_AWS_SPOT_ADVISOR_URL": self.aws.url + ADVISOR_PATH,
                "GPUPLAN_AWS_PRICE_FILES_URL": self.aws.url,
                "GPUPLAN_GCP_PROJECT": self.gcp.project,
                "GPUPLAN_ANONYMOUS": "1",
                "AZURE_SUBSCRIPTION_ID": SUBSCRIPTION,
                "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
                "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_EC2_METADATA_DISABLED": "true",
                "AWS_MAX_ATTEMPTS": "1",
            }
        )


#: Machines of every sort, at every kind of price.
AWS_TYPES = ("g5.xlarge", "g6.12xlarge", "inf2.xlarge", "p4d.24xlarge", "p5.48xlarge", "trn1.32xlarge")
GCP_REGIONS = ("asia-southeast1", "us-central1")


@cache
def _aws() -> Snapshot:
    held = smaller(aws_catalogue(), "us-east-1", "eu-west-1")
    types = [instance_type for instance_type in held.instance_types if instance_type.name in AWS_TYPES]
    return snapshot_of(types, [offer for offer in held.offers if offer.instance_type in AWS_TYPES])


@cache
def _gcp() -> GcpCatalogue:
    return _in_regions(gcp_catalogue(), *GCP_REGIONS)


def _in_regions(whole: GcpCatalogue, *regions: str) -> GcpCatalogue:
    """The part of what Google sells that stands in these regions; prices name the regions that they hold in."""
    zones = {zone for region in regions for zone in whole.zones[region]}
    return replace(
        whole,
        zones={region: whole.zones[region] for region in regions},
        machines={zone: rows for zone, rows in whole.machines.items() if zone in zones},
        attachable={zone: names for zone, names in whole.attachable.items() if zone in zones},
        tpu_types={zone: names for zone, names in whole.tpu_types.items() if zone in zones},
        skus={
            service: [sku for sku in skus if set(sku["serviceRegions"]) & set(regions)]
            for service, skus in whole.skus.items()
        },
        offers=[offer for offer in whole.offers if offer.region in regions],
    )


@pytest.fixture
def clouds(embedded_store: Path) -> Iterator[Clouds]:
    held = _aws()
    shown = [offer for offer in azure_offers() if offer.region in {"eastus", "westeurope"}]
    aws, azure, gcp = AwsCloud(held), azure_cloud(offers=shown), GcpServer(_gcp())
    with ExitStack() as running:
        for cloud in (aws, azure, gcp):
            running.enter_context(cloud.running())
        offers = (*held.offers, *shown, *gcp.catalogue.offers)
        yield Clouds(aws=aws, azure=azure, gcp=gcp, offers=offers, shipped=embedded_store)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a process ended, and what it said."""

    code: int
    output: str
    errors: str


def refreshed(
    environment: dict[str, str], folder: Path, *options: str, world: Callable[[], None] = unpaced_world
) -> Ended:
    """A refresh in a process of its own, from begin to end."""
    output = folder / "said"
    process = forked(("refresh", *options), environment, output, world=world)
    process.join(300)
    assert process.exitcode is not None
    errors = output.with_name("said.errors").read_text(encoding="utf-8")
    return Ended(code=process.exitcode, output=output.read_text(encoding="utf-8"), errors=errors)


def current(environment: dict[str, str]) -> list[Offer]:
    store = Store.open(environment["GPUPLAN_DATABASE_URL"])
    try:
        return list(store.snapshot(store.current_snapshot_id()).offers)
    finally:
        store.close()


def test_a_refresh_from_all_three_clouds_gives_what_they_hold_row_for_row(clouds: Clouds, tmp_path: Path) -> None:
    environment = clouds.environment(tmp_path)
    asked = ("refresh", "--json", "--metrics-file", str(tmp_path / "gpuplan.prom"))
    done = subprocess.run(
        [*UNPACED, *asked], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-3000:]
    report = json.loads(done.stdout)
    assert [(provider["provider"], provider["outcome"]) for provider in report["providers"]] == [
        ("aws", "whole"),
        ("azure", "whole"),
        ("gcp", "whole"),
    ]
    assert report["summary"].startswith("refresh: whole; aws ")
    rows = [row for row in current(environment) if row.provider in {"aws", "azure", "gcp"}]
    assert {row.key: row.usd_micros_per_hour for row in rows} == {
        offer.key: offer.usd_micros_per_hour for offer in clouds.offers
    }
    assert {row.stale_since for row in rows} == {None}
    assert 'gpuplan_refresh_outcome{outcome="whole"} 1.0' in (tmp_path / "gpuplan.prom").read_text(encoding="utf-8")


def test_a_cloud_that_is_down_and_one_behind_a_login_page_leave_the_third_fresh(
    clouds: Clouds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = clouds.environment(tmp_path)
    clouds.gcp.break_with(
        answering(403, b'{"error": {"code": 403, "message": "Permission denied", "status": "PERMISSION_DENIED"}}')
    )
    clouds.azure.break_with(html)
    for name in set(os.environ) - set(environment):
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Environment, "sources", unpaced)
    # In this process: another would take three seconds to import what Google's clients are made of.
    assert main(["refresh"]) == 3
    output = capsys.readouterr()
    last = output.out.splitlines()[-1]
    assert last.startswith("refresh: partial; aws ")
    assert "gcp stale since 2026-07-30" in last
    assert "azure stale since 2026-06-18" in last
    assert "to leave out azure and gcp: gpuplan refresh --provider aws" in output.out
    assert "Permission denied" in output.out
    assert "HTML page" in output.out
    assert SECRET not in output.out + output.err + (tmp_path / "gpuplan.sqlite3").read_bytes().decode("latin-1")
    stale = {offer.provider for offer in current(environment) if offer.stale_since is not None}
    assert stale == {"gcp", "azure"}


def test_a_refresh_killed_at_any_moment_leaves_the_last_snapshot_and_no_lock(clouds: Clouds, tmp_path: Path) -> None:
    environment = clouds.environment(tmp_path)
    before = current(environment)
    command = ("refresh", "--provider", "azure", "--quiet")
    # At the first call, in the midst of them, and while what they gave is weighed and written.
    after_all = [(AZURE_CALLS, seconds) for seconds in (0.05, 0.25, 0.5)]
    for calls, then_seconds in ((1, 0.0), (AZURE_CALLS // 2, 0.0), *after_all):
        seen = len(clouds.azure.requests)
        process = forked(command, environment, tmp_path / "killed", world=unpaced_world)
        while len(clouds.azure.requests) < seen + calls and process.is_alive():
            time.sleep(0.005)
        time.sleep(then_seconds)
        process.kill()
        process.join()
        rows = current(environment)
        fresh = {row.observed_at for row in rows if row.provider == "azure"} != {
            offer.observed_at for offer in before if offer.provider == "azure"
        }
        assert fresh or rows == before
    seen = len(clouds.azure.requests)
    done = refreshed(environment, tmp_path, "--provider", "azure", "--quiet")
    assert (done.code, done.errors) == (0, "")
    assert len(clouds.azure.requests) - seen == AZURE_CALLS  # else the last three were killed at another moment
    with closing(Store.open(environment["GPUPLAN_DATABASE_URL"])) as store, store.engine.connect() as connection:
        left = connection.exec_driver_sql("SELECT count(*) FROM runs WHERE status IN ('queued', 'running')")
        assert left.scalar_one() == 0  # those that were killed have failed, and say so


def test_a_full_disk_at_the_end_ends_with_three_and_the_last_snapshot_stays(clouds: Clouds, tmp_path: Path) -> None:
    environment = clouds.environment(tmp_path)
    before = current(environment)
    done = refreshed(environment, tmp_path, "--provider", "azure", world=unpaced_world_without_room)
    assert done.code == 3, done.output + done.errors
    assert done.output.splitlines()[-1].startswith("refresh: failed; database ")
    assert done.errors.startswith("gpuplan: database ")
    assert done.errors.count("\n") == 1
    assert current(environment) == before
    assert refreshed(environment, tmp_path, "--provider", "azure", "--quiet").code == 0


def test_a_cloud_that_hangs_does_not_keep_the_process_from_ending(clouds: Clouds, tmp_path: Path) -> None:
    environment = clouds.environment(tmp_path)
    go_on = threading.Event()

    def hang(reply: Reply) -> Reply:
        go_on.wait(HANGS_SECONDS)
        return reply

    clouds.aws.break_with(hang, when=lambda request: b"DescribeInstanceTypes" in request.body)
    command = [*GPUPLAN, "refresh", "--provider", "aws", "--quiet", "--time-limit", "0.05"]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=HANGS_SECONDS / 2, check=False
        )
    finally:
        go_on.set()
    assert (done.returncode, done.stderr) == (3, "")
    assert "not read within 3 seconds" in done.stdout
    assert {offer.stale_since is None for offer in current(environment) if offer.provider == "aws"} == {False}
