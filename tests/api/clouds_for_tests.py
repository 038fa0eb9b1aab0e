"""Fake clouds as the composition root takes them, on addresses where nobody answers."""

from dataclasses import replace
from datetime import datetime

from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.cloud_registry import MakeCloud
from gpuplan.providers.contract import Provider, Rows
from tests.providers.fake_clouds import FakeCloud, machine, price, rows

NOBODY = "http://127.0.0.1:1"
NOWHERE = {"aws_price_files_url": NOBODY, "gcp_billing_endpoint": NOBODY, "azure_retail_endpoint": NOBODY}
SOURCES = Sources(aws_price_files_url=NOBODY, gcp_billing_endpoint=NOBODY, azure_retail_endpoint=NOBODY)


def making(cloud: FakeCloud) -> MakeCloud:
    """The cloud, whose offers are observed when it is said that they are."""

    def make(_: Sources, read_at: datetime) -> Provider:
        return DatedCloud(cloud, read_at)

    return make


class DatedCloud:
    """A fake cloud whose rows carry the time that it was made with."""

    def __init__(self, cloud: FakeCloud, read_at: datetime) -> None:
        self.cloud, self.read_at, self.name, self.parallel = cloud, read_at, cloud.name, cloud.parallel

    def regions(self) -> list[str]:
        return self.cloud.regions()

    def fetch(self, region: str) -> Rows:
        rows = self.cloud.fetch(region)
        return replace(rows, offers=tuple(replace(offer, observed_at=self.read_at) for offer in rows.offers))


def aws(**answers: Rows | Exception) -> FakeCloud:
    return FakeCloud(answers=answers or {"us-east-1": rows(price("us-east-1"))})


def gcp(failure: Exception | None = None) -> FakeCloud:
    kind = machine("a3-highgpu-8g", "gcp", accelerator="H100-80GB-SXM")
    offer = price("us-central1", "a3-highgpu-8g", 88_000_000, provider="gcp")
    answers = {"us-central1": Rows(instance_types=(kind,), offers=(offer,), whole_kinds=frozenset({"on_demand"}))}
    return FakeCloud(name="gcp", answers=answers, listing=failure)
