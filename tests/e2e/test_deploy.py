"""What is shipped to run gpuplan at night names commands and options that exist."""

import os
import re
import shlex
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command

from gpuplan.api.cli.main import EXIT_UNUSABLE, application
from gpuplan.api.observability.telemetry_settings import TelemetrySettings

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = DEPLOY / "kubernetes" / "refresh-cronjob.yaml"


def _cron() -> list[str]:
    (line,) = [
        splitline
        for splitline in (DEPLOY / "cron" / "gpuplan-refresh").read_text().splitlines()
        if " gpuplan refresh" in splitline
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
        splitline
        for splitline in (DEPLOY / "cron" / "gpuplan-refresh").read_text().splitlines()
        if " gpuplan refresh" in splitline
    ]
    assert re.match(r"^[1-9]\d? \d+ \* \* \*  gpuplan  ", line)


def test_the_time_limits_around_a_refresh_are_longer_than_its_own() -> None:
    group = get_command(application())
    assert isinstance(group, TyperGroup)
    (limit,) = [param for param in group.commands["refresh"].params if "--time-limit" in param.opts]
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
    assert all(next(iter(source.values()))["optional"] for source in taken)


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
    assert refresh["Environment"] in cron
    assert f"Environment={refresh['Environment']}\n" in (DEPLOY / "systemd" / "gpuplan.service").read_text()
    assert service["UMask"] == "0077"
    assert "UMask" not in refresh  # others read its figures
    for command in (_cron(), shlex.split(refresh["ExecStart"])):
        assert command[command.index("--metrics-file") + 1].startswith("/var/lib/gpuplan/")


def test_systemd_grants_a_service_the_time_that_it_takes_to_end() -> None:
    unit = _unit("gpuplan.service")["Service"]
    assert float(unit["TimeoutStopSec"]) > TelemetrySettings().drain_seconds + TelemetrySettings().finish_seconds
    assert unit["RestartPreventExitStatus"] == str(EXIT_UNUSABLE)


@pytest.mark.parametrize("name", ["gpuplan.service", "gpuplan-refresh.service"])
def test_units_allow_what_is_needed_and_nothing_else(name: str) -> None:
    unit = _unit(name)["Service"]
    for setting in (
        "NoNewPrivileges",
        "MemoryDenyWriteExecute",
        "LockPersonality",
        "RestrictNamespaces",
        "RestrictRealtime",
        "RestrictSUIDSGID",
        "ProtectKernelModules",
        "ProtectKernelLogs",
        "ProtectClock",
        "ProtectHostname",
    ):
        assert unit[setting] == "yes", setting
    assert (unit["SystemCallFilter"], unit["SystemCallArchitectures"]) == ("@system-service", "native")
    assert unit["CapabilityBoundingSet"] == ""
    assert unit["RestrictAddressFamilies"] == "AF_UNIX AF_INET AF_INET6"
    assert unit["MemoryMax"].endswith("G")


def test_a_stop_is_for_the_service_which_ends_its_own_processes() -> None:
    assert _unit("gpuplan.service")["Service"]["KillMode"] == "mixed"


def test_what_is_started_is_what_make_installs() -> None:
    makefile = (DEPLOY.parent / "Makefile").read_text()
    [prefix] = re.findall(r"^PREFIX \?= (\S+)$", makefile, re.MULTILINE)
    for name in ("gpuplan.service", "gpuplan-refresh.service"):
        assert shlex.split(_unit(name)["Service"]["ExecStart"])[0] == f"{prefix}/bin/gpuplan"


#: prctl(2): no memory of the process is ever both written and run, which systemd's MemoryDenyWriteExecute asks for.
_PR_SET_MDWE, _PR_MDWE_REFUSE_EXEC_GAIN = 65, 1
_WITHOUT_NEW_CODE = f"""
import ctypes, mmap, sys
if ctypes.CDLL(None).prctl({_PR_SET_MDWE}, {_PR_MDWE_REFUSE_EXEC_GAIN}, 0, 0, 0):
    sys.exit(77)
try:
    mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
except OSError:
    pass
else:
    sys.exit("memory that is written may be run")
from gpuplan.api.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_a_job_is_planned_where_no_code_can_be_made_while_it_runs(own_store: str) -> None:
    job = DEPLOY.parent / "examples" / "resnet-50.yaml"
    ended = subprocess.run(
        (sys.executable, "-c", _WITHOUT_NEW_CODE, "plan", str(job)),
        env=os.environ | {"GPUPLAN_DATABASE_URL": own_store},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode == 77:
        pytest.skip("this kernel is older than 6.3, and has no PR_SET_MDWE")
    assert ended.returncode == 0, ended.stderr
    assert "Cheapest for" in ended.stdout
