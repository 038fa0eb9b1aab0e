"""What is shipped to run gpuplan at night names commands and options that exist."""

import re
import shlex
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command

from api.cli.main import EXIT_UNUSABLE, application
from api.telemetry.settings import TelemetrySettings

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = DEPLOY / "kubernetes" / "refresh-cronjob.yaml"


def _cron() -> list[str]:
    (line,) = [
        each for each in (DEPLOY / "cron" / "gpuplan-refresh").read_text().splitlines() if " gpuplan refresh" in each
    ]
    return shlex.split(line)[6:]


def _unit(name: str) -> ConfigParser:
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string((DEPLOY / "systemd" / name).read_text())
    return parser


def _cron_job() -> dict[str, object]:
    documents = list(yaml.safe_load_all(KUBERNETES.read_text()))
    return dict(documents[0])


def _container() -> dict[str, object]:
    spec: object = _cron_job()
    for key in ("spec", "jobTemplate", "spec", "template", "spec", "containers"):
        assert isinstance(spec, dict)
        spec = spec[key]
    assert isinstance(spec, list)
    return dict(spec[0])


@pytest.mark.parametrize(
    "command",
    [
        _cron()[1:],
        shlex.split(_unit("gpuplan-refresh.service")["Service"]["ExecStart"])[1:],
        shlex.split(_unit("gpuplan.service")["Service"]["ExecStart"])[1:],
        _container()["args"],
    ],
    ids=["cron", "systemd", "systemd serve", "kubernetes"],
)
def test_what_is_shipped_calls_a_command_with_options_that_it_has(command: list[str]) -> None:
    group = get_command(application())
    assert isinstance(group, TyperGroup)
    called = group.commands[command[0]]
    known = {option for parameter in called.params for option in parameter.opts}
    assert {word for word in command[1:] if word.startswith("--")} <= known


def test_cron_runs_as_its_own_user_once_a_night_off_the_hour() -> None:
    (line,) = [
        each for each in (DEPLOY / "cron" / "gpuplan-refresh").read_text().splitlines() if " gpuplan refresh" in each
    ]
    assert re.match(r"^[1-9]\d? \d+ \* \* \*  gpuplan  ", line)


def test_the_time_limits_around_a_refresh_are_longer_than_its_own() -> None:
    group = get_command(application())
    assert isinstance(group, TyperGroup)
    (limit,) = [each for each in group.commands["refresh"].params if "--time-limit" in each.opts]
    assert isinstance(limit.default, int | float)
    assert float(limit.default) < 30
    assert _unit("gpuplan-refresh.service")["Service"]["TimeoutStartSec"] == "30min"


def test_the_timer_catches_up_after_a_night_that_was_slept_through() -> None:
    assert _unit("gpuplan-refresh.timer")["Timer"]["Persistent"] == "true"


def test_kubernetes_neither_overlaps_runs_nor_repeats_a_wrong_setting() -> None:
    spec = _cron_job()["spec"]
    assert isinstance(spec, dict)
    assert spec["concurrencyPolicy"] == "Forbid"
    rule = spec["jobTemplate"]["spec"]["podFailurePolicy"]["rules"][0]
    assert (rule["action"], rule["onExitCodes"]["values"]) == ("FailJob", [2])
    assert spec["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] == "Never"


def test_the_refresh_on_kubernetes_needs_nothing_but_the_secret_that_it_names() -> None:
    # It may be applied by itself (docs/nightly.md): a pod waits for ever for what is not there and not optional.
    taken = _container()["envFrom"]
    assert isinstance(taken, list)
    assert all(next(iter(each.values()))["optional"] for each in taken)


def test_the_image_runs_as_the_user_that_kubernetes_asks_for() -> None:
    spec = _cron_job()["spec"]
    assert isinstance(spec, dict)
    user = spec["jobTemplate"]["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
    assert f"--uid {user} " in (DEPLOY.parent / "Dockerfile").read_text()


def test_cron_finds_what_systemd_starts_and_both_write_where_their_user_may() -> None:
    cron = (DEPLOY / "cron" / "gpuplan-refresh").read_text()
    [path] = re.findall(r"^PATH=(.*)$", cron, re.MULTILINE)
    service, refresh = (_unit(name)["Service"] for name in ("gpuplan.service", "gpuplan-refresh.service"))
    for unit in (service, refresh):
        assert str(Path(shlex.split(unit["ExecStart"])[0]).parent) in path.split(":")
        assert (unit["User"], unit["StateDirectory"], unit["ProtectSystem"]) == ("gpuplan", "gpuplan", "strict")
    assert service["Environment"] == refresh["Environment"]
    assert refresh["Environment"] in cron
    assert service["UMask"] == "0077"
    assert "UMask" not in refresh  # others read its figures
    for command in (_cron(), shlex.split(refresh["ExecStart"])):
        assert command[command.index("--metrics-file") + 1].startswith("/var/lib/gpuplan/")


def test_systemd_grants_a_service_the_time_that_it_takes_to_end() -> None:
    unit = _unit("gpuplan.service")["Service"]
    assert float(unit["TimeoutStopSec"]) > TelemetrySettings().drain_seconds + TelemetrySettings().finish_seconds
    assert unit["RestartPreventExitStatus"] == str(EXIT_UNUSABLE)
