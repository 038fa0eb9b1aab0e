"""Hardware of a size: from gpuplan's table if known, else from the SKU list and `data/families.csv`.

Neither the price list nor the SKU list names the card, and the SKU list counts a share of a card as one (and has counted an
eight-card machine as twelve), so gpuplan's table takes precedence. Sizes since 2020 carry their card in the name, which is
used if neither table has the size yet.
"""

import math
import re
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import cache

from gpuplan.catalog.model.accelerators import accelerator_family, accelerators
from gpuplan.catalog.model.offer import Implausible, InstanceType
from gpuplan.catalog.model.unavailable_machines import left_out
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_instance_types
from gpuplan.providers.azure.mapping_tables import Family, family_of, folded, is_never_shared, named_card
from gpuplan.providers.azure.skus import Sku

SKU_SOURCE = "Azure resource SKUs (vCPU, memory, disk, GPUs), card by family"
NAMING_SOURCE = "card by the name https://learn.microsoft.com/azure/virtual-machines/vm-naming-conventions"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoTraining:
    """A size that is left out on purpose, with the reason."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A size with unknown hardware; `reason` says what is missing."""

    reason: str


@cache
def known_sizes() -> dict[str, InstanceType]:
    """Azure's machines of gpuplan's own table by folded name."""
    return {
        folded(instance_type.name): instance_type
        for instance_type in embedded_instance_types()
        if instance_type.provider == "azure"
    }


def hardware_of(size: str, sku: Sku | None, *, read_on: date) -> InstanceType | NoTraining | Unknown:
    """The machine of a size; `sku` is its entry in the SKU list, if that was read."""
    if folded(size) in _left_out():
        return NoTraining(reason=_left_out()[folded(size)])
    known = known_sizes().get(folded(size))
    if known is not None:
        return known
    family = family_of(size, sku.family if sku else "") or _family_by_name(size)
    if family is None:
        return Unknown(reason="unknown accelerator: neither its name nor its family says which card it has")
    if family.left_out:
        return NoTraining(reason=family.left_out)
    count = _accelerator_count(family, sku)
    if isinstance(count, Unknown):
        return count
    try:
        return _machine(sku.name if sku else size, family, count, sku, read_on)
    except Implausible as problem:
        return Unknown(reason=str(problem))


def differs(machine: InstanceType, sku: Sku) -> str:
    """How the SKU list contradicts the devices of a known machine, or nothing."""
    device_count = math.ceil(machine.accelerator_count)
    if sku.gpus is None or sku.gpus == device_count:
        return ""
    return f"{machine.name}: the SKU list says {sku.gpus} GPUs, gpuplan's own table {device_count}, which is used"


def _family_by_name(size: str) -> Family | None:
    """A family for a size outside all tables, if the card in its name matches exactly one accelerator."""
    card = named_card(size)
    try:
        cards = accelerator_family(card) if card else ()
    except UnusableInput:
        return None
    if len(cards) != 1:
        return None
    return Family(
        name_pattern=re.compile(re.escape(size), re.IGNORECASE),
        families=frozenset(),
        accelerator=cards[0],
        card_vcpus=None,
        card_memory_gib=None,
        below_card="" if is_never_shared(size) else "uncounted",
        left_out="",
        source=NAMING_SOURCE,
    )


@cache
def _left_out() -> dict[str, str]:
    return {folded(name): reason for name, reason in left_out().items()}


def _accelerator_count(family: Family, sku: Sku | None) -> Fraction | Unknown:
    """Devices as a framework sees them, below 1 for a share of a card."""
    vcpus = sku.vcpus if sku else None
    if sku is None or (family.card_vcpus and vcpus is None):
        return Unknown(reason=f"only the SKU list of a subscription has its number of {family.accelerator}")
    if family.card_vcpus and vcpus is not None and vcpus < family.card_vcpus:
        if family.below_card == "share":
            return Fraction(int(vcpus), family.card_vcpus)
        return Unknown(reason=f"it has less than one {family.accelerator}, and its share is unknown")
    if sku.gpus is None:
        return Unknown(reason=f"the SKU list does not say how many {family.accelerator} it has")
    if sku.gpus == 1 and family.below_card == "uncounted":
        return Unknown(
            reason=f"it is unknown whether it has one {family.accelerator} or a share, which counts as one too"
        )
    return Fraction(sku.gpus)


def _machine(name: str, family: Family, count: Fraction, sku: Sku | None, read_on: date) -> InstanceType:
    """A machine that only the SKU list describes, with the links of a known one with the same cards."""
    card = accelerators()[family.accelerator]
    memory = None
    if count < 1 and family.card_memory_gib:
        memory = int(family.card_memory_gib * 1024 * count)
    machine = InstanceType(
        provider="azure",
        name=name,
        accelerator=card.name,
        accelerator_count=count,
        accelerator_memory_mib=memory,
        vcpus=sku.vcpus if sku else None,
        ram_gib=sku.ram_gib if sku else None,
        local_disk_gb=sku.local_disk_gb if sku else None,
        fabric="InfiniBand" if sku and sku.infiniband else "Ethernet",
        clusters=count >= 1,
        source=f"{SKU_SOURCE}; {family.source}",
        as_of=read_on.isoformat(),
    )
    like = next(
        (
            known
            for known in known_sizes().values()
            if (known.accelerator, known.accelerator_count) == (machine.accelerator, machine.accelerator_count)
        ),
        None,
    )
    if like is None:
        return machine
    return replace(
        machine,
        intranode_link=like.intranode_link,
        intranode_gbs=like.intranode_gbs,
        scaleup_domain=like.scaleup_domain,
    )
