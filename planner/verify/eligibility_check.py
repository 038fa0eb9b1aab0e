"""Eligibility of an offer for any job, and the requirements of the job that it breaks."""

from fnmatch import fnmatchcase

from gpuplan.catalog.model.accelerators import accelerator_family, accelerators
from gpuplan.catalog.model.offer import InstanceType
from gpuplan.catalog.model.price_kinds import PriceKind, price_kinds
from gpuplan.catalog.model.provider_names import provider_kind
from gpuplan.catalog.model.regions import is_place_unknown, regions
from gpuplan.planner.model.job import Constraints, TrainingJob
from gpuplan.planner.model.settings import Discount

#: The software stacks that code for each framework runs on; code for `any` runs on all.
STACKS = {
    "pytorch-cuda": ("cuda",),
    "pytorch-rocm": ("rocm",),
    "jax": ("cuda", "rocm", "xla"),
    "xla": ("xla",),
    "neuron": ("neuron",),
}
#: The lowest price after a discount, micro-dollars.
LEAST_MICROS = 1.0


def cannot_be_had(
    instance_type: InstanceType,
    kind: PriceKind,
    place: tuple[str, str],
    constraints: Constraints,
    *,
    whole_price: bool,
    verified: bool,
) -> str:
    """Why this offer is not eligible for any job; empty if it is eligible."""
    plain = not (kind.term_hours or kind.interruptible or kind.max_run_hours or kind.owned)
    region = regions().get(place)
    partition = region.partition if region is not None else "commercial"
    reasons = (
        (instance_type.retired, "retired family"),
        (accelerators()[instance_type.accelerator].trains == "no", "accelerator does not train"),
        (plain and not instance_type.sold_on_demand, "not sold on demand"),
        (not whole_price, "price known only in part"),
        (partition not in constraints.partitions, "another partition (opt in with constraints.partitions)"),
        (
            not verified and not constraints.unverified_availability,
            "availability not verified (opt in with constraints.unverified_availability)",
        ),
    )
    return next((reason for is_so, reason in reasons if is_so), "")


def breaks_of_type(instance_type: InstanceType, job: TrainingJob, *, is_owned: bool = False) -> frozenset[str]:
    """The requirements that an instance type breaks at every node count; own machines meet any framework."""
    asked, framework = job.constraints, job.training.framework
    chip = accelerators()[instance_type.accelerator]
    vendor = chip.vendor.lower()
    seller = provider_kind(instance_type.provider, instance_type.name)
    requirements_met = {
        "constraints.providers": not asked.providers or instance_type.provider in asked.providers,
        "constraints.provider_kinds": seller is None or seller in asked.provider_kinds,
        "constraints.accelerators": not asked.accelerators or instance_type.accelerator in asked.accelerators,
        "constraints.vendors": not asked.vendors or vendor in [name.lower() for name in asked.vendors],
        "constraints.instance_types": not asked.instance_types or _named(instance_type.name, asked.instance_types),
        "training.framework": is_owned or framework == "any" or chip.stack in STACKS[framework],
    }
    return frozenset(name for name, is_met in requirements_met.items() if not is_met)


def values_of(instance_type: InstanceType, place: tuple[str, str], kind: PriceKind) -> dict[str, str]:
    """The value that each requirement on offers must have to allow this offer."""
    provider, region = place
    chip, known = accelerators()[instance_type.accelerator], regions().get(place)
    return {
        "constraints.providers": provider,
        "constraints.provider_kinds": provider_kind(provider, instance_type.name) or "",
        "constraints.accelerators": instance_type.accelerator,
        "constraints.vendors": chip.vendor,
        "constraints.instance_types": instance_type.name,
        "training.framework": framework_for(chip.stack),
        "constraints.regions": "none" if is_place_unknown(region) else f"{provider}:{region}",
        "constraints.geography": known.geography if known and known.geography else f"that of {provider}:{region}",
        "constraints.price_kinds": kind.name,
    }


def breaks_of_place(place: tuple[str, str], job: TrainingJob) -> frozenset[str]:
    """The requirements that a place breaks; own machines are wherever they are, and meet all of these."""
    asked, region = job.constraints, regions().get(place)
    requirements_met = {
        "constraints.regions": not asked.regions or _among(place, asked.regions),
        "constraints.geography": not asked.geography or (region is not None and region.geography in asked.geography),
    }
    return frozenset(name for name, is_met in requirements_met.items() if not is_met)


def breaks_of_kind(kind: PriceKind, job: TrainingJob) -> frozenset[str]:
    """The requirements that a price kind breaks."""
    kinds = job.constraints.price_kinds or tuple(name for name, row in price_kinds().items() if row.in_default)
    return frozenset() if kind.name in kinds else frozenset(("constraints.price_kinds",))


def framework_for(stack: str) -> str:
    """The framework whose code runs on this stack alone; `any` where there is none."""
    return next((framework for framework, stacks in STACKS.items() if stacks == (stack,)), "any")


def _named(name: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name.lower(), glob.lower()) for glob in globs)


def _among(place: tuple[str, str], globs: tuple[str, ...]) -> bool:
    """Whether a glob matches the region; `azure:east*` matches regions of Azure only."""
    provider, region = place
    if is_place_unknown(region):
        return False
    parts = [glob.rpartition(":") for glob in globs]
    return any(owner in ("", provider) and fnmatchcase(region.lower(), name.lower()) for owner, _, name in parts)


def winning(
    instance_type: InstanceType, place: tuple[str, str], kind: str, discounts: tuple[Discount, ...]
) -> Discount | None:
    """The most specific discount that applies to an offer; None where none does."""
    return max((one for one in discounts if _applies(one, instance_type, place, kind)), key=_specific, default=None)


def negotiated_micros(
    listed: int, instance_type: InstanceType, place: tuple[str, str], kind: str, discounts: tuple[Discount, ...]
) -> int:
    """The price in micro-dollars after the most specific discount; the list price without one."""
    best = winning(instance_type, place, kind, discounts)
    if best is None:
        return listed
    usd = best.usd_per_hour if best.percent is None else listed / 1e6 * (1.0 - best.percent / 100.0)
    return round(max(LEAST_MICROS, (usd or 0.0) * 1e6))


def _specific(discount: Discount) -> tuple[int, int]:
    machine = 3 if discount.instance_type else 2 if discount.family else 1 if discount.accelerator else 0
    return machine, sum(bool(part) for part in (discount.provider, discount.region, discount.price_kind))


def _applies(discount: Discount, instance_type: InstanceType, place: tuple[str, str], kind: str) -> bool:
    provider, region = place
    return (
        discount.provider in ("", provider)
        and (not discount.region or fnmatchcase(region.lower(), discount.region.lower()))
        and discount.price_kind in ("", kind)
        and (not discount.instance_type or discount.instance_type.lower() == instance_type.name.lower())
        and (not discount.family or is_of_family(instance_type.name.lower(), discount.family.lower()))
        and (not discount.accelerator or instance_type.accelerator in accelerator_family(discount.accelerator))
    )


def is_of_family(name: str, family: str) -> bool:
    """Whether the instance type belongs to the family: `p5` matches p5.48xlarge but not p5en.48xlarge; globs are
    accepted.
    """
    if any(sign in family for sign in "*?["):
        return fnmatchcase(name, family)
    following = name[len(family) : len(family) + 1]
    return name.startswith(family) and not following.isalnum()
