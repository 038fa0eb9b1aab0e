"""Each extra alone, installed from the wheel into an environment of its own and tried: python -m tools.benchmarks.extras [NAME ...]

Prints the seconds of the installation, the megabytes on disk, and what was tried. Exit code 1 if anything failed.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx

from tests.clouds.aws import ADVISOR_PATH, AwsCloud
from tests.clouds.aws_catalogue import aws_catalogue, smaller
from tests.clouds.azure import SUBSCRIPTION, azure_cloud, azure_offers
from tests.clouds.gcp import GcpServer
from tests.providers.gcp.reads import small_catalogue

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("", "aws", "azure", "gcp", "service", "slack", "mcp", "all")
#: Many processes start with a service.
LONGEST_START_SECONDS = 120.0
INITIALIZE = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    '"clientInfo":{"name":"bench","version":"0"}}}\n'
)


def built(folder: Path) -> Path:
    """The wheel of this checkout."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def installed(wheel: Path, extra: str, place: Path) -> Path:
    """An environment with gpuplan and one extra, at the locked versions."""
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(place)], check=True)
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    constraints = ["-c", str(ROOT / "requirements-all.txt")]
    subprocess.run(
        [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", place / "bin/python", *constraints, wanted],
        check=True,
    )
    return place / "bin/gpuplan"


def megabytes(place: Path) -> float:
    return sum(path.lstat().st_size for path in place.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


def run(
    gpuplan: Path, environment: Mapping[str, str], *arguments: str, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [gpuplan, *arguments], env=environment, input=given, capture_output=True, text=True, check=False, timeout=300
    )


def plans(gpuplan: Path, environment: Mapping[str, str]) -> bool:
    done = run(gpuplan, environment, "plan", str(ROOT / "examples/resnet-50.yaml"))
    return done.returncode == 0 and "Cheapest for" in done.stdout


def refreshes(cloud: str) -> Callable[[Path, Mapping[str, str]], bool]:
    """With credentials, against a local server that speaks the cloud's wire format."""

    def refreshed(gpuplan: Path, environment: Mapping[str, str]) -> bool:
        options = ("--provider", cloud, "--accept-loss", "--accept-jumps")
        done = run(gpuplan, environment, "refresh", *options)
        return done.returncode == 0 and done.stdout.splitlines()[-1].startswith("refresh: whole; ")

    return refreshed


def serves(gpuplan: Path, environment: Mapping[str, str]) -> bool:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    service = subprocess.Popen([gpuplan, "serve", "--port", str(port)], env=environment, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + LONGEST_START_SECONDS
        while time.monotonic() < until and service.poll() is None:
            with suppress(httpx.TransportError):
                return httpx.get(f"http://127.0.0.1:{port}/healthz").is_success
            time.sleep(0.2)
        return False
    finally:
        service.terminate()
        service.wait(30)


def serves_slack(gpuplan: Path, environment: Mapping[str, str]) -> bool:
    return serves(
        gpuplan, {**environment, "SLACK_BOT_TOKEN": "xoxb-1-a", "SLACK_SIGNING_SECRET": "0123456789abcdef" * 2}
    )


def answers_agents(gpuplan: Path, environment: Mapping[str, str]) -> bool:
    done = run(gpuplan, environment, "mcp", given=INITIALIZE)
    return '"serverInfo"' in done.stdout


TRIED: dict[str, tuple[Callable[[Path, Mapping[str, str]], bool], ...]] = {
    "": (plans,),
    "aws": (refreshes("aws"),),
    "azure": (refreshes("azure"),),
    "gcp": (refreshes("gcp"),),
    "service": (serves,),
    "slack": (serves_slack,),
    "mcp": (answers_agents,),
    "all": (plans, serves_slack, answers_agents, refreshes("aws,azure,gcp")),
}


def main() -> int:
    """Install and try every extra."""
    sold = smaller(aws_catalogue(), "us-east-1")
    rows = [offer for offer in azure_offers() if offer.region == "eastus"]
    aws, azure, gcp = AwsCloud(sold), azure_cloud(offers=rows), GcpServer(small_catalogue())
    failed = False
    with ExitStack() as running, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for cloud in (aws, azure, gcp):
            running.enter_context(cloud.running())
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "GPUPLAN_AWS_SPOT_ADVISOR_URL": aws.url + ADVISOR_PATH,
            "GPUPLAN_AWS_PRICE_FILES_URL": aws.url,
            "GPUPLAN_ANONYMOUS": "1",
            "GPUPLAN_GCP_PROJECT": gcp.project,
            "AZURE_SUBSCRIPTION_ID": SUBSCRIPTION,
            "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        environment |= {f"AWS_ENDPOINT_URL_{name}": aws.url for name in ("EC2", "PRICING", "SAVINGSPLANS")}
        environment |= {f"GPUPLAN_GCP_{name}_ENDPOINT": gcp.url for name in ("COMPUTE", "BILLING", "TPU")}
        environment |= {f"GPUPLAN_AZURE_{name}_ENDPOINT": azure.url for name in ("RETAIL", "ARM")}
        wheel = built(Path(folder, "wheel"))
        for extra in sys.argv[1:] or EXTRAS:
            place = Path(folder, extra or "base")
            began = time.monotonic()
            gpuplan = installed(wheel, extra, place)
            seconds = time.monotonic() - began
            url = {"GPUPLAN_DATABASE_URL": f"sqlite:///{folder}/{place.name}.sqlite3"}
            works = all(trial(gpuplan, {**environment, **url}) for trial in TRIED[extra])
            failed = failed or not works
            name = f"gpuplan[{extra}]" if extra else "gpuplan"
            print(
                f"{name:18} {seconds:6.1f} s {megabytes(place):7.0f} MB  {'works' if works else 'FAILED'}", flush=True
            )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
