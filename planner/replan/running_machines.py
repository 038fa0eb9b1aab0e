"""The machines of a running job, looked up in the snapshot, the inventory or the commitments, as a market of their own."""

import difflib
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.planner.candidates.machine_shapes import arranged
from gpuplan.planner.candidates.markets import Market, Up, owned_market
from gpuplan.planner.cost.planned_prices import planned_prices
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.replan.running_job import On

#: Machines that run have been billed for something: their first step, minimum or term.
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
    """The market of the named machines, and the assumptions of the lookup.

    Raises `UnusableInput` at fields under `running.on` for machines that do not exist.
    """
    up = Up(nodes=on.nodes, hours=max(up_hours, _LEAST_UP_HOURS))
    mine = [owned_machine for owned_machine in owned if owned_machine.instance_type.name == on.instance_type]
    if mine and on.provider in {"", mine[0].instance_type.provider}:
        return _owned_market(on, mine, settings, now, up), ()
    columns = planned_prices(columns, settings, now)
    offer, notes = _offer(on, columns, owned)
    paid = any(
        (commitment.provider, commitment.region, commitment.instance_type, commitment.price_kind)
        == (offer.provider, offer.region, offer.instance_type, offer.price_kind)
        and commitment.nodes >= on.nodes
        for commitment in settings.held
    )
    known = next(
        instance_type
        for instance_type in columns.instance_types
        if (instance_type.provider, instance_type.name) == (offer.provider, offer.instance_type)
    )
    if known.fixed_nodes and known.fixed_nodes != on.nodes:
        message = f"{on.nodes} is not accepted; {known.name} has {known.fixed_nodes} hosts"
        raise UnusableInput.at("running", "on", "nodes", message=message)
    alone = columns_of(columns.snapshot_id, columns.observed_at, [known], [offer])
    if paid:
        alone = replace(alone, usd_per_hour=np.zeros(1))
    market = Market(
        # Not cached with the arranged snapshots: it would evict them.
        snapshot=replace(arranged.__wrapped__(alone), zones=np.full(1, _zones(offer, columns))),
        node_limit=np.full(1, float(on.nodes)),
        power_usd_per_node_hour=np.zeros(1),
        term_paid=paid,
        up=up,
    )
    return market, notes


def _zones(offer: Offer, columns: Columns) -> int:
    """In how many zones of its region the snapshot lists the machine of an offer at its price kind; 1 if it does not."""
    mine = (offer.provider, offer.region, offer.instance_type, offer.price_kind)
    if (offer.provider, offer.region) not in columns.regions:
        return 1
    in_region = np.flatnonzero(columns.region_index == columns.regions.index((offer.provider, offer.region)))
    rows = (columns.offer(int(i)) for i in in_region)
    return max(1, sum((row.provider, row.region, row.instance_type, row.price_kind) == mine for row in rows))


def _owned_market(on: On, mine: list[OwnedMachine], settings: PlannerSettings, now: datetime, up: Up) -> Market:
    on_site = [owned_machine for owned_machine in mine if on.region in {"", owned_machine.region}]
    if not on_site:
        sites = ", ".join(sorted({owned_machine.region for owned_machine in mine}))
        message = f"{shown(on.region)} is not a site of {on.instance_type}; its sites are {sites}"
        raise UnusableInput.at("running", "on", "region", message=message)
    machine = on_site[0]
    if on.nodes > machine.machines:
        message = f"{on.nodes} is not accepted; the inventory has {machine.machines} of {on.instance_type}"
        raise UnusableInput.at("running", "on", "nodes", message=message)
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return replace(owned_market.__wrapped__((machine,), settings.cost_basis, day), up=up)


def _offer(on: On, columns: Columns, owned: tuple[OwnedMachine, ...]) -> tuple[Offer, tuple[str, ...]]:
    """The one offer that is meant; of several zones the cheapest one."""
    types = {(instance_type.provider, instance_type.name) for instance_type in columns.instance_types}
    providers = sorted({provider for provider, name in types if name == on.instance_type})
    if not providers or (on.provider and on.provider not in providers):
        known = {name for provider, name in types if on.provider in {"", provider}}
        known |= {owned_machine.instance_type.name for owned_machine in owned}
        raise _unknown("instance_type", on.instance_type, known, "is not in the snapshot")
    if len(providers) > 1 and not on.provider:
        message = f"is missing: {on.instance_type} is on {' and '.join(providers)}"
        raise UnusableInput.at("running", "on", "provider", message=message)
    owner = on.provider or providers[0]
    type_at = next(
        i
        for i, instance_type in enumerate(columns.instance_types)
        if (instance_type.provider, instance_type.name) == (owner, on.instance_type)
    )
    rows = [columns.offer(int(i)) for i in np.flatnonzero(columns.type_index == type_at)]
    for name, value in (("price_kind", on.price_kind), ("region", on.region), ("zone", on.zone)):
        values = {getattr(row, name) for row in rows}
        if name == "zone" and not value:
            break
        if name == "region" and not value:
            if len(values) > 1:
                message = (
                    f"is missing: {on.instance_type} is offered in {len(values)} regions; name the one that it runs in"
                )
                raise UnusableInput.at("running", "on", "region", message=message)
            continue
        if value not in values:
            raise _unknown(name, value, values, f"has no price of {on.instance_type} in the snapshot")
        rows = [row for row in rows if getattr(row, name) == value]
    offer = min(rows, key=lambda row: (row.usd_micros_per_hour, row.key))
    if len(rows) == 1:
        return offer, ()
    return offer, (
        f"the zone is not given: the cheapest of {len(rows)} in {offer.region} is assumed, {offer.zone or 'the region'}",
    )


def _unknown(name: str, value: str, known: set[str], what: str) -> UnusableInput:
    near = difflib.get_close_matches(value, sorted(known), n=4, cutoff=0.4) or sorted(known)[:4]
    message = f"{shown(value)} {what}; nearest: {', '.join(known_name or 'none' for known_name in near)}"
    return UnusableInput(Fault(("running", "on", name), message))
