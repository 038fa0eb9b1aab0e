"""The capacity ladder of an answer, as far as exports follow it."""

from dataclasses import replace

from gpuplan.api.exports.handover_fields import (
    MOST_PHASES,
    Where,
    read_kind,
    read_mapping,
    read_name,
    read_number,
    read_time,
    read_usd,
)
from gpuplan.api.exports.plan_handover import TRY_MINUTES, LastChoice, NextPlace, Phase
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import UnusableInput


def next_places(plan: JsonObject, first: Phase, at: Where) -> tuple[NextPlace, ...]:
    """The next choices with the first phase's own machines; plans of older releases have none."""
    if plan.get("capacity_ladder") is None:
        return ()
    where = (*at, "capacity_ladder")
    rows = read_mapping(plan["capacity_ladder"], where).get("next_choices")
    if not isinstance(rows, list) or len(rows) > MOST_PHASES:
        message = f"is not accepted; a ladder has at most {MOST_PHASES} next choices"
        raise UnusableInput.at(*where, "next_choices", message=message)
    places = []
    for i, item in enumerate(rows):
        inner = (*where, "next_choices", i)
        row = read_mapping(item, inner)
        if (row.get("provider"), row.get("instance_type"), row.get("nodes")) == (
            first.provider,
            first.instance_type,
            first.nodes,
        ):
            zone = read_name(row, "zone", inner, first.provider) if row.get("zone") else ""
            region = read_name(row, "region", inner, first.provider)
            price = read_usd(row, "usd_per_node_hour", inner)[1]
            place = NextPlace(region=region, zone=zone, kind=read_kind(row, inner), usd_per_node_hour=price)
            places.append(replace(place, is_last=i == len(rows) - 1))
    return tuple(places)


def last_choice(plan: JsonObject, first: Phase, at: Where) -> LastChoice | None:
    """Until when all but the last choice are asked for again; None where the plan says nothing of it."""
    where = (*at, "capacity_ladder")
    ladder = {} if plan.get("capacity_ladder") is None else read_mapping(plan["capacity_ladder"], where)
    if ladder.get("last_choice_by") is None or not ladder.get("next_choices"):
        return None
    last = read_mapping(ladder["next_choices"][-1], (*where, "next_choices"))
    within, begins = (*at, "phases", 0), read_mapping(plan["phases"][0], (*at, "phases", 0))
    if begins.get("setup_hours") is None:
        # Plans of older releases state the set-up in their settings alone.
        within, begins = (*at, "settings"), read_mapping(plan.get("settings"), (*at, "settings"))
    setup = read_number(begins, "setup_hours", within, low=0, high=1e4)
    return LastChoice(
        by=read_time(ladder, "last_choice_by", where),
        hours=read_number(last, "hours", (*where, "next_choices"), low=0.0, high=1e6),
        lost_hours=setup + (first.checkpoint_interval_hours or 0.0),
    )


def try_minutes(plan: JsonObject, at: Where) -> float:
    """The minutes for which each place of the ladder is asked."""
    if plan.get("capacity_ladder") is None:
        return TRY_MINUTES
    where = (*at, "capacity_ladder")
    ladder = read_mapping(plan["capacity_ladder"], where)
    return read_number(ladder, "try_minutes", where, low=1.0, high=1440.0, default=TRY_MINUTES)
