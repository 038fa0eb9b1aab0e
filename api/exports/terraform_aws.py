"""Instances of EC2 in Terraform: https://registry.terraform.io/providers/hashicorp/aws/latest/docs

The first node starts first; the others get its address. The zone id is resolved by a subnet in that zone.
"""

from gpuplan.api.exports.boot_script import AMI_PARAMETER, ec2_boot_lines, usual_image
from gpuplan.api.exports.container_stacks import arm
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.terraform_text import RESUME, is_stored_in, log_ins, machine_head, script, variable
from gpuplan.api.exports.tool_names import run_name, tags
from gpuplan.api.exports.unsupported_features import booked
from gpuplan.catalog.parsing.json_object import JsonObject

Block = JsonObject
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
        # The only expressions in the text: the rank and the first node's address.
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
    inputs = log_ins(handover, phase, wishes) | {
        "subnet_id": variable("A subnet in the zone of the plan; default: the first one", default="")
    }
    if is_stored_in("s3", handover, wishes):
        inputs["instance_profile"] = variable("An instance profile that may read and write the checkpoints")
    if not usual_image(phase):
        inputs["ami_id"] = variable(f"An image with Docker and the driver of {phase.accelerator.name}")
    if phase.nodes > 1:
        inputs["security_group_id"] = variable("A group whose members may reach each other, in both directions")
    return inputs


def _look_ups(phase: Phase) -> Block:
    """Look-ups: subnets of the zone id, image by parameter, and network cards of the type."""
    where: Block = {"name": "availability-zone-id", "values": [phase.zone]}
    block: Block = {"aws_subnets": {"zone": {"filter": [where]} if phase.zone else {}}}
    if usual_image(phase):
        name = AMI_PARAMETER.format(arch="arm64" if arm(phase) else "x86_64")
        block["aws_ssm_parameter"] = {"image": {"name": name}}
    if phase.nodes > 1:
        block["aws_ec2_instance_type"] = {"node": {"instance_type": phase.instance_type}}
    return block


def _template(handover: Handover, phase: Phase, wishes: Wishes) -> Block:
    image = "data.aws_ssm_parameter.image.value" if usual_image(phase) else "var.ami_id"
    block: Block = {
        "name": run_name(handover, phase),
        "image_id": f"${{{image}}}",
        "instance_type": phase.instance_type,
        "metadata_options": {"http_tokens": "required"},
        # A shutdown terminates the machine and its charges.
        "instance_initiated_shutdown_behavior": "terminate",
        "tag_specifications": [{"resource_type": "volume", "tags": tags(handover, phase)}],
        **_network(phase),
    }
    if is_stored_in("s3", handover, wishes):
        block["iam_instance_profile"] = {"name": "${var.instance_profile}"}
    reservation = booked(phase, wishes)
    if reservation is not None:
        block["instance_market_options"] = {"market_type": "capacity-block"}
        target = {"capacity_reservation_target": {"capacity_reservation_id": reservation}}
        block["capacity_reservation_specification"] = target
    elif phase.kind.interruptible:
        options = {"spot_instance_type": "one-time", "instance_interruption_behavior": "terminate"}
        block["instance_market_options"] = {"market_type": "spot", "spot_options": options}
    if phase.nodes > 1:
        block["placement"] = {"group_name": "${aws_placement_group.node.name}"}
    return block


def _network(phase: Phase) -> Block:
    """One interface, or one per EFA card if the type has any; the plan's communication times assume them."""
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
