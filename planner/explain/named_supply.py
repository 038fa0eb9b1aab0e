"""A named supply (an accelerator, instance type, provider, region or price kind), and the market with or without it.

A name is matched against price kinds, providers, accelerators (and their common names), instance types (also by family,
`p5`) and regions, in this order. The first match counts, and the answer states it. A prefix such as `accelerator: L4`
selects the field. Globs match the providers' own names, as in constraints.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import accelerator_family, accelerators
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.model.unavailable_machines import why_unavailable
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns, LazyOffers
from gpuplan.planner.candidates.job_requirements import region_matches
from gpuplan.planner.cost.negotiated_discounts import is_of_family
from gpuplan.planner.model.settings import ExistingCommitment, PlannerSettings

Flags = NDArray[np.bool_]

FIELDS = ("price_kind", "provider", "accelerator", "instance_type", "region")
#: Fields that all offers of a cell share (one machine shape, price kind and provider). Only such offers replace each other.
WHOLE_CELLS = frozenset(("price_kind", "provider", "accelerator"))
_LONGEST = 100
_ACCEPTED = "write an accelerator such as H100, an instance type such as p5.48xlarge or p5.*, a provider, a region or a price kind"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The meaning of `text`: all of `names` in `field`; regions are (provider, region) pairs joined by a colon."""

    text: str
    field: str
    names: tuple[str, ...]

    def has(self, instance_type: InstanceType, provider: str, region: str, price_kind: str) -> bool:
        """Whether the name covers an offer of this machine, in this region, under this price kind."""
        names_of_offer = {
            "price_kind": price_kind,
            "provider": provider,
            "accelerator": instance_type.accelerator,
            "instance_type": instance_type.name,
            "region": f"{provider}:{region}",
        }
        return names_of_offer[self.field] in self.names


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """Where a job may run: a snapshot, owned machines, and the settings, which include commitments."""

    columns: Columns
    owned: tuple[OwnedMachine, ...]
    settings: PlannerSettings


def named(text: str, supply: Supply, *, field: str) -> Named:
    """The meaning of `text` in a supply. Raises `UnusableInput` at `field` with near names if nothing matches."""
    if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST or not text.isprintable():
        raise UnusableInput.at(field, message=f"{shown(text)} is not accepted; {_ACCEPTED}")
    given = text.strip()
    known = _known(supply)
    head, separator, rest = given.partition(":")
    only = head.strip().lower().replace("-", "_").replace(" ", "_")
    stated = bool(separator) and only in FIELDS
    given = rest.strip() if stated else given
    for candidate_field in (only,) if stated else FIELDS:
        names = _matching(candidate_field, given, known[candidate_field])
        if names:
            return Named(text=text.strip(), field=candidate_field, names=names)
    reason = why_unavailable(given)
    message = f"is not in the snapshot; {_nearest(given, known)}" if reason is None else f"cannot be had: {reason}"
    raise UnusableInput.at(field, message=f"{shown(text)} {message}")


def _known(supply: Supply) -> dict[str, tuple[str, ...]]:
    """Every name of each field, sorted; accelerators, price kinds and owned machines also without an offer."""
    columns, owned = supply.columns, supply.owned
    regions = {":".join(place) for place in columns.regions} | {_place(machine) for machine in owned}
    return {
        "price_kind": tuple(price_kinds()),
        "provider": tuple(sorted({region.partition(":")[0] for region in regions})),
        "accelerator": tuple(accelerators()),
        "instance_type": tuple(
            sorted(
                {instance_type.name for instance_type in columns.instance_types}
                | {machine.instance_type.name for machine in owned}
            )
        ),
        "region": tuple(sorted(regions)),
    }


def _place(machine: OwnedMachine) -> str:
    return f"{machine.instance_type.provider}:{machine.region}"


def _matching(field: str, text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """The known names of a field that a text matches."""
    if field == "region":
        pairs = [(name, *name.split(":", 1)) for name in known]
        return tuple(name for name, provider, region in pairs if region_matches(provider, region, (text,)))
    plain = text.lower()
    if field in {"price_kind", "provider"}:
        plain = plain.replace("-", "_").replace(" ", "_")
    matches = tuple(name for name in known if fnmatchcase(name.lower(), plain))
    if matches or any(char in plain for char in "*?["):
        return matches
    if field == "accelerator":
        return _called(text)
    return tuple(name for name in known if is_of_family(name, plain)) if field == "instance_type" else ()


def _called(text: str) -> tuple[str, ...]:
    """Accelerators by a common name; empty if there is none."""
    try:
        return accelerator_family(text)
    except UnusableInput:
        return ()


def _nearest(text: str, known: dict[str, tuple[str, ...]]) -> str:
    """The names of any field with the closest spelling."""
    bare = text.lower().replace("*", "").replace("?", "")
    spellings = {name.lower().rpartition(":")[2]: name for field in reversed(FIELDS) for name in known[field]}
    near = difflib.get_close_matches(bare, list(spellings), n=5, cutoff=0.5)
    return f"nearest: {', '.join(spellings[spelling] for spelling in near)}" if near else _ACCEPTED


def narrowed(supply: Supply, about: Named, *, only_named: bool) -> Supply:
    """The supply with only the named part, or (`keep` false) with everything else.

    Names of types and regions stay known without offers, so that constraints can still refer to them.
    """
    owned = tuple(machine for machine in supply.owned if _has_machine(about, machine) == only_named)
    commitments = tuple(
        commitment
        for commitment in supply.settings.held
        if _has_commitment(about, supply.columns, commitment) == only_named
    )
    columns = _narrowed(supply.columns, about, only_named=only_named)
    if len(owned) < len(supply.owned):
        columns = _with_names(columns, supply.owned)
    settings = supply.settings
    return Supply(
        columns=columns,
        owned=owned,
        settings=settings if commitments == settings.held else replace(settings, held=commitments),
    )


def offered(supply: Supply) -> bool:
    """Whether a supply has any offer or owned machine."""
    return bool(len(supply.columns) or supply.owned)


def _has_machine(about: Named, owned_machine: OwnedMachine) -> bool:
    return about.has(owned_machine.instance_type, owned_machine.instance_type.provider, owned_machine.region, "owned")


def _has_commitment(about: Named, columns: Columns, existing_commitment: ExistingCommitment) -> bool:
    types = [
        a
        for a in columns.instance_types
        if (a.provider, a.name) == (existing_commitment.provider, existing_commitment.instance_type)
    ]
    # The plan itself refuses a commitment whose type is not in the snapshot.
    return any(
        about.has(a, existing_commitment.provider, existing_commitment.region, existing_commitment.price_kind)
        for a in types
    )


def marked(columns: Columns, about: Named) -> Flags:
    """Which offers of a snapshot the name covers."""
    names = frozenset(about.names)
    by_type = {
        "accelerator": [instance_type.accelerator in names for instance_type in columns.instance_types],
        "instance_type": [instance_type.name in names for instance_type in columns.instance_types],
    }
    by_region = {
        "provider": [provider in names for provider, _ in columns.regions],
        "region": [":".join(place) in names for place in columns.regions],
    }
    if about.field in by_type:
        return np.asarray(np.array(by_type[about.field], np.bool_)[columns.type_index], np.bool_)
    if about.field in by_region:
        return np.asarray(np.array(by_region[about.field], np.bool_)[columns.region_index], np.bool_)
    return np.asarray(np.array([kind in names for kind in columns.kinds], np.bool_)[columns.kind_index], np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class _Some(LazyOffers):
    """Some rows of a snapshot, looked up on access."""

    rows: Sequence[Offer]
    at: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.at)

    def offer_at(self, index: int) -> Offer:
        return self.rows[int(self.at[index])]


@lru_cache(maxsize=4)
def _narrowed(columns: Columns, about: Named, *, only_named: bool) -> Columns:
    """The same snapshot with some of its offers; the last few are cached, since building one takes a while."""
    at = np.flatnonzero(marked(columns, about) == only_named)
    return columns.subset(at, _Some(columns.offers, at))


@lru_cache(maxsize=4)
def _with_names(columns: Columns, owned: tuple[OwnedMachine, ...]) -> Columns:
    """The same offers, with the types and sites of owned machines among the known names."""
    types = {owned_machine.instance_type.name: owned_machine.instance_type for owned_machine in owned}
    places = {(owned_machine.instance_type.provider, owned_machine.region) for owned_machine in owned} - set(
        columns.regions
    )
    return replace(
        columns,
        instance_types=(*columns.instance_types, *types.values()),
        regions=(*columns.regions, *sorted(places)),
    )
