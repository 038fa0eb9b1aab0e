"""RunPod, REST v2: a price per GPU for each cloud, the largest machine, and stock per size and data centre.

The flags `secure` and `community` say where a GPU is offered. A price of 0 or of the placeholder 0.5 without its flag means
nothing. The price of a pod is that of one GPU times their number. Stock depends on the number of GPUs, so each size is
asked for. The community cloud is a marketplace of third-party hosts (`catalog/data/markets.csv`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gpuplan.providers.cloud_endpoints import Sources, rest_account
from gpuplan.providers.contract import Provider
from gpuplan.providers.price_lists.field_reading import (
    accelerator_names,
    documented,
    mapping,
    number,
    read_each,
    sequence,
    stated,
    text,
    whole,
    word,
    yes_no,
)
from gpuplan.providers.price_lists.list_provider import ListProvider
from gpuplan.providers.price_lists.listed_machines import ListedMachine, Listing, StockLevel, stock_note
from gpuplan.providers.price_lists.rest_client import RestClient

NAME = "runpod"
GPUS, DATA_CENTERS = "/v2/catalog/gpus", "/v2/catalog/datacenters"
#: No rate is documented; answers carry RateLimit headers and 429 says how long to wait.
CALLS_PER_SECOND = 4
#: Whether a level of stock can be rented.
IN_STOCK = {"NONE": False, "LOW": True, "MEDIUM": True, "HIGH": True}
#: A GPU that exists in the list without being one.
NO_GPU = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSize:
    """One call of the list: a cloud and a number of GPUs. `suffix` ends the names of its machines."""

    cloud: str
    count: int
    suffix: str = ""

    @property
    def params(self) -> dict[str, str]:
        """The query; `include` needs `product`."""
        return {"include": "AVAILABILITY", "product": "POD", "cloud": self.cloud.upper(), "count": str(self.count)}


#: Sizes of the secure cloud as its console offers them; of community machines only one GPU, because hosts differ.
POD_SIZES = (
    *(PodSize(cloud="secure", count=count) for count in (1, 2, 4, 8)),
    PodSize(cloud="community", count=1, suffix=" community"),
)


def provider(sources: Sources, *, read_at: datetime) -> Provider:
    """RunPod through `sources`, every offer observed at `read_at`."""
    account = rest_account(sources, NAME)
    client = RestClient(account, calls_per_second=CALLS_PER_SECOND, paced=sources.paced)
    return ListProvider(
        name=NAME,
        read=lambda: listing(client.get(DATA_CENTERS), {size: client.get(GPUS, **size.params) for size in POD_SIZES}),
        read_at=read_at,
        source=f"{account.endpoint.rstrip('/')}{GPUS}",
        network_gbps=None,
    )


def listing(data_centers: dict[str, Any], answers: Mapping[PodSize, dict[str, Any]]) -> Listing:
    """All answers as one list. Raises `ProviderFailure` with the field if a shape has changed."""
    with documented(NAME, f"{GPUS} or {DATA_CENTERS}"):
        places = {text(row, "id") for row in sequence(data_centers, "dataCenters")}
        entries = [(size, row) for size, answer in answers.items() for row in sequence(answer, "gpus")]
    named = ((f"{stated(row, 'id')} x{size.count}{size.suffix}", (size, row)) for size, row in entries)
    machines, unread = read_each(named, _machine)
    places |= {region for machine in machines for region in machine.regions_in_stock}
    return Listing(
        regions=tuple(sorted(places)),
        machines=machines,
        quarantined=unread,
        notes=stock_note(machines),
    )


def _machine(entry: tuple[PodSize, Any]) -> Iterator[ListedMachine]:
    """One GPU in one size; nothing where it is not offered so. Raises `WrongField`."""
    size, row = entry
    gpu, cloud, count = text(row, "id"), size.cloud, size.count
    if gpu == NO_GPU or not yes_no(row, cloud) or whole(mapping(row, "maxCount"), cloud) < count:
        return
    in_stock = word(row, "availability", IN_STOCK)
    centers = sequence(row, "dataCenters") if "dataCenters" in row else []
    in_center = {text(center, "id"): word(center, "availability", IN_STOCK) for center in centers}
    yield ListedMachine(
        name=f"{gpu} x{count}{size.suffix}",
        accelerator=accelerator_names(__name__).get(gpu, gpu),
        devices=count,
        usd_per_hour=number(mapping(row, "price"), cloud) * count,
        regions_in_stock=tuple(region for region, is_there in in_center.items() if is_there),
        in_stock=in_stock,
        levels=tuple(StockLevel(region=center["id"], word=center["availability"]) for center in centers),
    )
