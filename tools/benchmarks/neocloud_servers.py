"""The local servers of the neoclouds, grown where the number of calls depends on the size: Vast's hosts, Nebius' presets."""

from contextlib import ExitStack

from tests.clouds import hyperstack, lambda_cloud, nebius, runpod, scaleway, vast, verda
from tests.clouds.oci import Oracle
from tests.providers.price_lists.reading import Cloud

#: Hosts of the market, over cards and countries.
VAST_HOSTS = 3_000
#: The regions of Nebius, and the platforms and presets of each: about a hundred prices.
NEBIUS_REGIONS = ("eu-north1", "eu-north2", "eu-west1", "me-west1", "uk-south1", "us-central1")
NEBIUS_PLATFORMS = {"gpu-h100-sxm": 80, "gpu-h200-sxm": 141, "gpu-b200-sxm": 180, "gpu-b300-sxm": 288}
#: Dollars per GPU-hour of the hosts; the list prices of the cards differ little more.
USD, USD_STEPS = 1.5, 500


def neocloud_servers(stack: ExitStack, latency_seconds: float) -> dict[str, str]:
    """Servers that answer after `latency_seconds` until `stack` closes: the environment of a refresh that reads them."""
    environment = {
        "LAMBDA_API_KEY": lambda_cloud.KEY,
        "RUNPOD_API_KEY": runpod.KEY,
        "VERDA_CLIENT_ID": verda.CLIENT_ID,
        "VERDA_CLIENT_SECRET": verda.SECRET,
        "HYPERSTACK_API_KEY": hyperstack.KEY,
        "SCW_SECRET_KEY": scaleway.KEY,
        "VAST_API_KEY": vast.KEY,
        "NEBIUS_IAM_TOKEN": nebius.TOKEN,
    }
    clouds: dict[str, Cloud] = {
        "LAMBDA": lambda_cloud.Lambda(),
        "RUNPOD": runpod.RunPod(),
        "VERDA": verda.Verda(),
        "HYPERSTACK": hyperstack.Hyperstack(),
        "SCALEWAY": scaleway.Scaleway(),
        "VAST": vast.Vast(offers=_hosts()),
        "OCI": Oracle(),
    }
    for name, cloud in clouds.items():
        server = cloud.server()
        server.latency_seconds = latency_seconds
        environment[f"GPUPLAN_{name}_ENDPOINT"] = stack.enter_context(server.running()).url
    grown = nebius.Nebius(
        projects={f"p-{region}": region for region in NEBIUS_REGIONS},
        platforms={f"p-{region}": _platforms() for region in NEBIUS_REGIONS},
        page=999,
        latency_seconds=latency_seconds,
    )
    environment["GPUPLAN_NEBIUS_ENDPOINT"] = stack.enter_context(grown.running())
    environment["GPUPLAN_ECB_RATES_URL"] = f"{environment['GPUPLAN_SCALEWAY_ENDPOINT']}/ecb.xml"
    environment["GPUPLAN_OCI_SHAPES_URL"] = f"{environment['GPUPLAN_OCI_ENDPOINT']}/shapes.json"
    return environment


def _hosts() -> list[dict[str, object]]:
    cards = (("H100 SXM", 8, 81559), ("A100 SXM4", 8, 81920), ("RTX 4090", 1, 24564), ("L40S", 4, 46068))
    places = ("Iceland, IS", "Sweden, SE", "Texas, US", "Japan, JP", None)
    return [
        vast.offer(number, gpu, gpus, gpus * (USD + number % USD_STEPS / 1000), places[number % 5], gpu_ram=mib)
        for number in range(VAST_HOSTS)
        for gpu, gpus, mib in (cards[number // 5 % 4],)
    ]


def _platforms() -> list[dict[str, object]]:
    presets = [nebius.preset("1gpu-16vcpu-200gb", 1), nebius.preset("8gpu-128vcpu-1600gb", 8, joins=True)]
    return [nebius.platform(name, gb, presets=presets) for name, gb in NEBIUS_PLATFORMS.items()]
