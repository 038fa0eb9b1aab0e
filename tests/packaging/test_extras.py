"""The base install plans offline and refreshes public prices; whatever needs an extra names it in one line."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from contextlib import ExitStack
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from gpuplan.catalog.runtime.extras import MODULES_OF
from gpuplan.catalog.store.store import Store
from tests.clouds.aws import ADVISOR_PATH, AwsCloud
from tests.clouds.aws_catalogue import aws_catalogue, smaller
from tests.clouds.azure import azure_cloud, azure_offers
from tests.clouds.gcp import GcpServer
from tests.packaging.base_install import ROOT, locked, normalized, outside_the_base
from tests.providers.gcp.reads import small_catalogue

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
#: Modules that an extra's library needs and gpuplan imports too, without declaring their distribution.
OF_ANOTHER_LIBRARY = {
    "anyio": "httpx",
    "azure": "azure-mgmt-compute",
    "botocore": "boto3",
    "croniter": "procrastinate",
    "google": "google-cloud-compute",
    "mcp_types": "mcp",
    "pydantic_core": "pydantic",
    "requests": "google-cloud-compute",
    "slack_sdk": "slack-bolt",
    "starlette": "fastapi",
}
Base = Callable[..., subprocess.CompletedProcess[str]]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=~!;, ]", requirement)[0] for requirement in requirements}


#: Modules that every file may import.
EVERYWHERE = sys.stdlib_module_names | {"gpuplan", "gpuplan_counter", "torch", "pandas", "polars"}
#: A line that may import another; one of a docstring looks the same.
OTHERS = re.compile(rf"^\s*(?:import|from)\s+(?!(?:{'|'.join(map(re.escape, EVERYWHERE))})\b)\w", re.MULTILINE)


def imported() -> dict[str, set[str]]:
    """Every top-level module that is imported beside `EVERYWHERE`, with the files that import it."""
    result: dict[str, set[str]] = {}
    for path in (
        path for package in ("catalog", "providers", "planner", "api") for path in (ROOT / package).rglob("*.py")
    ):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if OTHERS.search(text) else ():
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level and node.module:
                modules = [node.module]
            for name in modules:
                result.setdefault(name.partition(".")[0], set()).add(path.relative_to(ROOT).as_posix())
    return result


def test_every_library_that_is_imported_is_declared_in_the_base_or_in_the_extra_that_names_it() -> None:
    distributions = packages_distributions()
    base, outside = names(PROJECT["dependencies"]), set[str]()
    uses = imported()
    for module in sorted(uses):
        if module in EVERYWHERE:
            continue
        declared = {OF_ANOTHER_LIBRARY.get(module, "")} | {normalized(name) for name in distributions.get(module, ())}
        if declared & base:
            continue
        outside.add(module)
        extras = [extra for extra, modules in MODULES_OF.items() if module in modules]
        assert extras, f"{module} is imported by {sorted(uses[module])[:3]} and declared nowhere"
        assert declared & names(EXTRAS[extras[0]]), module
    assert outside == {module for modules in MODULES_OF.values() for module in modules}


def test_all_holds_every_extra_for_users() -> None:
    [entry] = EXTRAS["all"]
    assert set(entry.removeprefix("gpuplan[").removesuffix("]").split(",")) == set(EXTRAS) - {"all", "dev"}
    assert "gpuplan[all]" in EXTRAS["dev"]
    assert {"boto3", "google-cloud-compute", "azure-mgmt-compute", "fastapi"} <= set(locked("requirements-all.txt"))


def test_the_locks_hold_one_another_at_the_same_versions_and_name_no_index() -> None:
    base, everything, dev = (locked(f"requirements{name}.txt") for name in ("", "-all", "-dev"))
    assert base.items() < everything.items() < dev.items()
    assert names(PROJECT["dependencies"]) <= set(base)
    for name in ("", "-all", "-dev", "-build"):
        text = (ROOT / f"requirements{name}.txt").read_text(encoding="utf-8")
        assert "://" not in text
        assert "index" not in text


@pytest.mark.parametrize(
    ("file", "lock"), [("Dockerfile", "-r requirements-all.txt"), ("Makefile", "-r requirements-dev.txt")]
)
def test_the_image_and_the_tests_have_every_extra(file: str, lock: str) -> None:
    assert lock in (ROOT / file).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def missing() -> str:
    return ",".join(sorted(outside_the_base()))


@pytest.fixture
def base(tmp_path: Path, missing: str) -> Base:
    """Runs a command as in a base install, with these variables."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        url = f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}"
        usual = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GPUPLAN_DATABASE_URL": url, "COLUMNS": "200"}
        return subprocess.run(
            [sys.executable, "-m", "tests.packaging.base_install", missing, *arguments],
            cwd=ROOT,
            env=usual | variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    return run


@pytest.mark.slow(reason="starts a process")
def test_a_base_install_plans(base: Base) -> None:
    done = base("plan", "examples/resnet-50.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Cheapest for" in done.stdout


@pytest.mark.slow(reason="starts a process")
@pytest.mark.parametrize(
    ("commands", "variables", "needed"),
    [
        (
            "serve --port 0 then worker then mcp then refresh --metrics-file x.prom",
            {},
            [
                ("serve needs fastapi", "service"),
                ("worker needs procrastinate", "service"),
                ("mcp needs mcp", "mcp"),
                ("--metrics-file needs prometheus_client", "service"),
            ],
        ),
        (
            "offers",
            {"GPUPLAN_DATABASE_URL": "postgresql://u:p@127.0.0.1:1/x"},
            [("PostgreSQL needs psycopg", "service")],
        ),
    ],
    ids=["of commands", "of the store"],
)
def test_a_command_that_needs_an_extra_names_it_in_one_line(
    base: Base, commands: str, variables: dict[str, str], needed: list[tuple[str, str]]
) -> None:
    done = base(*commands.split(), **variables)
    assert (done.returncode, done.stdout) == (2, "")
    for line, (what, extra) in zip(done.stderr.splitlines(), needed, strict=True):
        assert line.endswith(f"{what}: pip install 'gpuplan[{extra}]' (in a checkout: make extras)")


@pytest.mark.slow(reason="starts a process")
def test_every_command_is_listed_and_the_diagnosis_runs(base: Base) -> None:
    done = base(*["--help", "then", "doctor", "--json"], GPUPLAN_REFRESH_CRON="0 3 * * *")
    listed, _, diagnosis = done.stdout.partition("\n{")
    assert all(f"  {name} " in listed for name in ("plan", "serve", "mcp", "worker", "slack", "refresh", "doctor"))
    findings = {finding["name"]: finding for finding in json.loads("{" + diagnosis)["findings"]}
    assert done.returncode == 0, done.stdout
    assert "not installed: aws, azure, gcp, mcp, nebius, service, slack, nvidia" in findings["extras"]["found"]
    assert findings["schedule"]["advice"] == "pip install 'gpuplan[service]' (in a checkout: make extras)"


@pytest.mark.slow(reason="a refresh of three clouds")
def test_a_base_install_refreshes_public_prices_and_says_what_extras_would_add(base: Base, tmp_path: Path) -> None:
    held = smaller(aws_catalogue(), "us-east-1")
    azure_rows = [row for row in azure_offers() if row.region == "eastus"]
    aws, azure, gcp = (
        AwsCloud(held),
        azure_cloud(offers=azure_rows),
        GcpServer(small_catalogue(), api_key="a-key-of-gcp"),
    )
    with ExitStack() as running:
        for server in (aws, azure, gcp):
            running.enter_context(server.running())
        done = base(
            "refresh",
            "--json",
            "--accept-loss",
            "--accept-jumps",
            GPUPLAN_AWS_SPOT_ADVISOR_URL=aws.url + ADVISOR_PATH,
            GPUPLAN_AWS_PRICE_FILES_URL=aws.url,
            GPUPLAN_AZURE_RETAIL_ENDPOINT=azure.url,
            GPUPLAN_AZURE_ARM_ENDPOINT=azure.url,
            AZURE_SUBSCRIPTION_ID="a-subscription",
            AWS_ACCESS_KEY_ID="AKIAIOSFODNN7EXAMPLE",
            AWS_SECRET_ACCESS_KEY="wJalrXUtnFEMI",
            GPUPLAN_GCP_BILLING_ENDPOINT=gcp.url,
            GPUPLAN_GCP_API_KEY="a-key-of-gcp",
            GPUPLAN_ANONYMOUS="1",
        )
    assert "Traceback" not in done.stderr
    report = json.loads(done.stdout)
    for cloud, module in (("aws", "boto3"), ("azure", "azure"), ("gcp", "google")):
        assert re.search(rf"needs? {module}[a-z.]*: pip install 'gpuplan\[{cloud}\]'", done.stdout)
    store = Store.open(f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}")
    rows = store.snapshot(store.current_snapshot_id()).offers
    store.close()
    fresh = {row.provider for row in rows if f"{row.observed_at:%Y-%m}" == report["finished_at"][:7]}
    assert fresh == {"aws", "azure", "gcp"}
