"""What a job may be given, rule by rule: why an offer cannot be had at all, and which requirements it breaks."""

from fnmatch import fnmatchcase

from catalog.accelerators import accelerator_family, accelerators
from catalog.offer import InstanceType
from catalog.price_kinds import PriceKind, price_kinds
from catalog.regions import regions
from planner.job import Constraints
from planner.settings import Discount

#: The smallest price that a discount leaves, micro-dollars.
LEAST_MICROS = 1.0


def cannot_be_had(
    each: InstanceType,
    kind: PriceKind,
    place: tuple[str, str],
    constraints: Constraints,
    *,
    whole_price: bool,
    verified: bool,
) -> str:
    """The reason why nobody is given this offer, whatever the job asks; empty where it can be had."""
    plain = not (kind.term_hours or kind.interruptible or kind.max_run_hours or kind.owned)
    region = regions().get(place)
    partition = region.partition if region is not None else "commercial"
    reasons = (
        (each.retired, "retired family"),
        (accelerators()[each.accelerator].trains == "no", "accelerator does not train"),
        (plain and not each.sold_on_demand, "not sold on demand"),
        (not whole_price, "price known only in part"),
        (partition not in constraints.partitions, "another partition (opt in with constraints.partitions)"),
        (
            not verified and not constraints.unverified_availability,
            "availability not verified (opt in with constraints.unverified_availability)",
        ),
    )
    return next((reason for is_so, reason in reasons if is_so), "")


def breaks(
    each: InstanceType, kind: PriceKind, place: tuple[str, str], constraints: Constraints, *, own: bool
) -> frozenset[str]:
    """Names of the requirements that an offer breaks at any number of nodes; own machines may stand anywhere."""
    asked = constraints
    region = regions().get(place)
    vendor = accelerators()[each.accelerator].vendor.lower()
    kinds = asked.price_kinds or tuple(name for name, row in price_kinds().items() if row.in_default)
    kept = {
        "constraints.providers": not asked.providers or each.provider in asked.providers,
        "constraints.accelerators": not asked.accelerators or each.accelerator in asked.accelerators,
        "constraints.vendors": not asked.vendors or vendor in [name.lower() for name in asked.vendors],
        "constraints.instance_types": not asked.instance_types or _named(each.name, asked.instance_types),
        "constraints.regions": own or not asked.regions or _among(place, asked.regions),
        "constraints.geography": own
        or not asked.geography
        or (region is not None and region.geography in asked.geography),
        "constraints.price_kinds": kind.name in kinds,
    }
    return frozenset(name for name, is_kept in kept.items() if not is_kept)


def _named(name: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name.lower(), glob.lower()) for glob in globs)


def _among(place: tuple[str, str], globs: tuple[str, ...]) -> bool:
    """Whether a glob names the region; `azure:east*` speaks of that provider's regions alone."""
    provider, region = place
    parts = [glob.rpartition(":") for glob in globs]
    return any(owner in ("", provider) and fnmatchcase(region.lower(), name.lower()) for owner, _, name in parts)


def winning(each: InstanceType, place: tuple[str, str], kind: str, discounts: tuple[Discount, ...]) -> Discount | None:
    """The most specific discount that holds for an offer, None where none does."""
    return max((one for one in discounts if _holds(one, each, place, kind)), key=_specific, default=None)


def negotiated_micros(
    listed: int, each: InstanceType, place: tuple[str, str], kind: str, discounts: tuple[Discount, ...]
) -> int:
    """The price after the discount that wins, micro-dollars; the list price without one."""
    best = winning(each, place, kind, discounts)
    if best is None:
        return listed
    usd = best.usd_per_hour if best.percent is None else listed / 1e6 * (1.0 - best.percent / 100.0)
    return round(max(LEAST_MICROS, (usd or 0.0) * 1e6))


def _specific(discount: Discount) -> tuple[int, int]:
    machine = 3 if discount.instance_type else 2 if discount.family else 1 if discount.accelerator else 0
    return machine, sum(bool(part) for part in (discount.provider, discount.region, discount.price_kind))


def _holds(discount: Discount, each: InstanceType, place: tuple[str, str], kind: str) -> bool:
    provider, region = place
    return (
        discount.provider in ("", provider)
        and (not discount.region or fnmatchcase(region.lower(), discount.region.lower()))
        and discount.price_kind in ("", kind)
        and (not discount.instance_type or discount.instance_type.lower() == each.name.lower())
        and (not discount.family or _of_family(each.name.lower(), discount.family.lower()))
        and (not discount.accelerator or each.accelerator in accelerator_family(discount.accelerator))
    )


def _of_family(name: str, family: str) -> bool:
    """`p5` of p5.48xlarge and not of p5en.48xlarge, or by a glob."""
    if any(sign in family for sign in "*?["):
        return fnmatchcase(name, family)
    following = name[len(family) : len(family) + 1]
    return name.startswith(family) and not following.isalnum()
