"""Requirements of a job as bits, and the instance types, regions and price kinds that break them."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.offer import InstanceType
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.model.provider_names import provider_kind
from gpuplan.catalog.model.regions import is_place_unknown, regions
from gpuplan.catalog.model.unavailable_machines import why_no_price, why_unavailable
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.candidates.machine_shapes import Shapes
from gpuplan.planner.model.frameworks import framework_of_stack, runs_on
from gpuplan.planner.model.job import REQUIREMENTS, Constraints, TrainingJob

Bits = NDArray[np.uint32]

#: The bit of a requirement is its index in `REQUIREMENTS`.
BIT = {name: np.uint32(1 << i) for i, name in enumerate(REQUIREMENTS)}
#: The requirements that a configuration's carbon can break.
CARBON = BIT["constraints.carbon_budget_kg"] | BIT["objective"]
QUOTA = BIT["constraints.quotas"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Broken:
    """Bits of the requirements that each instance type, region and price kind of a snapshot breaks."""

    by_type: Bits
    by_region: Bits
    by_kind: Bits


def broken(
    columns: Columns,
    shapes: Shapes,
    constraints: Constraints,
    framework: str,
    *,
    owned: bool = False,
    paid: bool = False,
) -> Broken:
    """The bits for one set of constraints and one `training.framework` over one snapshot, or over `owned` machines.

    Own machines are candidates for code of any framework: their owner knows what runs there. Commitments that are already `paid` may be used unless the job names price kinds without theirs.
    """
    if owned:
        constraints, framework = replace(constraints, regions=(), geography=()), "any"
    return Broken(
        by_type=_by_type(columns, shapes, constraints, framework),
        by_region=_by_region(columns, constraints),
        by_kind=(
            np.zeros(len(columns.kinds), np.uint32)
            if paid and not constraints.price_kinds
            else _by_kind(columns.kinds, constraints)
        ),
    )


def _by_type(columns: Columns, shapes: Shapes, constraints: Constraints, framework: str) -> Bits:
    types, device_of_type = columns.instance_types, shapes.accelerator[shapes.of_type]
    bits = np.zeros(len(types), np.uint32)
    if constraints.providers:
        _mark(bits, [type_.provider in constraints.providers for type_ in types], "constraints.providers")
    sellers, seller_of_type = _sellers(columns)
    may_sell = np.array([seller is None or seller in constraints.provider_kinds for seller in sellers])
    _mark(bits, may_sell[seller_of_type], "constraints.provider_kinds")
    if constraints.accelerators:
        wanted = np.array([device.name in constraints.accelerators for device in shapes.accelerators])
        _mark(bits, wanted[device_of_type], "constraints.accelerators")
    if constraints.vendors:
        vendors = {vendor.lower() for vendor in constraints.vendors}
        wanted = np.array([device.vendor.lower() in vendors for device in shapes.accelerators])
        _mark(bits, wanted[device_of_type], "constraints.vendors")
    if constraints.instance_types:
        matches = [_matches(type_.name, constraints.instance_types) for type_ in types]
        _mark(bits, matches, "constraints.instance_types")
    if framework != "any":
        wanted = np.array([runs_on(framework, device.stack) for device in shapes.accelerators])
        _mark(bits, wanted[device_of_type], "training.framework")
    return bits


def allowing_values(instance_type: InstanceType, region: str, price_kind: str) -> dict[str, str]:
    """The value of each requirement on offers that allows this one."""
    provider, chip = instance_type.provider, accelerators()[instance_type.accelerator]
    place, known = f"{provider}:{region}", regions().get((provider, region))
    return {
        "constraints.providers": provider,
        "constraints.provider_kinds": provider_kind(provider, instance_type.name) or "",
        "constraints.accelerators": chip.name,
        "constraints.vendors": chip.vendor,
        "constraints.instance_types": instance_type.name,
        "constraints.regions": "none" if is_place_unknown(region) else place,
        "constraints.geography": known.geography if known and known.geography else f"that of {place}",
        "constraints.price_kinds": price_kind,
        "training.framework": framework_of_stack(chip.stack),
    }


@lru_cache(maxsize=8)
def _sellers(columns: Columns) -> tuple[tuple[str | None, ...], NDArray[np.int64]]:
    """The kinds of providers that occur (None: own machines), and the index of that of each instance type."""
    kinds = [provider_kind(type_.provider, type_.name) for type_ in columns.instance_types]
    occurring = tuple(dict.fromkeys(kinds))
    return occurring, np.array([occurring.index(kind) for kind in kinds], np.int64)


def _by_region(columns: Columns, constraints: Constraints) -> Bits:
    bits = np.zeros(len(columns.regions), np.uint32)
    if constraints.regions:
        matches = [region_matches(provider, region, constraints.regions) for provider, region in columns.regions]
        _mark(bits, matches, "constraints.regions")
    if constraints.geography:
        known = regions()
        matches = [place in known and known[place].geography in constraints.geography for place in columns.regions]
        _mark(bits, matches, "constraints.geography")
    return bits


def _by_kind(kinds: tuple[str, ...], constraints: Constraints) -> Bits:
    bits, asked = np.zeros(len(kinds), np.uint32), kinds_asked(constraints)
    _mark(bits, [kind in asked for kind in kinds], "constraints.price_kinds")
    return bits


def kinds_asked(constraints: Constraints) -> frozenset[str]:
    """The price kinds a job may use: those it names, else the default ones."""
    defaults = (name for name, kind in price_kinds().items() if kind.in_default)
    return frozenset(constraints.price_kinds or defaults)


def _mark(bits: Bits, meets: Sequence[bool] | NDArray[np.bool_], requirement: str) -> None:
    bits |= np.where(np.asarray(meets, np.bool_), np.uint32(0), BIT[requirement])


def region_matches(provider: str, region: str, globs: tuple[str, ...]) -> bool:
    """Whether a region matches one of the globs; `azure:east*` matches regions of that provider only, and none matches a
    place that its provider does not state."""
    for glob in () if is_place_unknown(region) else globs:
        owner, _, name = glob.rpartition(":")
        if owner in ("", provider) and fnmatchcase(region.lower(), name.lower()):
            return True
    return False


def _matches(name: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name.lower(), glob.lower()) for glob in globs)


def refuse_what_matches_nothing(markets: tuple[Columns, ...], constraints: Constraints) -> None:
    """Raise `UnusableInput` for unknown geographies and for globs that match nothing in any market, owned ones included."""
    faults = []
    places = {place for columns in markets for place in columns.regions} if constraints.regions else set()
    for i, glob in enumerate(constraints.regions):
        if not any(region_matches(provider, region, (glob,)) for provider, region in places):
            near = _nearest(glob.rpartition(":")[2], {region for _, region in places})
            faults.append(Fault(("constraints", "regions", i), f"{glob!r} matches no region of the catalogue; {near}"))
    types = [type_ for columns in markets for type_ in columns.instance_types] if constraints.instance_types else []
    names = {type_.name for type_ in types}
    for i, glob in enumerate(constraints.instance_types):
        if not any(_matches(name, (glob,)) for name in names):
            reason = why_unavailable(glob)
            message = (
                f"{glob!r} matches no instance type of the catalogue and no own machine; {_nearest(glob, names)}"
                if reason is None
                else f"{glob!r} cannot be had: {reason}"
            )
            faults.append(Fault(("constraints", "instance_types", i), message))
    known = {region.geography for region in regions().values()}
    for i, geography in enumerate(constraints.geography):
        if geography not in known:
            message = f"unknown geography {geography!r}; one of {', '.join(sorted(known))}"
            faults.append(Fault(("constraints", "geography", i), message))
    if faults:
        raise UnusableInput(*faults)


def unavailable_by_name(markets: tuple[Columns, ...], constraints: Constraints) -> tuple[str, ...]:
    """Why what the constraints name cannot be had, as sentences that begin with the constraint.

    For each glob that matches only machines that are retired or without an offer, and each accelerator without an offer,
    if the reason is known.
    """
    offered = [
        instance_type
        for columns in markets
        for instance_type in (columns.instance_types[number] for number in np.unique(columns.type_index))
        if not instance_type.retired
    ]
    names = {instance_type.name for instance_type in offered}
    devices = {instance_type.accelerator for instance_type in offered}
    globs = [glob for glob in constraints.instance_types if not any(_matches(name, (glob,)) for name in names)]
    reasons = [("instance_types", glob, why_unavailable(glob)) for glob in globs]
    reasons += [("accelerators", name, why_no_price(name)) for name in constraints.accelerators if name not in devices]
    return tuple(f"constraints.{field}: {name}: {reason}" for field, name, reason in reasons if reason is not None)


def _nearest(text: str, names: set[str]) -> str:
    near = difflib.get_close_matches(text.replace("*", ""), sorted(names), n=4, cutoff=0.4)
    return f"nearest: {', '.join(near)}" if near else "globs match the provider's own names"


def present(job: TrainingJob, *, limited_by_quotas: bool) -> tuple[str, ...]:
    """The requirements that this job states: those with a value (max_nodes and the price kinds always apply).

    The objective of least carbon is one, because configurations with unknown carbon cannot be compared.
    """
    by_rule = {
        "constraints.price_kinds": True,
        "objective": job.objective == "carbon",
        "training.framework": job.training.framework != "any",
        "training.precision": job.training.precision != "auto",
        "deadline": job.deadline_hours is not None,
        "budget_usd": job.budget_usd is not None,
        "constraints.quotas": limited_by_quotas,
    }

    def is_stated(name: str) -> bool:
        return getattr(job.constraints, name.removeprefix("constraints.")) not in (None, ())

    return tuple(name for name in REQUIREMENTS if (by_rule[name] if name in by_rule else is_stated(name)))
