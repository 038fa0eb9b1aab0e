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

from api.doctor import machine
from api.doctor.variables import known
from catalog.store import Store
from tests.api.identity.issuer_for_tests import issuing
from tests.clouds.aws import ADVISOR_PATH, AwsCloud
from tests.clouds.aws_catalogue import aws_catalogue, smaller
from tests.clouds.azure import SUBSCRIPTION, azure_cloud
from tests.clouds.gcp import GcpServer, gcp_catalogue
from tests.clouds.server import CloudServer, Reply, answering
from tests.ports import free_port

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
        return ended.code, {each["name"]: each for each in answer["findings"]}, ended.out + ended.err

    return examine


def test_a_sound_set_up_is_fine_though_it_lacks_credentials(doctor: Doctor, gpuplan: Any) -> None:
    gpuplan.store.ping()
    code, found, _ = doctor()
    assert code == 0
    assert {found[name]["status"] for name in ("libraries", "solver", "database", "settings", "port", "access")} == {
        "ok"
    }
    assert "writable" in found["database"]["found"]
    assert found["credentials of gcp"]["status"] == "warning"
    assert "prices of aws" in found
    assert all(each["advice"] for each in found.values() if each["status"] != "ok")


def test_people_read_what_to_do_below_what_was_found(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUPLAN_LOG_FORMAT", "xml")
    ended = run("doctor")
    assert ended.code == 3
    assert "BROKEN   telemetry: GPUPLAN_LOG_FORMAT: 'xml' cannot be used; accepted: json, text, auto" in ended.out
    assert "\n         -> correct GPUPLAN_LOG_FORMAT\n" in ended.out
    assert ended.out.endswith("something is broken\n")


def test_examining_makes_and_writes_nothing(doctor: Doctor, tmp_path: Path) -> None:
    path = tmp_path / "none.sqlite3"
    code, found, _ = doctor(GPUPLAN_DATABASE_URL=f"sqlite:///{path}")
    assert code == 0
    assert "no database yet" in found["database"]["found"]
    assert not path.exists()
    store = Store.open(f"sqlite:///{path}")
    store.close()
    before = path.read_bytes()
    doctor(GPUPLAN_DATABASE_URL=f"sqlite:///{path}")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("variables", "name", "said"),
    [
        ({"GPUPLAN_DATABASE_URL": "mysql://root:hunter2@host/x"}, "database", "not supported"),
        ({"GPUPLAN_DATABASE_URL": "postgresql://u:hunter2@127.0.0.1:1/x"}, "database", "127.0.0.1"),
        ({"GPUPLAN_SETTINGS": "/nowhere/settings.yaml"}, "settings", "cannot read"),
        ({"GPUPLAN_INVENTORY": "/nowhere/machines.yaml"}, "settings", "cannot read"),
        ({"GPUPLAN_GCP_BILLING_ENDPOINT": "ftp://u:hunter2@host"}, "sources", "is no web address"),
        ({"GPUPLAN_OTEL": "perhaps"}, "telemetry", "accepted: 1"),
        ({"GPUPLAN_STALE_AFTER_HOURS": "-1"}, "telemetry", "hours"),
        ({"GPUPLAN_ADMIN_KEY": "hunter2"}, "access", "GPUPLAN_ADMIN_KEY"),
        ({"GPUPLAN_OIDC_ISSUER": "https://id.example"}, "access", "GPUPLAN_OIDC_AUDIENCE"),
        ({"GPUPLAN_SLACK_SIGNING_SECRET": "hunter2"}, "slack", "GPUPLAN_SLACK_"),
        ({"GPUPLAN_MOST_SECONDS_PER_PLAN": "nan"}, "limits", "GPUPLAN_MOST_SECONDS_PER_PLAN"),
        ({"GPUPLAN_REFRESH_CRON": "61 * * * *"}, "schedule", "GPUPLAN_REFRESH_CRON"),
        ({"GPUPLAN_GCP_API_KEY_FILE": "/nowhere/key"}, "environment", "cannot read"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://u:hunter2@host:99999"}, "telemetry", "is no web address"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, "telemetry", "positive"),
        ({"PROMETHEUS_MULTIPROC_DIR": "/nowhere"}, "telemetry", "PROMETHEUS_MULTIPROC_DIR"),
        ({"HTTPS_PROXY": "nonsense://u:hunter2@host"}, "network", "HTTPS_PROXY"),
        ({"GOOGLE_APPLICATION_CREDENTIALS": "/nowhere"}, "credentials of gcp", "GOOGLE_APPLICATION_CREDENTIALS"),
    ],
)
def test_what_is_wrong_is_named_without_its_secrets(
    doctor: Doctor, variables: dict[str, str], name: str, said: str
) -> None:
    code, found, text = doctor(**variables)
    assert code == 3
    assert found[name]["status"] == "broken"
    assert said in found[name]["found"] + found[name]["advice"]
    assert "hunter2" not in text


@pytest.mark.parametrize(("revision", "status"), [("0001", "warning"), ("9999", "broken")])
def test_a_database_of_another_release_is_told(doctor: Doctor, tmp_path: Path, revision: str, status: str) -> None:
    path = tmp_path / "other.sqlite3"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE alembic_version (version_num TEXT)")
        database.execute("INSERT INTO alembic_version VALUES (?)", (revision,))
        database.commit()
    _, found, _ = doctor(GPUPLAN_DATABASE_URL=f"sqlite:///{path}")
    assert found["database"]["status"] == status
    assert revision in found["database"]["found"]


def test_credentials_are_found_by_name_and_never_shown(doctor: Doctor, tmp_path: Path) -> None:
    adc = tmp_path / ".config" / "gcloud"
    adc.mkdir(parents=True)
    (adc / "application_default_credentials.json").write_text(SECRET)
    _, found, text = doctor(AWS_ACCESS_KEY_ID="AKIAIOSFODNN7EXAMPLE", AWS_SECRET_ACCESS_KEY=SECRET)
    assert found["credentials of aws"]["status"] == found["credentials of gcp"]["status"] == "ok"
    assert "AWS_SECRET_ACCESS_KEY" in found["credentials of aws"]["found"]
    assert "application_default_credentials.json" in found["credentials of gcp"]["found"]
    assert SECRET not in text
    assert "AKIA" not in text


def test_a_full_disk_and_a_taken_port_are_told(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_FULL_BYTES", 2**62)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, found, _ = doctor("--port", str(taken.getsockname()[1]))
    assert code == 3
    assert found["room for temporary files"]["status"] == "broken"
    assert found["port"]["status"] == "warning"


@pytest.fixture(scope="module")
def clouds() -> Iterator[tuple[CloudServer, dict[str, str]]]:
    """AWS, Azure and GCP on this machine, and the variables that lead there."""
    aws, azure, gcp = (
        AwsCloud(smaller(aws_catalogue(), "us-east-1")),
        azure_cloud(offers=[]),
        GcpServer(gcp_catalogue()),
    )
    with ExitStack() as running:
        for each in (aws, azure, gcp):
            running.enter_context(each.running())
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
    _, found, text = doctor("--online", **clouds[1])
    for cloud in ("aws", "azure", "gcp"):
        assert found[f"price server of {cloud}"]["status"] == "ok", found
        assert found[f"account at {cloud}"]["status"] == "ok", found
    assert "regions (credentials by env)" in found["account at aws"]["found"]
    assert SECRET not in text


def test_a_cloud_that_is_away_and_a_wrong_clock_are_told(
    doctor: Doctor, clouds: tuple[CloudServer, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = datetime.now(UTC) + timedelta(hours=2)
    monkeypatch.setattr(
        "api.doctor.clouds.server_time", lambda urls: (wrong, "https://clock.example") if "1" in urls[0] else None
    )
    code, found, _ = doctor("--online", **clouds[1] | {"GPUPLAN_AWS_PRICE_FILES_URL": "http://localhost:9"})
    assert code == 3
    assert "does not answer" in found["price server of aws"]["found"]
    assert "off by -120.0 minutes" in found["price server of azure"]["found"]


def test_a_schedule_that_no_worker_can_keep_is_said(doctor: Doctor) -> None:
    _, found, _ = doctor(GPUPLAN_REFRESH_CRON="17 3 * * *")
    assert (found["schedule"]["status"], "gpuplan refresh" in found["schedule"]["advice"]) == ("warning", True)


def test_a_misspelt_variable_is_named_with_the_one_that_was_meant(doctor: Doctor) -> None:
    code, found, _ = doctor(GPUPLAN_DATABSE_URL="sqlite:///secret.db")
    assert code == 0
    assert found["variables"]["status"] == "warning"
    assert "GPUPLAN_DATABSE_URL" in found["variables"]["found"]
    assert "GPUPLAN_DATABASE_URL" in found["variables"]["advice"]
    assert "secret.db" not in json.dumps(found["variables"])


def test_every_variable_that_the_docs_name_is_known() -> None:
    docs = Path(__file__).parents[3] / "docs"
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
    code, found, _ = doctor()
    assert (code, found["yaml"]["status"]) == (0, "warning")
    assert "PyYAML" in found["yaml"]["advice"]


@pytest.mark.parametrize(
    ("change", "said"), [(None, ""), (answering(401, b"hunter2"), "code: 401"), (answering(404, b""), "code: 404")]
)
def test_a_collector_is_asked_whether_it_takes_traces(
    doctor: Doctor, change: Callable[[Reply], Reply] | None, said: str
) -> None:
    collector = CloudServer(lambda _: Reply(content_type="application/x-protobuf"))
    if change is not None:
        collector.break_with(change)
    with collector.running():
        code, found, text = doctor(OTEL_EXPORTER_OTLP_ENDPOINT=f"{collector.url}/hunter2")
    assert (code, found["traces"]["status"]) == (0, "ok" if change is None else "warning")
    assert said in found["traces"]["found"]
    assert collector.requests[0].path == "/hunter2/v1/traces"
    assert "hunter2" not in text


def test_a_collector_that_is_away_is_told_by_what_the_system_says(doctor: Doctor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    code, found, text = doctor(OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}/hunter2")
    assert (code, found["traces"]["status"]) == (0, "warning")
    assert "Connection refused" in found["traces"]["found"]
    assert "hunter2" not in text


def test_a_proxy_that_nobody_would_believe_is_told(doctor: Doctor) -> None:
    assert "proxy before the service" not in doctor(FORWARDED_ALLOW_IPS="10.0.0.0/8, ::1")[1]
    found = doctor(FORWARDED_ALLOW_IPS="10.0.0.1/8,::1")[1]["proxy before the service"]
    assert (found["status"], "10.0.0.1/8 is no" in found["found"]) == ("warning", True)
    assert "proxy before the service" not in doctor(FORWARDED_ALLOW_IPS="*")[1]
    assert "* is no address" in doctor(FORWARDED_ALLOW_IPS="10.0.0.0/8, *")[1]["proxy before the service"]["found"]


def test_an_issuer_is_asked_for_its_keys(doctor: Doctor, clouds: tuple[CloudServer, dict[str, str]]) -> None:
    with issuing() as issuer:
        there = {"GPUPLAN_OIDC_ISSUER": issuer.url, "GPUPLAN_OIDC_AUDIENCE": "gpuplan"}
        assert doctor("--online", **clouds[1] | there)[1]["issuer"]["status"] == "ok"
    code, found, _ = doctor("--online", **clouds[1] | there)
    assert (code, found["issuer"]["status"]) == (3, "broken")


def test_an_address_of_aws_that_is_none_is_a_finding(
    doctor: Doctor, clouds: tuple[CloudServer, dict[str, str]]
) -> None:
    found = doctor("--online", **clouds[1] | {"AWS_ENDPOINT_URL_EC2": "nonsense"})[1]
    assert "Invalid endpoint" in found["account at aws"]["found"]
