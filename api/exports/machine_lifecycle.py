"""Common parts of scripts that start and end machines: settings, cleanup, and user data."""

from importlib.resources import files

from gpuplan.api.exports.node_script import PLACEHOLDER, place, place_text
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.run_limit import cost_at_limit, limit_seconds
from gpuplan.api.exports.shell_script import command, here_document
from gpuplan.catalog.model.money import usd_micros, usd_text
from gpuplan.catalog.parsing.checkpoint_location import CLOUD_OF

#: `watch_run`, the traps and the rest: https://www.gnu.org/software/bash/manual/bash.html#index-trap
SHARED = files("gpuplan.api.exports").joinpath("start-and-stop.sh").read_text(encoding="utf-8").splitlines()
RESUME = "bash FILE"


def settings(handover: Handover, phase: Phase, wishes: Wishes, name: str) -> list[str]:
    """The variables of the script. It refuses the placeholder before anything is started."""
    hourly = usd_text(usd_micros(phase.usd_per_node_hour) * phase.nodes)
    return [
        "set -euo pipefail",
        # The name of this run marks its resources, so that cleanup never ends others.
        f'RUN="{name}-$(date +%s)"',
        f"NODES={phase.nodes}",
        f"LIMIT_SECONDS={limit_seconds(handover, phase, wishes)}",
        f"USD_PER_HOUR={hourly}",
        f"USD_AT_LIMIT={usd_text(cost_at_limit(handover, phase, wishes))}",
        command(f"CHECKPOINTS={place_text(handover, wishes)}"),
        'RESUME="bash $0"',
        f'if [ "$CHECKPOINTS" = {PLACEHOLDER} ]; then',
        '  echo "gpuplan: there is no checkpoint location, so nothing is started: give the job data.checkpoints," >&2',
        '  echo "or export again with --checkpoints s3://bucket/path" >&2',
        "  exit 78",
        "fi",
    ]


def credentials(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    """Requires a file of credentials if the checkpoints are in another cloud."""
    if not is_elsewhere(handover, phase, wishes):
        return []
    what = f"name a file with lines KEY=VALUE that let rclone write to {place_text(handover, wishes)}"
    return [f': "${{CREDENTIALS_FILE:?{what}}}"']


def is_elsewhere(handover: Handover, phase: Phase, wishes: Wishes) -> bool:
    """Whether the checkpoints are in a bucket of another cloud than the machines."""
    location = place(handover, wishes)
    return location is not None and CLOUD_OF.get(location.kind, phase.provider) != phase.provider


def exit_status(handover: Handover, wishes: Wishes) -> list[str]:
    """`read_exit_status NODE`: reads a node's exit status beside the checkpoints, by default that of the first one."""
    location = place(handover, wishes)
    kind = "" if location is None else location.kind
    if location is not None and kind == "abfs":
        blob = f"{location.path}/.runs/$RUN/exit-${{1:-0}}".removeprefix("/")
        asked = (
            f"az storage blob download --account-name {location.account} --container-name {location.bucket} "
            f'--name "{blob}" --auth-mode login --file "$WORK/exit" --output none && cat "$WORK/exit"'
        )
    else:
        tools = {"s3": 'aws s3 cp "{}" -', "gs": 'gcloud storage cat "{}"', "mount": 'cat "{}" 2> /dev/null'}
        asked = tools.get(kind, "false").format("$CHECKPOINTS/.runs/$RUN/exit-${1:-0}")
    return [f"read_exit_status() {{ {asked}; }}"]


def user_data(handover: Handover, phase: Phase, wishes: Wishes, first: list[str]) -> list[str]:
    """Lines that write the user data: the run's name, the output of `first`, credentials, and `$WORK/boot`."""
    lines = ["{", "printf '%s\\n' '#!/bin/bash' \"RUN=$RUN\" 'BOX=\"$(mktemp -d)\"'", *first]
    if is_elsewhere(handover, phase, wishes):
        lines += [
            "printf '%s\\n' 'cat > \"$BOX/credentials\" <<\"GPUPLAN_CREDENTIALS\"'",
            'cat "$CREDENTIALS_FILE"',
            "printf '%s\\n' '' GPUPLAN_CREDENTIALS",
        ]
    return [*lines, 'cat "$WORK/boot"', '} > "$WORK/user-data"']


def boot_file(lines: list[str]) -> list[str]:
    """Lines that write `$WORK/boot`, the boot script of all machines of a run."""
    return here_document('"$WORK/boot"', lines)
