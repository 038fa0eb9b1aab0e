"""Scripts that start machines and end them: what they set first, what they share, and what their machines start with."""

from importlib.resources import files

from api.checkpoint_location import CLOUD_OF
from api.export.handover import Handover, Phase, Wishes
from api.export.on_node import PLACEHOLDER, place, place_text
from api.export.run_limit import cost_at_limit, limit_seconds
from api.export.shell import command, here_document
from catalog.money import usd_micros, usd_text

#: `watch_run`, the traps and the rest: https://www.gnu.org/software/bash/manual/bash.html#index-trap
SHARED = files("api.export").joinpath("start-and-stop.sh").read_text(encoding="utf-8").splitlines()
RESUME = "bash FILE"


def settings(handover: Handover, phase: Phase, wishes: Wishes, name: str) -> list[str]:
    """The variables of the script. It refuses the placeholder before anything is started."""
    hourly = usd_text(usd_micros(phase.usd_per_node_hour) * phase.nodes)
    return [
        "set -euo pipefail",
        # The name of this run: what it starts is marked with it, so that nothing else is ended.
        f'RUN="{name}-$(date +%s)"',
        f"NODES={phase.nodes}",
        f"LIMIT_SECONDS={limit_seconds(handover, phase, wishes)}",
        f"USD_PER_HOUR={hourly}",
        f"USD_AT_LIMIT={usd_text(cost_at_limit(handover, phase, wishes))}",
        command(f"CHECKPOINTS={place_text(handover, wishes)}"),
        'RESUME="bash $0"',
        f'if [ "$CHECKPOINTS" = {PLACEHOLDER} ]; then',
        '  echo "gpuplan: there is no place for checkpoints, so nothing is started: give the job data.checkpoints," >&2',
        '  echo "or export again with --checkpoints s3://bucket/path" >&2',
        "  exit 78",
        "fi",
    ]


def credentials(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    """Asks for a file of variables where the checkpoints are in another cloud, whose log-in the machines do not have."""
    if not is_elsewhere(handover, phase, wishes):
        return []
    what = f"name a file with lines KEY=VALUE that let rclone write to {place_text(handover, wishes)}"
    return [f': "${{CREDENTIALS_FILE:?{what}}}"']


def is_elsewhere(handover: Handover, phase: Phase, wishes: Wishes) -> bool:
    """Whether the checkpoints are in a bucket of another cloud than the machines."""
    found = place(handover, wishes)
    return found is not None and CLOUD_OF.get(found.kind, phase.provider) != phase.provider


def exit_status(handover: Handover, wishes: Wishes) -> list[str]:
    """`read_exit_status`: what the first node left beside the checkpoints, by the command line of the bucket's cloud."""
    found = place(handover, wishes)
    kind = "" if found is None else found.kind
    if found is not None and kind == "abfs":
        blob = f"{found.path}/.runs/$RUN/exit-0".removeprefix("/")
        asked = (
            f"az storage blob download --account-name {found.account} --container-name {found.bucket} "
            f'--name "{blob}" --auth-mode login --file "$WORK/exit" --output none && cat "$WORK/exit"'
        )
    else:
        tools = {"s3": 'aws s3 cp "{}" -', "gs": 'gcloud storage cat "{}"', "mount": 'cat "{}" 2> /dev/null'}
        asked = tools.get(kind, "false").format("$CHECKPOINTS/.runs/$RUN/exit-0")
    return [f"read_exit_status() {{ {asked}; }}"]


def user_data(handover: Handover, phase: Phase, wishes: Wishes, first: list[str]) -> list[str]:
    """Writes what a machine starts with: the run's name, lines that `first` prints, log-ins, and `$WORK/boot`."""
    lines = ["{", "printf '%s\\n' '#!/bin/bash' \"RUN=$RUN\" 'BOX=\"$(mktemp -d)\"'", *first]
    if is_elsewhere(handover, phase, wishes):
        lines += [
            "printf '%s\\n' 'cat > \"$BOX/credentials\" <<\"GPUPLAN_CREDENTIALS\"'",
            'cat "$CREDENTIALS_FILE"',
            "printf '%s\\n' '' GPUPLAN_CREDENTIALS",
        ]
    return [*lines, 'cat "$WORK/boot"', '} > "$WORK/user-data"']


def boot_file(lines: list[str]) -> list[str]:
    """Writes `$WORK/boot`, what all machines of a run start with."""
    return here_document('"$WORK/boot"', lines)
