"""What a question names (an accelerator, instance type, provider, region or price kind), and the market with or without it.

A name is looked for among price kinds, providers, accelerators (and what people call them), instance types (also by
family, `p5`) and regions, in this order; the first that knows it is meant, and the answer says so. `accelerator: L4`
and the like settle it otherwise. Globs match the providers' own names, as in constraints.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from catalog.accelerators import accelerator_family, accelerators
from catalog.columns import Columns
from catalog.errors import UnusableInput
from catalog.offer import InstanceType, Offer
from catalog.owned import OwnedMachine
from catalog.price_kinds import price_kinds
from catalog.quantities import shown
from planner.candidates.requirements import region_matches
from planner.discounts import is_of_family
from planner.settings import HeldCommitment, PlannerSettings

Flags = NDArray[np.bool_]

FIELDS = ("price_kind", "provider", "accelerator", "instance_type", "region")
#: Fields that all offers of one machine shape, kind and provider share, which only ever stand in for one another.
WHOLE_CELLS = frozenset(("price_kind", "provider", "accelerator"))
_LONGEST = 100
_ACCEPTED = "write an accelerator such as H100, an instance type such as p5.48xlarge or p5.*, a provider, a region or a price kind"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What `text` was taken for: all of `names` in `field`; regions are (provider, region) pairs joined by a colon."""

    text: str
    field: str
    names: tuple[str, ...]

    def has(self, each: InstanceType, provider: str, region: str, price_kind: str) -> bool:
        """Whether an offer of this machine, in this place, under this kind is meant."""
        own = {
            "price_kind": price_kind,
            "provider": provider,
            "accelerator": each.accelerator,
            "instance_type": each.name,
            "region": f"{provider}:{region}",
        }
        return own[self.field] in self.names


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """Where a job may run: a snapshot, own machines, and the settings that say what is held."""

    columns: Columns
    owned: tuple[OwnedMachine, ...]
    settings: PlannerSettings


def named(text: str, supply: Supply, *, field: str) -> Named:
    """What `text` means in a supply. Raises `UnusableInput` at `field` with near names if nothing is called so."""
    if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST or not text.isprintable():
        raise UnusableInput.at(field, message=f"{shown(text)} is not accepted; {_ACCEPTED}")
    given = text.strip()
    known = _known(supply)
    head, separator, rest = given.partition(":")
    only = head.strip().lower().replace("-", "_").replace(" ", "_")
    stated = bool(separator) and only in FIELDS
    given = rest.strip() if stated else given
    for each in (only,) if stated else FIELDS:
        names = _matching(each, given, known[each])
        if names:
            return Named(text=text.strip(), field=each, names=names)
    raise UnusableInput.at(field, message=f"{shown(text)} is nothing that the snapshot knows; {_nearest(given, known)}")


def _known(supply: Supply) -> dict[str, tuple[str, ...]]:
    """Every name of each field, sorted; accelerators, kinds and own machines also where they have no offer."""
    columns, owned = supply.columns, supply.owned
    regions = {":".join(place) for place in columns.regions} | {_place(machine) for machine in owned}
    return {
        "price_kind": tuple(price_kinds()),
        "provider": tuple(sorted({region.partition(":")[0] for region in regions})),
        "accelerator": tuple(accelerators()),
        "instance_type": tuple(
            sorted({each.name for each in columns.instance_types} | {machine.instance_type.name for machine in owned})
        ),
        "region": tuple(sorted(regions)),
    }


def _place(machine: OwnedMachine) -> str:
    return f"{machine.instance_type.provider}:{machine.region}"


def _matching(field: str, text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the known names of a field that a text means."""
    if field == "region":
        pairs = [(name, *name.split(":", 1)) for name in known]
        return tuple(name for name, provider, region in pairs if region_matches(provider, region, (text,)))
    plain = text.lower()
    if field in {"price_kind", "provider"}:
        plain = plain.replace("-", "_").replace(" ", "_")
    found = tuple(name for name in known if fnmatchcase(name.lower(), plain))
    if found or any(char in plain for char in "*?["):
        return found
    if field == "accelerator":
        return _called(text)
    return tuple(name for name in known if is_of_family(name, plain)) if field == "instance_type" else ()


def _called(text: str) -> tuple[str, ...]:
    """Accelerators by what people call them; none if nobody does."""
    try:
        return accelerator_family(text)
    except UnusableInput:
        return ()


def _nearest(text: str, known: dict[str, tuple[str, ...]]) -> str:
    """What is spelt most alike, of every field."""
    bare = text.lower().replace("*", "").replace("?", "")
    spellings = {name.lower().rpartition(":")[2]: name for field in reversed(FIELDS) for name in known[field]}
    near = difflib.get_close_matches(bare, list(spellings), n=5, cutoff=0.5)
    return f"nearest: {', '.join(spellings[each] for each in near)}" if near else _ACCEPTED


def narrowed(supply: Supply, about: Named, *, keep: bool) -> Supply:
    """The supply with nothing but what is named, or (`keep` off) with everything else.

    Names of types and regions stay known though nothing is offered of them, so that constraints still make sense.
    """
    owned = tuple(each for each in supply.owned if _has_machine(about, each) == keep)
    held = tuple(each for each in supply.settings.held if _has_held(about, supply.columns, each) == keep)
    columns = _narrowed(supply.columns, about, keep=keep)
    if len(owned) < len(supply.owned):
        columns = _with_names(columns, supply.owned)
    settings = supply.settings
    return Supply(
        columns=columns,
        owned=owned,
        settings=settings if held == settings.held else replace(settings, held=held),
    )


def offered(supply: Supply) -> bool:
    """Whether a supply has anything at all."""
    return bool(len(supply.columns) or supply.owned)


def _has_machine(about: Named, each: OwnedMachine) -> bool:
    return about.has(each.instance_type, each.instance_type.provider, each.region, "owned")


def _has_held(about: Named, columns: Columns, each: HeldCommitment) -> bool:
    types = [a for a in columns.instance_types if (a.provider, a.name) == (each.provider, each.instance_type)]
    # What names no type of the snapshot is for the plan to refuse, with or without.
    return any(about.has(a, each.provider, each.region, each.price_kind) for a in types)


def marked(columns: Columns, about: Named) -> Flags:
    """Which offers of a snapshot are named."""
    names = frozenset(about.names)
    by_type = {
        "accelerator": [each.accelerator in names for each in columns.instance_types],
        "instance_type": [each.name in names for each in columns.instance_types],
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
class _Some(Sequence[Offer]):
    """Some rows of a snapshot, looked up when they are asked for."""

    rows: Sequence[Offer]
    at: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.at)

    @overload
    def __getitem__(self, index: int) -> Offer: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Offer]: ...

    def __getitem__(self, index: int | slice) -> Offer | Sequence[Offer]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self.rows[int(self.at[index])]


@lru_cache(maxsize=4)
def _narrowed(columns: Columns, about: Named, *, keep: bool) -> Columns:
    """The same snapshot with some of its offers; kept for the last few questions, since arranging one takes a while."""
    at = np.flatnonzero(marked(columns, about) == keep)
    return replace(
        columns,
        offers=_Some(columns.offers, at),
        type_index=columns.type_index[at],
        region_index=columns.region_index[at],
        kind_index=columns.kind_index[at],
        usd_per_hour=columns.usd_per_hour[at],
        interruptions_per_hour=columns.interruptions_per_hour[at],
        plannable=columns.plannable[at],
        verified=columns.verified[at],
    )


@lru_cache(maxsize=4)
def _with_names(columns: Columns, owned: tuple[OwnedMachine, ...]) -> Columns:
    """The same offers, with the types and sites of own machines among the names that are known."""
    types = {each.instance_type.name: each.instance_type for each in owned}
    places = {(each.instance_type.provider, each.region) for each in owned} - set(columns.regions)
    return replace(
        columns,
        instance_types=(*columns.instance_types, *types.values()),
        regions=(*columns.regions, *sorted(places)),
    )
