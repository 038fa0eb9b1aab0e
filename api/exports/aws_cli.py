"""A script for the AWS CLI: https://docs.aws.amazon.com/cli/latest/reference/ec2/run-instances.html

The first node starts first; the others get its address. All settings except those of the account are in one JSON
document for `run-instances`. The zone id is resolved by a subnet in that zone.
"""

import json
import shlex
from collections.abc import Sequence

from gpuplan.api.exports.boot_script import AMI_PARAMETER, ec2_boot_lines, usual_image
from gpuplan.api.exports.container_stacks import arm
from gpuplan.api.exports.file_comments import commented, heading
from gpuplan.api.exports.machine_lifecycle import (
    RESUME,
    SHARED,
    boot_file,
    credentials,
    exit_status,
    settings,
    user_data,
)
from gpuplan.api.exports.node_script import place
from gpuplan.api.exports.places_in_order import (
    NOT_SET_UP,
    asks_in_order,
    left_out,
    order_notes,
    other_place,
    phases_to_try,
    start_in_order,
)
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.shell_script import Expanded, command
from gpuplan.api.exports.tool_names import run_name, tags
from gpuplan.api.exports.unsupported_features import booked, need_cloud
from gpuplan.catalog.parsing.json_object import JsonObject

TOOL = "the AWS CLI"
#: Commands that list and terminate the machines of a run. A new instance appears in lists after some seconds:
#: https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html
_OF_RUN = 'aws ec2 describe-instances --region "$REGION" --filters "Name=tag:gpuplan-run,Values=$RUN"'
_ALIVE = "Name=instance-state-name,Values=pending,running,stopping,stopped"
_GROUPS = 'aws ec2 describe-placement-groups --region "$REGION" --filters "Name=group-name,Values=$RUN"'
FUNCTIONS = [
    "machines_left() {",
    f'  {_OF_RUN} Name=instance-state-name,Values=pending,running --query "length(Reservations[].Instances[])" --output text',
    "}",
    "# shellcheck disable=SC2329",
    "teardown() {",
    "  local found group failed=0",
    "  local -a ids",
    "  sleep 15",
    f'  found="$({_OF_RUN} {_ALIVE} --query "Reservations[].Instances[].InstanceId" --output text)" || return 1',
    '  read -r -d "" -a ids <<< "$found" || true',
    '  if [ "${#ids[@]}" -gt 0 ]; then',
    '    aws ec2 terminate-instances --region "$REGION" --instance-ids "${ids[@]}" > /dev/null || failed=1',
    '    aws ec2 wait instance-terminated --region "$REGION" --instance-ids "${ids[@]}" || failed=1',
    "  fi",
    f'  group="$({_GROUPS} --query "PlacementGroups[].GroupName" --output text)" || failed=1',
    '  if [ -n "$group" ]; then aws ec2 delete-placement-group --region "$REGION" --group-name "$group" || failed=1; fi',
    '  return "$failed"',
    "}",
    "by_hand() {",
    '  local ids="aws ec2 describe-instances --region $REGION --filters Name=tag:gpuplan-run,Values=$RUN"',
    "  ids+=\" --query 'Reservations[].Instances[].InstanceId' --output text\"",
    '  echo "  aws ec2 terminate-instances --region $REGION --instance-ids \\$($ids)"',
    '  if [ "$NODES" -gt 1 ]; then echo "  aws ec2 delete-placement-group --region $REGION --group-name $RUN"; fi',
    "}",
]
#: Placeholder for the name of the run in a request.
_RUN = "{{RUN}}"
#: The index of an instance within its request, from the instance metadata service.
_RANK = [
    'TOKEN="$(curl -sS -X PUT -H "X-aws-ec2-metadata-token-ttl-seconds: 300" http://169.254.169.254/latest/api/token)"',
    'INDEX="$(curl -sS -H "X-aws-ec2-metadata-token: $TOKEN" http://169.254.169.254/latest/meta-data/ami-launch-index)"',
    "NODE_RANK=$((1 + INDEX))",
]


def aws_cli(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a script. Raises `UnusableInput` for other clouds, and for a capacity block without reservation."""
    need_cloud(phase, TOOL, "aws")
    lines = [
        *settings(handover, phase, wishes, run_name(handover, phase)),
        command(f"REGION={phase.region}"),
        *FUNCTIONS,
        *exit_status(handover, wishes),
        *SHARED,
        *credentials(handover, phase, wishes),
        *_profile(handover, wishes),
        *_group(phase),
    ]
    boot = boot_file(ec2_boot_lines(handover, phase, wishes, resume=RESUME))
    phases = phases_to_try(handover, phase)
    if not asks_in_order(handover, phase):
        lines += [*_image(phase), *_subnet(phase), *boot, *_network(phase), "begin", *_started(handover, phase, wishes)]
        lines.append("watch_run")
    else:
        lines += [
            *boot,
            *start_in_order(
                handover,
                phases,
                wishes,
                where=lambda tried: [command(f"REGION={tried.region}")],
                start=lambda tried: [
                    *_account_of(tried, phase),
                    *_image(tried),
                    *_subnet(tried),
                    *_network(tried),
                    *_started(handover, tried, wishes),
                ],
            ),
        ]
    notes = [
        *heading(handover, phase, wishes),
        *order_notes(handover, phases),
        "Start: bash FILE. It runs until the run ends and then terminates all machines; on a signal it does so at once.",
        "Keep it running (tmux, systemd-run). If it is killed, every machine still terminates itself",
        *_account(handover, phase, wishes),
        *_accounts_elsewhere(phases),
    ]
    return "#!/bin/bash\n" + commented(notes) + "\n".join(lines) + "\n"


def request(handover: Handover, phase: Phase, wishes: Wishes, *, count: int) -> JsonObject:
    """The request to RunInstances, without image, subnet, network and user data."""
    marked = [{"Key": key, "Value": value} for key, value in (tags(handover, phase) | {"gpuplan-run": _RUN}).items()]
    instance_request: JsonObject = {
        "InstanceType": phase.instance_type,
        "MinCount": count,
        "MaxCount": count,
        "MetadataOptions": {"HttpTokens": "required", "HttpEndpoint": "enabled"},
        "InstanceInitiatedShutdownBehavior": "terminate",
        "TagSpecifications": [{"ResourceType": kind, "Tags": marked} for kind in ("instance", "volume")],
    }
    reservation = booked(phase, wishes)
    if reservation is not None:
        instance_request["InstanceMarketOptions"] = {"MarketType": "capacity-block"}
        target = {"CapacityReservationTarget": {"CapacityReservationId": reservation}}
        instance_request["CapacityReservationSpecification"] = target
    elif phase.kind.interruptible:
        options = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
        instance_request["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": options}
    if phase.nodes > 1:
        instance_request["Placement"] = {"GroupName": _RUN}
    return instance_request


def _profile(handover: Handover, wishes: Wishes) -> list[str]:
    """The instance profile that gives the machines access to the bucket."""
    where = place(handover, wishes)
    if where is None or where.kind != "s3":
        return []
    return [f': "${{INSTANCE_PROFILE:?name an instance profile that may read and write {where.text}}}"']


def _account(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    """Comments on the variables that the account provides."""
    comments = ["From your account: SUBNET_ID (else the first subnet in the zone), AMI_ID (else Amazon's GPU image)"]
    if _profile(handover, wishes):
        comments.append("INSTANCE_PROFILE is needed: an instance profile that may read and write the checkpoints")
    if phase.nodes > 1:
        comments.append("SECURITY_GROUP_ID is needed: a group whose members may reach each other, in both directions")
    return comments


def _image(phase: Phase) -> list[str]:
    if not usual_image(phase):
        return [f'AMI_ID="${{AMI_ID:?name an image with Docker and the driver of {phase.accelerator.name}}}"']
    name = AMI_PARAMETER.format(arch="arm64" if arm(phase) else "x86_64")
    query = f'aws ssm get-parameter --region "$REGION" --name {name} --query Parameter.Value --output text'
    return [f'AMI_ID="${{AMI_ID:-$({query})}}"']


def _subnet(phase: Phase) -> list[str]:
    """The subnet in the zone; without a zone the account's first one, because the price applies to the region."""
    place = f" --filters Name=availability-zone-id,Values={phase.zone}" if phase.zone else ""
    query = f"aws ec2 describe-subnets --region \"$REGION\"{place} --query 'Subnets[0].SubnetId' --output text"
    where = phase.zone or phase.region
    return [
        f'SUBNET_ID="${{SUBNET_ID:-$({query})}}"',
        f'if [ "$SUBNET_ID" = None ]; then echo "there is no subnet in {where}: create one, or name SUBNET_ID" >&2; exit {NOT_SET_UP}; fi',
    ]


def _started(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    """Starts the first node, then the others with its address."""
    address = "MASTER_ADDR=\"$(hostname -I | cut -d' ' -f1)\""
    if phase.nodes == 1:
        return [
            *user_data(handover, phase, wishes, ["printf '%s\\n' NODE_RANK=0 MASTER_ADDR=127.0.0.1"]),
            _run(handover, phase, wishes, count=1, network=(("--subnet-id", Expanded('"$SUBNET_ID"')),)),
        ]
    network = ((Expanded('"${NETWORK[@]}"'),),)
    return [
        *user_data(handover, phase, wishes, [command("printf", "%s\\n", "NODE_RANK=0", address)]),
        'aws ec2 create-placement-group --region "$REGION" --group-name "$RUN" --strategy cluster > /dev/null',
        f'HEAD_ADDR="$({_run(handover, phase, wishes, count=1, network=network, query=True)})"',
        *user_data(
            handover,
            phase,
            wishes,
            [command("printf", "%s\\n", *_RANK), "printf 'MASTER_ADDR=%s\\n' \"$HEAD_ADDR\""],
        ),
        _run(handover, phase, wishes, count=phase.nodes - 1, network=network),
    ]


def _group(phase: Phase) -> list[str]:
    """The security group of several nodes, required before anything is started."""
    if phase.nodes == 1:
        return []
    group = "name a security group whose members may reach each other, in both directions"
    return [f'SECURITY_GROUP_ID="${{SECURITY_GROUP_ID:?{group}}}"']


def _account_of(phase: Phase, first: Phase) -> list[str]:
    """What the account has in another region, or the subnet of another zone; a region without is left out."""
    if phase.region == first.region:
        return [] if phase.zone == first.zone else ["SUBNET_ID="]
    needed = ["SECURITY_GROUP_ID"] if phase.nodes > 1 else []
    needed += [] if usual_image(phase) else ["AMI_ID"]
    every = dict.fromkeys((*needed, "SUBNET_ID", "AMI_ID"))
    return [
        *(f'{name}="${{{other_place(name, phase)}:-}}"' for name in every),
        *(left_out(name, phase) for name in needed),
    ]


def _accounts_elsewhere(phases: Sequence[Phase]) -> list[str]:
    """Comments on the variables of other regions."""
    first, *others = phases
    regions = dict.fromkeys(phase.region for phase in others if phase.region != first.region)
    if not regions:
        return []
    suffixes = ", ".join(f"_{region.upper().replace('-', '_')}" for region in regions)
    needs = "; a region without its SECURITY_GROUP_ID is left out" if first.nodes > 1 else ""
    return [f"In other regions the names of these end in {suffixes}{needs}"]


def _network(phase: Phase) -> list[str]:
    """One interface per EFA card, if the type has any; the plan's communication times assume them."""
    if phase.nodes == 1:
        return []
    cards = (
        f'aws ec2 describe-instance-types --region "$REGION" --instance-types {phase.instance_type} '
        "--query 'InstanceTypes[0].NetworkInfo.EfaInfo.MaximumEfaInterfaces' --output text"
    )
    card = "NetworkCardIndex=$card,DeviceIndex=$((card > 0)),InterfaceType=efa,SubnetId=$SUBNET_ID,Groups=$SECURITY_GROUP_ID"
    return [
        f'CARDS="$({cards})"',
        'NETWORK=(--subnet-id "$SUBNET_ID" --security-group-ids "$SECURITY_GROUP_ID")',
        'if [ "$CARDS" != None ]; then',
        "  NETWORK=(--network-interfaces)",
        f'  for ((card = 0; card < CARDS; card++)); do NETWORK+=("{card}"); done',
        "fi",
    ]


def _run(
    handover: Handover,
    phase: Phase,
    wishes: Wishes,
    *,
    count: int,
    network: tuple[tuple[str, ...], ...],
    query: bool = False,
) -> str:
    # Close the quotes around the run's name, so that the shell expands it.
    asked = shlex.quote(json.dumps(request(handover, phase, wishes, count=count))).replace(_RUN, "'\"$RUN\"'")
    shown = "Instances[0].PrivateIpAddress" if query else "Instances[].InstanceId"
    options = [
        ("--region", Expanded('"$REGION"')),
        ("--cli-input-json", Expanded(asked)),
        ("--image-id", Expanded('"$AMI_ID"')),
        *network,
        *([("--iam-instance-profile", Expanded('"Name=$INSTANCE_PROFILE"'))] if _profile(handover, wishes) else []),
        ("--user-data", Expanded('"file://$WORK/user-data"')),
        ("--query", shown, "--output", "text"),
    ]
    return command("aws", "ec2", "run-instances", options=options)
