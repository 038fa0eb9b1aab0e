"""The set-up examined: each fault is one finding that says what to do, and nothing is written or shown that must not be."""

import json
import os
import re
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.observability.doctor import machine
from gpuplan.api.observability.doctor.configuration import known
from gpuplan.catalog.store.store import Store
from tests.api.security.issuer_for_tests import issuing
from tests.clouds.aws import ADVISOR_PATH, AwsCloud
from tests.clouds.aws_catalogue import aws_catalogue, smaller
from tests.clouds.azure import SUBSCRIPTION, azure_cloud
from tests.clouds.gcp import GcpServer, gcp_catalogue
from tests.clouds.server import CloudServer, Reply, answering
from tests.ports import free_port

pytestmark = pytest.mark.slow(reason="asks every cloud")

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
FOREIGN = ("GPUPLAN_", "AWS_", "AZURE_", "GOOGLE_", "CLOUDSDK_", "OTEL_", "PROMETHEUS_", "HTTPS_PROXY", "https_proxy")

Doctor = Callable[..., tuple[int, dict[str, dict[str, Any]], str]]


@pytest.fixture
def doctor(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database_url: str) -> Doctor:
    """Examine with nothing but these variables set: the code, the findings by name, and all that was printed."""

    def examine(*options: str, **variables: str) -> tuple[int, dict[str, dict[str, Any]], str]:
        for name in os.environ:
            if name.startswith(FOREIGN):
                monkeypatch.delenv(name)
        monkeypatch.setenv("HOME", str(tmp_path))
        for name, value in ({"GPUPLAN_DATABASE_URL": database_url} | variables).items():
            monkeypatch.setenv(name, value)
        ended = run("doctor", "--port", str(free_port()), "--json", *options)
        answer = json.loads(ended.out)
        assert (ended.code == 3) == (answer["outcome"] == "broken"), ended.out
        return ended.code, {finding["name"]: finding for finding in answer["findings"]}, ended.out + ended.err

    return examine


def test_a_sound_set_up_is_fine_though_it_lacks_credentials(doctor: Doctor, gpuplan: Any) -> None:
    gpuplan.store.ping()
    code, findings, _ = doctor()
    assert code == 0
    assert {findings[name]["status"] for name in ("libraries", "solver", "database", "settings", "port", "access")} == {
        "ok"
    }
    assert "writable" in findings["database"]["found"]
    assert findings["credentials of gcp"]["status"] == "warning"
    assert "prices of aws" in findings
    assert all(finding["advice"] for finding in findings.values() if finding["status"] != "ok")


def test_people_read_what_to_do_below_what_was_found(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUPLAN_LOG_FORMAT", "xml")
    ended = run("doctor")
    assert ended.code == 3
    assert "BROKEN   telemetry: GPUPLAN_LOG_FORMAT: 'xml' cannot be used; accepted: json, text, auto" in ended.out
    assert "\n         -> correct GPUPLAN_LOG_FORMAT\n" in ended.out
    assert ended.out.endswith("something is broken\n")


def test_examining_makes_and_writes_nothing(doctor: Doctor, tmp_path: Path) -> None:
    path = tmp_path / "none.sqlite3"
    code, findings, _ = doctor(GPUPLAN_DATABASE_URL=f"sqlite:///{path}")
    assert code == 0
    assert "no database yet" in findings["database"]["found"]
    assert not path.exists()
    store = Store.open(f"sqlite:///{path}")
    store.close()
    before = path.read_bytes()
    doctor(GPUPLAN_DATABASE_URL=f"sqlite:///{path}")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("variables", "name", "message"),
    [
        ({"GPUPLAN_DATABASE_URL": "mysql://root:hunter2@host/x"}, "database", "not supported"),
        ({"GPUPLAN_DATABASE_URL": "postgresql://u:hunter2@127.0.0.1:1/x"}, "database", "127.0.0.1"),
        ({"GPUPLAN_SETTINGS": "/nowhere/settings.yaml"}, "settings", "cannot read"),
        ({"GPUPLAN_INVENTORY": "/nowhere/machines.yaml"}, "settings", "cannot read"),
        ({"GPUPLAN_GCP_BILLING_ENDPOINT": "ftp://u:hunter2@host"}, "sources", "is not a web address"),
        ({"GPUPLAN_OTEL": "perhaps"}, "telemetry", "accepted: 1"),
        ({"GPUPLAN_STALE_AFTER_HOURS": "-1"}, "telemetry", "hours"),
        ({"GPUPLAN_ADMIN_KEY": "hunter2"}, "access", "GPUPLAN_ADMIN_KEY"),
        ({"GPUPLAN_OIDC_ISSUER": "https://id.example"}, "access", "GPUPLAN_OIDC_AUDIENCE"),
        ({"GPUPLAN_SLACK_SIGNING_SECRET": "hunter2"}, "slack", "GPUPLAN_SLACK_"),
        ({"GPUPLAN_MOST_SECONDS_PER_PLAN": "nan"}, "limits", "GPUPLAN_MOST_SECONDS_PER_PLAN"),
        ({"GPUPLAN_REFRESH_CRON": "61 * * * *"}, "schedule", "GPUPLAN_REFRESH_CRON"),
        ({"GPUPLAN_GCP_API_KEY_FILE": "/nowhere/key"}, "environment", "cannot read"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://u:hunter2@host:99999"}, "telemetry", "is not a web address"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, "telemetry", "positive"),
        ({"PROMETHEUS_MULTIPROC_DIR": "/nowhere"}, "telemetry", "PROMETHEUS_MULTIPROC_DIR"),
        ({"HTTPS_PROXY": "nonsense://u:hunter2@host"}, "network", "HTTPS_PROXY"),
        ({"GOOGLE_APPLICATION_CREDENTIALS": "/nowhere"}, "credentials of gcp", "GOOGLE_APPLICATION_CREDENTIALS"),
    ],
)
def test_what_is_wrong_is_named_without_its_secrets(
    doctor: Doctor, variables: dict[str, str], name: str, message: str
) -> None:
    code, findings, text = doctor(**variables)
    assert code == 3
    assert findings[name]["status"] == "broken"
    assert message in findings[name]["found"] + findings[name]["advice"]
    assert "hunter2" not in text


@pytest.mark.parametrize(("revision", "status"), [("0001", "warning"), ("9999", "broken")])
def test_a_database_of_another_release_is_told(doctor: Doctor, tmp_path: Path, revision: str, status: str) -> None:
    path = tmp_path / "other.sqlite3"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE alembic_version (version_num TEXT)")
        database.execute("INSERT INTO alembic_version VALUES (?)", (revision,))
        database.commit()
    _, findings, _ = doctor(GPUPLAN_DATABASE_URL=f"sqlite:///{path}")
    assert findings["database"]["status"] == status
    assert revision in findings["database"]["found"]


def test_credentials_are_found_by_name_and_never_shown(doctor: Doctor, tmp_path: Path) -> None:
    adc = tmp_path / ".config" / "gcloud"
    adc.mkdir(parents=True)
    (adc / "application_default_credentials.json").write_text(SECRET)
    _, findings, text = doctor(AWS_ACCESS_KEY_ID="AKIAIOSFODNN7EXAMPLE", AWS_SECRET_ACCESS_KEY=SECRET)
    assert findings["credentials of aws"]["status"] == findings["credentials of gcp"]["status"] == "ok"
    assert "AWS_SECRET_ACCESS_KEY" in findings["credentials of aws"]["found"]
    assert "application_default_credentials.json" in findings["credentials of gcp"]["found"]
    assert SECRET not in text
    assert "AKIA" not in text


def test_a_full_disk_and_a_taken_port_are_told(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_FULL_BYTES", 2**62)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, findings, _ = doctor("--port", str(taken.getsockname()[1]))
    assert code == 3
    assert findings["room for temporary files"]["status"] == "broken"
    assert findings["port"]["status"] == "warning"


@pytest.fixture(scope="module")
def clouds() -> Iterator[tuple[CloudServer, dict[str, str]]]:
    """AWS, Azure and GCP on this machine, and the variables that lead there."""
    aws, azure, gcp = (
        AwsCloud(smaller(aws_catalogue(), "us-east-1")),
        azure_cloud(offers=[]),
        GcpServer(gcp_catalogue()),
    )
    with ExitStack() as running:
        for cloud in (aws, azure, gcp):
            running.enter_context(cloud.running())
        yield (
            azure,
            {
                "AWS_ENDPOINT_URL_EC2": aws.url,
                "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
                "AWS_SECRET_ACCESS_KEY": SECRET,
                "GPUPLAN_AWS_SPOT_ADVISOR_URL": aws.url + ADVISOR_PATH,
                "GPUPLAN_AWS_PRICE_FILES_URL": aws.url,
                "GPUPLAN_GCP_COMPUTE_ENDPOINT": gcp.url,
                "GPUPLAN_GCP_BILLING_ENDPOINT": gcp.url,
                "GPUPLAN_GCP_PROJECT": gcp.project,
                "GPUPLAN_AZURE_RETAIL_ENDPOINT": azure.url,
                "AZURE_SUBSCRIPTION_ID": SUBSCRIPTION,
                "GPUPLAN_ANONYMOUS": "1",
            },
        )


def test_clouds_are_asked_when_wished(doctor: Doctor, clouds: tuple[CloudServer, dict[str, str]]) -> None:
    _, findings, text = doctor("--online", **clouds[1])
    for cloud in ("aws", "azure", "gcp"):
        assert findings[f"price server of {cloud}"]["status"] == "ok", findings
        assert findings[f"account at {cloud}"]["status"] == "ok", findings
    assert "regions (credentials by env)" in findings["account at aws"]["found"]
    assert SECRET not in text


def test_a_cloud_that_is_away_and_a_wrong_clock_are_told(
    doctor: Doctor, clouds: tuple[CloudServer, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = datetime.now(UTC) + timedelta(hours=2)
    monkeypatch.setattr(
        "gpuplan.api.observability.doctor.cloud_credentials.server_time",
        lambda urls: (wrong, "https://clock.example") if "1" in urls[0] else None,
    )
    code, findings, _ = doctor("--online", **clouds[1] | {"GPUPLAN_AWS_PRICE_FILES_URL": "http://localhost:9"})
    assert code == 3
    assert "does not answer" in findings["price server of aws"]["found"]
    assert "off by -120.0 minutes" in findings["price server of azure"]["found"]


def test_a_schedule_that_no_worker_can_keep_is_said(doctor: Doctor) -> None:
    _, findings, _ = doctor(GPUPLAN_REFRESH_CRON="17 3 * * *")
    assert (findings["schedule"]["status"], "gpuplan refresh" in findings["schedule"]["advice"]) == ("warning", True)


def test_whether_plans_ask_the_clouds_is_said(doctor: Doctor) -> None:
    assert "GPUPLAN_LIVE" in doctor(GPUPLAN_LIVE="yes")[1]["sources"]["found"]
    code, findings, _ = doctor(GPUPLAN_LIVE="perhaps")
    assert (code, findings["sources"]["status"]) == (3, "broken")
    assert "is neither yes nor no" in findings["sources"]["found"]


def test_a_misspelt_variable_is_named_with_the_one_that_was_meant(doctor: Doctor) -> None:
    code, findings, _ = doctor(GPUPLAN_DATABSE_URL="sqlite:///secret.db")
    assert code == 0
    assert findings["variables"]["status"] == "warning"
    assert "GPUPLAN_DATABSE_URL" in findings["variables"]["found"]
    assert "GPUPLAN_DATABASE_URL" in findings["variables"]["advice"]
    assert "secret.db" not in json.dumps(findings["variables"])


def test_every_variable_that_the_docs_name_is_known() -> None:
    docs = Path(__file__).parents[4] / "docs"
    named = {page: set(re.findall(r"\bGPUPLAN_[A-Z_]*[A-Z]\b", page.read_text())) for page in docs.rglob("*.md")}
    handed_to_jobs = named.pop(docs / "exports.md")
    settings = set().union(*named.values()) - handed_to_jobs
    assert len(settings) > 40
    assert settings - known() == set()


def test_variables_that_channels_name_are_read(doctor: Doctor, tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("channels: [{name: team, kind: slack, url_from: GPUPLAN_TEAM_WEBHOOK}]")
    variables = {"GPUPLAN_SETTINGS": str(settings), "GPUPLAN_TEAM_WEBHOOK": "https://hooks.slack.com/services/x"}
    assert doctor(**variables)[1]["variables"]["status"] == "ok"


def test_a_yaml_library_that_is_slow_is_told(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor()[1]["yaml"]["status"] == "ok"
    monkeypatch.setattr("yaml.__with_libyaml__", False)
    code, findings, _ = doctor()
    assert (code, findings["yaml"]["status"]) == (0, "warning")
    assert "PyYAML" in findings["yaml"]["advice"]


@pytest.mark.parametrize(
    ("change", "message"), [(None, ""), (answering(401, b"hunter2"), "code: 401"), (answering(404, b""), "code: 404")]
)
def test_a_collector_is_asked_whether_it_takes_traces(
    doctor: Doctor, change: Callable[[Reply], Reply] | None, message: str
) -> None:
    collector = CloudServer(lambda _: Reply(content_type="application/x-protobuf"))
    if change is not None:
        collector.break_with(change)
    with collector.running():
        code, findings, text = doctor(OTEL_EXPORTER_OTLP_ENDPOINT=f"{collector.url}/hunter2")
    assert (code, findings["traces"]["status"]) == (0, "ok" if change is None else "warning")
    assert message in findings["traces"]["found"]
    assert collector.requests[0].path == "/hunter2/v1/traces"
    assert "hunter2" not in text


def test_a_collector_that_is_away_is_told_by_what_the_system_says(doctor: Doctor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    code, findings, text = doctor(OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}/hunter2")
    assert (code, findings["traces"]["status"]) == (0, "warning")
    assert "Connection refused" in findings["traces"]["found"]
    assert "hunter2" not in text


def test_a_proxy_that_nobody_would_believe_is_told(doctor: Doctor) -> None:
    assert "proxy before the service" not in doctor(FORWARDED_ALLOW_IPS="10.0.0.0/8, ::1")[1]
    finding = doctor(FORWARDED_ALLOW_IPS="10.0.0.1/8,::1")[1]["proxy before the service"]
    assert (finding["status"], "10.0.0.1/8 is no" in finding["found"]) == ("warning", True)
    assert "proxy before the service" not in doctor(FORWARDED_ALLOW_IPS="*")[1]
    assert "* is not an address" in doctor(FORWARDED_ALLOW_IPS="10.0.0.0/8, *")[1]["proxy before the service"]["found"]


def test_an_issuer_is_asked_for_its_keys(doctor: Doctor, clouds: tuple[CloudServer, dict[str, str]]) -> None:
    with issuing() as issuer:
        variables = {"GPUPLAN_OIDC_ISSUER": issuer.url, "GPUPLAN_OIDC_AUDIENCE": "gpuplan"}
        assert doctor("--online", **clouds[1] | variables)[1]["issuer"]["status"] == "ok"
    code, findings, _ = doctor("--online", **clouds[1] | variables)
    assert (code, findings["issuer"]["status"]) == (3, "broken")


def test_an_address_of_aws_that_is_none_is_a_finding(
    doctor: Doctor, clouds: tuple[CloudServer, dict[str, str]]
) -> None:
    findings = doctor("--online", **clouds[1] | {"AWS_ENDPOINT_URL_EC2": "nonsense"})[1]
    assert "Invalid endpoint" in findings["account at aws"]["found"]
