"""A scale set of Azure in Terraform: https://registry.terraform.io/providers/hashicorp/azurerm/latest/docs"""

import base64

from gpuplan.api.exports.azure_cli import check_scale_set, rank_lines
from gpuplan.api.exports.boot_script import AZURE_IMAGE, AZURE_ROLE, boot_lines, usual_image
from gpuplan.api.exports.machine_lifecycle import is_elsewhere
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.terraform_text import RESUME, is_stored_in, log_ins, machine_head, plain_text, script, variable
from gpuplan.api.exports.tool_names import run_name, tags
from gpuplan.catalog.parsing.json_object import JsonObject

Block = JsonObject


def azure_resources(handover: Handover, phase: Phase, wishes: Wishes) -> Block:
    """Provider, inputs, network and scale set of one phase on Azure."""
    check_scale_set(phase, wishes, "Terraform")
    name = run_name(handover, phase)
    placed = {"resource_group_name": "${azurerm_resource_group.run.name}", "location": phase.region}
    marked = tags(handover, phase)
    return {
        "terraform": {"required_providers": {"azurerm": {"source": "hashicorp/azurerm", "version": ">= 4.0"}}},
        "provider": {"azurerm": {"features": {}}},
        "variable": _variables(phase) | log_ins(handover, phase, wishes) | _identity_inputs(handover, wishes),
        **({"locals": {"boot": _boot(handover, phase, wishes, name)}} if _has_inputs(handover, phase, wishes) else {}),
        "resource": {
            "azurerm_resource_group": {"run": {"name": name, "location": phase.region, "tags": marked}},
            "azurerm_virtual_network": {"run": placed | {"name": name, "address_space": ["10.0.0.0/16"]}},
            "azurerm_subnet": {"run": _subnet(name)},
            "azurerm_linux_virtual_machine_scale_set": {
                "run": placed | {"name": name, "tags": marked} | _scale_set(handover, phase, wishes, name)
            },
            "azurerm_role_assignment": {"ends_itself": _ends_itself()},
        },
    }


def _ends_itself() -> Block:
    """Permission of the machines to delete themselves, limited to the run's resource group."""
    return {
        "scope": "${azurerm_resource_group.run.id}",
        "role_definition_name": AZURE_ROLE,
        "principal_id": "${azurerm_linux_virtual_machine_scale_set.run.identity[0].principal_id}",
    }


def _identity_inputs(handover: Handover, wishes: Wishes) -> Block:
    """Inputs for the identity that gives the machines access to an Azure bucket."""
    if not is_stored_in("abfs", handover, wishes):
        return {}
    return {
        "identity_id": variable("The resource id of a managed identity that may write the checkpoints"),
        "identity_client_id": variable("The client id of that identity"),
    }


def _has_inputs(handover: Handover, phase: Phase, wishes: Wishes) -> bool:
    """Whether the user data depends on Terraform inputs."""
    return is_stored_in("abfs", handover, wishes) or is_elsewhere(handover, phase, wishes)


def _boot(handover: Handover, phase: Phase, wishes: Wishes, name: str) -> str:
    first = machine_head(handover, phase, wishes)
    if is_stored_in("abfs", handover, wishes):
        # Selects one of the machine's two identities; Azure's libraries read it.
        first += 'echo AZURE_CLIENT_ID=${var.identity_client_id} > "$BOX/credentials"\n'
    return first + script([*rank_lines(name), *boot_lines(handover, phase, wishes, resume=RESUME)])


def _variables(phase: Phase) -> Block:
    inputs = {"ssh_public_key": variable("The SSH public key for logins")}
    if not usual_image(phase):
        what = f"The id of an image with Docker and the driver of {phase.accelerator.name}"
        inputs["image_id"] = variable(what)
    return inputs


def _subnet(name: str) -> Block:
    network = "${azurerm_virtual_network.run.name}"
    group = "${azurerm_resource_group.run.name}"
    return {
        "name": name,
        "resource_group_name": group,
        "virtual_network_name": network,
        "address_prefixes": ["10.0.0.0/20"],
        "default_outbound_access_enabled": True,
    }


def _scale_set(handover: Handover, phase: Phase, wishes: Wishes, name: str) -> Block:
    ids = {"identity_ids": ["${var.identity_id}"]} if is_stored_in("abfs", handover, wishes) else {}
    boot = _boot(handover, phase, wishes, name)
    configured = {"name": "node", "primary": True, "subnet_id": "${azurerm_subnet.run.id}"}
    block: Block = {
        "sku": phase.instance_type,
        "instances": phase.nodes,
        "single_placement_group": True,
        "overprovision": False,
        "computer_name_prefix": name,
        "admin_username": "gpuplan",
        "admin_ssh_key": {"username": "gpuplan", "public_key": "${var.ssh_public_key}"},
        "os_disk": {"caching": "ReadOnly", "storage_account_type": "Premium_LRS"},
        "network_interface": {"name": "node", "primary": True, "ip_configuration": configured},
        "identity": {"type": "SystemAssigned, UserAssigned" if ids else "SystemAssigned"} | ids,
        "custom_data": "${base64encode(local.boot)}"
        if _has_inputs(handover, phase, wishes)
        else base64.b64encode(plain_text(boot).encode()).decode(),
        **({"zones": [phase.zone]} if phase.zone else {}),
    }
    if usual_image(phase):
        publisher, offer, sku, version = AZURE_IMAGE
        block["source_image_reference"] = {"publisher": publisher, "offer": offer, "sku": sku, "version": version}
    else:
        block["source_image_id"] = "${var.image_id}"
    if phase.kind.interruptible:
        return block | {"priority": "Spot", "eviction_policy": "Delete", "max_bid_price": -1}
    return block | {"priority": "Regular"}
