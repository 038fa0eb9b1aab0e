"""The machines that run a job, found in the snapshot, the inventory or among commitments, as a market of their own."""

import difflib
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from catalog.columns import Columns, columns_of
from catalog.errors import Fault, UnusableInput
from catalog.offer import Offer
from catalog.owned import OwnedMachine
from catalog.quantities import shown
from planner.candidates.market import Market, Up, owned_market
from planner.candidates.shapes import arranged
from planner.discounts import discounted
from planner.replan.under_way import On
from planner.settings import PlannerSettings

#: Machines that run have been billed for something: their first step, least time or term.
_LEAST_UP_HOURS = 1 / 3600


def running_market(
    on: On,
    columns: Columns,
    owned: tuple[OwnedMachine, ...],
    settings: PlannerSettings,
    *,
    now: datetime,
    up_hours: float,
) -> tuple[Market, tuple[str, ...]]:
    """The market of the machines named, and what was assumed to find them.

    Raises `UnusableInput` at fields under `running.on` for machines that are nowhere to be found.
    """
    up = Up(nodes=on.nodes, hours=max(up_hours, _LEAST_UP_HOURS))
    mine = [each for each in owned if each.instance_type.name == on.instance_type]
    if mine and on.provider in {"", mine[0].instance_type.provider}:
        return _own(on, mine, settings, now, up), ()
    columns = discounted(columns, settings.discounts)
    offer, notes = _offer(on, columns, owned)
    paid = any(
        (each.provider, each.region, each.instance_type, each.price_kind)
        == (offer.provider, offer.region, offer.instance_type, offer.price_kind)
        and each.nodes >= on.nodes
        for each in settings.held
    )
    known = next(
        each for each in columns.instance_types if (each.provider, each.name) == (offer.provider, offer.instance_type)
    )
    if known.fixed_nodes and known.fixed_nodes != on.nodes:
        message = f"{on.nodes} is not accepted; {known.name} has {known.fixed_nodes} hosts"
        raise UnusableInput.at("running", "on", "nodes", message=message)
    alone = columns_of(columns.snapshot_id, columns.observed_at, [known], [offer])
    if paid:
        alone = replace(alone, usd_per_hour=np.zeros(1))
    market = Market(
        # Not kept among the arranged snapshots: it would push them out.
        snapshot=arranged.__wrapped__(alone),
        node_limit=np.full(1, float(on.nodes)),
        power_usd_per_node_hour=np.zeros(1),
        term_paid=paid,
        up=up,
    )
    return market, notes


def _own(on: On, mine: list[OwnedMachine], settings: PlannerSettings, now: datetime, up: Up) -> Market:
    here = [each for each in mine if on.region in {"", each.region}]
    if not here:
        sites = ", ".join(sorted({each.region for each in mine}))
        message = f"{shown(on.region)} is not where {on.instance_type} stands; it stands in {sites}"
        raise UnusableInput.at("running", "on", "region", message=message)
    machine = here[0]
    if on.nodes > machine.machines:
        message = f"{on.nodes} is not accepted; the inventory has {machine.machines} of {on.instance_type}"
        raise UnusableInput.at("running", "on", "nodes", message=message)
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return replace(owned_market.__wrapped__((machine,), settings.cost_basis, day), up=up)


def _offer(on: On, columns: Columns, owned: tuple[OwnedMachine, ...]) -> tuple[Offer, tuple[str, ...]]:
    """The one offer that is meant; of several zones that of least price."""
    types = {(each.provider, each.name) for each in columns.instance_types}
    providers = sorted({provider for provider, name in types if name == on.instance_type})
    if not providers or (on.provider and on.provider not in providers):
        known = {name for provider, name in types if on.provider in {"", provider}}
        known |= {each.instance_type.name for each in owned}
        raise _unknown("instance_type", on.instance_type, known, "is not in the snapshot")
    if len(providers) > 1 and not on.provider:
        message = f"is missing: {on.instance_type} is on {' and '.join(providers)}"
        raise UnusableInput.at("running", "on", "provider", message=message)
    owner = on.provider or providers[0]
    type_at = next(
        i for i, each in enumerate(columns.instance_types) if (each.provider, each.name) == (owner, on.instance_type)
    )
    rows = [columns.offer(int(i)) for i in np.flatnonzero(columns.type_index == type_at)]
    for name, value in (("price_kind", on.price_kind), ("region", on.region), ("zone", on.zone)):
        there = {getattr(row, name) for row in rows}
        if name == "zone" and not value:
            break
        if name == "region" and not value:
            if len(there) > 1:
                message = (
                    f"is missing: {on.instance_type} is offered in {len(there)} regions; name the one that it runs in"
                )
                raise UnusableInput.at("running", "on", "region", message=message)
            continue
        if value not in there:
            raise _unknown(name, value, there, f"has no price of {on.instance_type} in the snapshot")
        rows = [row for row in rows if getattr(row, name) == value]
    offer = min(rows, key=lambda row: (row.usd_micros_per_hour, row.key))
    if len(rows) == 1:
        return offer, ()
    return offer, (
        f"the zone is not given: the cheapest of {len(rows)} in {offer.region} is taken, {offer.zone or 'the region'}",
    )


def _unknown(name: str, value: str, known: set[str], what: str) -> UnusableInput:
    near = difflib.get_close_matches(value, sorted(known), n=4, cutoff=0.4) or sorted(known)[:4]
    message = f"{shown(value)} {what}; nearest: {', '.join(each or 'none' for each in near)}"
    return UnusableInput(Fault(("running", "on", name), message))
