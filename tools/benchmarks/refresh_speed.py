"""How long a full refresh of all providers takes, and what memory, at realistic sizes and distance.

Run from the repository root: python -m tools.benchmarks.refresh_speed [REPEATS]. The clouds are the local
servers of the tests, in a process of their own, answering after 50 ms: 30 AWS regions, 31,500 GCP
SKUs in 7 pages, 60 Azure regions, 60,000 prices; one pass with AWS credentials, one without them
(the bulk price files), and one with every neocloud too. Each pass is one `gpuplan refresh` on a store of its own. Prints a table,
asserts nothing.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.model.regions import regions
from gpuplan.catalog.snapshots.snapshot import Snapshot, snapshot_of

LATENCY_SECONDS = 0.05
AWS_REGIONS = 30
AZURE_REGIONS = 60
GCP_SKUS = 31_500
SPOT_ZONES = 3
#: Regions do not cost the same; a percent between neighbours keeps every price its own.
STEP = 0.01


def main() -> int:
    """Serve, refresh `REPEATS` times each way, print."""
    if sys.argv[1:2] == ["--serve"]:
        return _serve()
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with subprocess.Popen(
        [sys.executable, "-m", "tools.benchmarks.refresh_speed", "--serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as servers:
        assert servers.stdout is not None
        assert servers.stdin is not None
        addresses = json.loads(servers.stdout.readline())
        print(f"served: {addresses['prices']:,} prices; {LATENCY_SECONDS * 1e3:.0f} ms before each answer")
        print(f"{'pass':<28} {'seconds':>8} {'cpu s':>7} {'peak MiB':>9} {'rows':>8}  exit")
        clouds, all_providers = addresses["environment"], addresses["environment"] | addresses["neoclouds"]
        passes = (
            ("clouds, with credentials", clouds, True),
            ("clouds, AWS by price files", clouds, False),
            ("all providers", all_providers, True),
        )
        for name, environment, keys in passes:
            runs = [_refresh(environment, with_aws_keys=keys) for _ in range(repeats)]
            wall, cpu, peak = (statistics.median(run[field] for run in runs) for field in ("wall", "cpu", "peak_mib"))
            print(f"{name:<28} {wall:>8.1f} {cpu:>7.1f} {peak:>9.0f} {runs[-1]['rows']:>8,}  {runs[-1]['exit']}")
            print(f"    {runs[-1]['line']}")
        servers.stdin.close()
    return 0


def _refresh(environment: dict[str, str], *, with_aws_keys: bool) -> dict[str, Any]:
    """One whole process on a fresh store: wall and CPU seconds, peak resident memory, offers afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        given = {
            name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "GPUPLAN_", "AZURE_"))
        }
        given |= environment | {
            "GPUPLAN_DATABASE_URL": f"sqlite:///{folder}/gpuplan.sqlite3",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        if with_aws_keys:
            given |= {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing-secret"}
        command = [str(Path(sys.executable).with_name("gpuplan")), "refresh", "--json"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        process = subprocess.Popen(command, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        peak_kib = _peak_kib(process)
        out, err = process.communicate()
        wall = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        line = json.loads(out)["summary"] if out else err[-300:]
        listed = subprocess.run(
            [command[0], "offers", "--format", "csv"], env=given, capture_output=True, text=True, check=True
        )
        return {
            "wall": wall,
            "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "peak_mib": peak_kib / 1024,
            "rows": len(listed.stdout.splitlines()) - 1,
            "exit": process.returncode,
            "line": line,
        }


def _peak_kib(process: "subprocess.Popen[str]") -> int:
    """The high-water mark of resident memory, read until the process ends; its output is small enough for the pipe to wait."""
    peak = 0
    status = Path(f"/proc/{process.pid}/status")
    with tempfile.TemporaryFile("w+"):
        while process.poll() is None:
            try:
                peak = max(
                    peak,
                    *(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")),
                    0,
                )
            except (OSError, IndexError):
                break
            time.sleep(0.05)
    return peak


def _serve() -> int:
    """The three clouds until standard input closes."""
    from tests.clouds.aws import AwsCloud
    from tests.clouds.azure import SUBSCRIPTION, azure_cloud
    from tests.clouds.gcp import GcpServer, gcp_catalogue
    from tools.benchmarks.neocloud_servers import neocloud_servers

    aws, azure, gcp = grown_aws(), list(grown_azure()), gcp_catalogue(sku_count=GCP_SKUS)
    with ExitStack() as stack:
        amazon = stack.enter_context(AwsCloud(aws, latency_seconds=LATENCY_SECONDS).running())
        microsoft = stack.enter_context(azure_cloud(offers=azure, latency_seconds=LATENCY_SECONDS).running())
        google = stack.enter_context(GcpServer(gcp, latency_seconds=LATENCY_SECONDS).running())
        environment = {
            "AWS_ENDPOINT_URL_EC2": amazon.url,
            "AWS_ENDPOINT_URL_PRICING": amazon.url,
            "AWS_ENDPOINT_URL_SAVINGSPLANS": amazon.url,
            "GPUPLAN_AWS_PRICE_FILES_URL": amazon.url,
            "GPUPLAN_AWS_SPOT_ADVISOR_URL": f"{amazon.url}/spot-advisor-data.json",
            "GPUPLAN_AZURE_RETAIL_ENDPOINT": microsoft.url,
            "GPUPLAN_AZURE_ARM_ENDPOINT": microsoft.url,
            "AZURE_SUBSCRIPTION_ID": SUBSCRIPTION,
            "GPUPLAN_GCP_COMPUTE_ENDPOINT": google.url,
            "GPUPLAN_GCP_BILLING_ENDPOINT": google.url,
            "GPUPLAN_GCP_TPU_ENDPOINT": google.url,
            "GPUPLAN_GCP_PROJECT": "project",
            "GPUPLAN_ANONYMOUS": "1",
        }
        prices = len(aws.offers) + len(azure) + len(gcp.offers)
        neoclouds = neocloud_servers(stack, LATENCY_SECONDS)
        print(json.dumps({"environment": environment, "neoclouds": neoclouds, "prices": prices}), flush=True)
        sys.stdin.read()
    return 0


def grown_aws() -> Snapshot:
    """Every AWS machine in 30 regions at all its price kinds, spot in three zones each."""
    from tests.clouds.aws_catalogue import aws_catalogue, zone_id

    whole = aws_catalogue()
    kinds: dict[str, dict[str, Offer]] = {}
    for offer in whole.offers:
        kinds.setdefault(offer.instance_type, {}).setdefault(offer.price_kind, offer)
    names = sorted(
        name
        for (provider, name), region in regions().items()
        if provider == "aws" and region.partition == "commercial" and not region.parent_region
    )
    offers = []
    for number, region in enumerate(names[-AWS_REGIONS:]):
        for at in kinds.values():
            for kind, offer in at.items():
                zones = [zone_id(region, zone + 1) for zone in range(SPOT_ZONES)] if offer.zone else [""]
                offers += [
                    _moved(offer, region, zone, number + i)
                    for i, zone in enumerate(zones)
                    if kind != "capacity_block" or not i
                ]
    return snapshot_of(whole.instance_types, offers)


def grown_azure() -> Iterator[Offer]:
    """The Azure rows, and in each of 60 regions every machine at all its price kinds."""
    from tests.clouds.azure import azure_offers

    by_region: dict[str, dict[tuple[str, str], Offer]] = {}
    every: dict[tuple[str, str], Offer] = {}
    for offer in azure_offers():
        machine = (offer.instance_type, offer.price_kind)
        by_region.setdefault(offer.region, {})[machine] = offer
        every.setdefault(machine, offer)
    added = [name for provider, name in sorted(regions()) if provider == "azure" and name not in by_region]
    for number, region in enumerate([*by_region, *added][:AZURE_REGIONS]):
        region_rows = by_region.get(region, {})
        yield from region_rows.values()
        for machine, offer in every.items():
            if machine not in region_rows:
                yield _moved(offer, region, "", number + 1)


def _moved(offer: Offer, region: str, zone: str, steps: int) -> Offer:
    return replace(
        offer, region=region, zone=zone, usd_micros_per_hour=round(offer.usd_micros_per_hour * (1 + STEP * steps))
    )


if __name__ == "__main__":
    sys.exit(main())
