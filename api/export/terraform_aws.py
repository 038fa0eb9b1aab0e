"""Instances of EC2 in Terraform: https://registry.terraform.io/providers/hashicorp/aws/latest/docs

The first node, then the others with its address. A zone id is resolved by the subnet that lies in it.
"""

from typing import Any

from api.export.boot import AMI_PARAMETER, ec2_boot_lines, usual_image
from api.export.handover import Handover, Phase, Wishes
from api.export.machines import arm
from api.export.names import run_name, tags
from api.export.refusal import booked
from api.export.terraform_text import RESUME, is_kept_in, log_ins, machine_head, script, variable

Block = dict[str, Any]
_FIRST = ["NODE_RANK=0", "MASTER_ADDR=\"$(hostname -I | cut -d' ' -f1)\""]


def aws_resources(handover: Handover, phase: Phase, wishes: Wishes) -> Block:
    """Provider, inputs, look-ups and resources of one phase on AWS."""
    name = run_name(handover, phase)
    marked = tags(handover, phase)
    boot = script(ec2_boot_lines(handover, phase, wishes, resume=RESUME))
    first = machine_head(handover, phase, wishes)
    head: Block = {"launch_template": {"id": "${aws_launch_template.node.id}"}, "tags": marked}
    instances: Block = {"head": head | {"user_data": first + script(_FIRST) + boot}}
    if phase.nodes > 1:
        # The only expressions in the text: the rank among the others and the address of the first.
        ranked = "NODE_RANK=${count.index + 1}\nMASTER_ADDR=${aws_instance.head.private_ip}\n"
        instances["worker"] = head | {"count": phase.nodes - 1, "user_data": first + ranked + boot}
    resources: Block = {"aws_launch_template": {"node": _template(handover, phase, wishes)}, "aws_instance": instances}
    if phase.nodes > 1:
        resources["aws_placement_group"] = {"node": {"name": name, "strategy": "cluster"}}
    return {
        "terraform": {"required_providers": {"aws": {"source": "hashicorp/aws", "version": ">= 5.70"}}},
        "provider": {"aws": {"region": phase.region}},
        "variable": _variables(handover, phase, wishes),
        "data": _look_ups(phase),
        "resource": resources,
    }


def _variables(handover: Handover, phase: Phase, wishes: Wishes) -> Block:
    found = log_ins(handover, phase, wishes) | {
        "subnet_id": variable("A subnet in the zone of the plan; the first one there unless you name it", default="")
    }
    if is_kept_in("s3", handover, wishes):
        found["instance_profile"] = variable("An instance profile that may read and write the checkpoints")
    if not usual_image(phase):
        found["ami_id"] = variable(f"An image with Docker and the driver of {phase.accelerator.name}")
    if phase.nodes > 1:
        found["security_group_id"] = variable("A group whose members may reach each other, in both directions")
    return found


def _look_ups(phase: Phase) -> Block:
    """The subnets of the zone by its id, the image by its parameter, and how many network cards the type has."""
    where: Block = {"name": "availability-zone-id", "values": [phase.zone]}
    found: Block = {"aws_subnets": {"zone": {"filter": [where]} if phase.zone else {}}}
    if usual_image(phase):
        name = AMI_PARAMETER.format(arch="arm64" if arm(phase) else "x86_64")
        found["aws_ssm_parameter"] = {"image": {"name": name}}
    if phase.nodes > 1:
        found["aws_ec2_instance_type"] = {"node": {"instance_type": phase.instance_type}}
    return found


def _template(handover: Handover, phase: Phase, wishes: Wishes) -> Block:
    image = "data.aws_ssm_parameter.image.value" if usual_image(phase) else "var.ami_id"
    found: Block = {
        "name": run_name(handover, phase),
        "image_id": f"${{{image}}}",
        "instance_type": phase.instance_type,
        "metadata_options": {"http_tokens": "required"},
        # A machine that shuts itself down is gone, and no longer paid for.
        "instance_initiated_shutdown_behavior": "terminate",
        "tag_specifications": [{"resource_type": "volume", "tags": tags(handover, phase)}],
        **_network(phase),
    }
    if is_kept_in("s3", handover, wishes):
        found["iam_instance_profile"] = {"name": "${var.instance_profile}"}
    reservation = booked(phase, wishes)
    if reservation is not None:
        found["instance_market_options"] = {"market_type": "capacity-block"}
        target = {"capacity_reservation_target": {"capacity_reservation_id": reservation}}
        found["capacity_reservation_specification"] = target
    elif phase.kind.interruptible:
        options = {"spot_instance_type": "one-time", "instance_interruption_behavior": "terminate"}
        found["instance_market_options"] = {"market_type": "spot", "spot_options": options}
    if phase.nodes > 1:
        found["placement"] = {"group_name": "${aws_placement_group.node.name}"}
    return found


def _network(phase: Phase) -> Block:
    """One interface, or one per EFA card where the type has any: what the plan's time between nodes rests on."""
    subnet = '${var.subnet_id != "" ? var.subnet_id : data.aws_subnets.zone.ids[0]}'
    if phase.nodes == 1:
        return {"network_interfaces": [{"device_index": 0, "subnet_id": subnet}]}
    kind = "data.aws_ec2_instance_type.node"
    content = {
        "network_card_index": "${network_interfaces.value}",
        "device_index": "${network_interfaces.value == 0 ? 0 : 1}",
        "interface_type": f'${{{kind}.efa_supported ? "efa" : "interface"}}',
        "subnet_id": subnet,
        "security_groups": ["${var.security_group_id}"],
    }
    cards = f"${{range({kind}.efa_supported ? {kind}.efa_maximum_interfaces : 1)}}"
    return {"dynamic": {"network_interfaces": {"for_each": cards, "content": content}}}
