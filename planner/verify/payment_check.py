"""Checks of prices with a term for the machine of a plan, and of what remains to pay after credits."""

from datetime import timedelta

from gpuplan.catalog.model.money import usd_micros
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.planner.verify.alternatives_check import CHECK
from gpuplan.planner.verify.field_coverage import Path
from gpuplan.planner.verify.named_offers import Named
from gpuplan.planner.verify.verification_context import Context
from gpuplan.planner.verify.wall_clock_hours import NEVER_HOURS


def credit_use(context: Context, spent: dict[str, int], confident_hours: float) -> None:
    """Check the cost that remains after credits; `spent` is micro-dollars by provider."""
    field_coverage, submitted_plan = context.field_coverage, context.submitted_plan
    granted = submitted_plan.settings.credits
    if not granted:
        return
    paid = _out_of_pocket(context, spent, confident_hours)
    applied = sum(spent.values()) - paid
    field_coverage.is_money(
        CHECK, ("credits", "applied_usd"), applied, "not what the credits cover", relative=context.relative
    )
    field_coverage.is_money(
        CHECK, ("credits", "out_of_pocket_usd"), paid, "not the amount left to pay", relative=context.relative
    )
    others = []
    for number in range(field_coverage.size("alternatives")):
        path: Path = ("alternatives", number)
        if not (field_coverage.value(*path, "meets_deadline") and field_coverage.value(*path, "meets_budget")):
            continue
        provider, micros = field_coverage.text(*path, "provider"), field_coverage.micros(*path, "cost_usd")
        left = _out_of_pocket(context, {provider: micros}, field_coverage.number(*path, "hours_confident"))
        others.append((left, field_coverage.text(*path, "label")))
    least = min(others, default=None)
    better = least is not None and least[0] < paid
    why = "not whether an alternative leaves less to pay"
    if not field_coverage.is_there(CHECK, ("credits", "least_out_of_pocket"), better, why) or least is None:
        return
    field_coverage.is_same(
        CHECK, ("credits", "least_out_of_pocket", "label"), least[1], "not the alternative with the least to pay"
    )
    field_coverage.is_money(
        CHECK, ("credits", "least_out_of_pocket", "out_of_pocket_usd"), least[0], "not the amount that it leaves to pay"
    )


def _out_of_pocket(context: Context, spent: dict[str, int], hours: float) -> int:
    end = context.submitted_plan.start + timedelta(hours=min(hours, NEVER_HOURS))
    left = 0
    for provider, micros in spent.items():
        granted = sum(
            usd_micros(credit.usd)
            for credit in context.submitted_plan.settings.credits
            if credit.provider == provider and (credit.expires is None or end <= credit.expires)
        )
        left += max(0, micros - granted)
    return left


def commitments(context: Context, phase: Named | None) -> None:
    """Check the prices with a term for the plan's machine: price in the snapshot, obligation and break-even hours.

    A plan in phases (None) has none.
    """
    field_coverage = context.field_coverage
    count = field_coverage.size("commitments")
    if phase is None:
        field_coverage.is_true(CHECK, ("commitments",), not count, [], "a plan in phases has none")
        return
    offered = _offered(context, phase)
    listed = {_commitment(context, ("commitments", number), phase, offered) for number in range(count)}
    expected = set() if phase.offer_group.machine.owned is not None or phase.offer_group.paid else offered
    field_coverage.is_true(
        CHECK, ("commitments",), listed == expected, sorted(expected), "not the possible commitments"
    )


def _offered(context: Context, phase: Named) -> set[str]:
    """The price kinds with a term at which the snapshot offers the machine in its place."""
    machine = (phase.offer_group.place, phase.offer_group.machine.type.name)
    return {
        offer_group.kind.name
        for offer_group in context.open_offers.offer_groups
        if offer_group.source_number == 0
        and offer_group.kind.term_hours
        and (offer_group.place, offer_group.machine.type.name) == machine
    }


def _commitment(context: Context, path: Path, phase: Named, offered: set[str]) -> str:
    """Check one commitment; the price kind that it names."""
    field_coverage, (_, place_region) = context.field_coverage, phase.offer_group.place
    kind, name, region = (field_coverage.text(*path, field) for field in ("price_kind", "instance_type", "region"))
    nodes = field_coverage.whole(*path, "nodes", least=1)
    type_name = phase.offer_group.machine.type.name
    field_coverage.is_same(CHECK, (*path, "instance_type"), type_name, "not the machine of the plan")
    field_coverage.is_same(CHECK, (*path, "region"), place_region, "not the place of the plan")
    field_coverage.is_same(CHECK, (*path, "nodes"), phase.nodes, "not the nodes of the plan")
    known_kind = kind if kind in offered else None
    field_coverage.is_same(CHECK, (*path, "price_kind"), known_kind, "the machine has no such price in this place")
    price = field_coverage.micros(*path, "usd_per_node_hour")
    known = context.counter.prices(phase.offer_group.place, name, kind) if region == place_region else set()
    field_coverage.tick(CHECK, (*path, "usd_per_node_hour"))
    field_coverage.is_true(
        "prices", (*path, "usd_per_node_hour"), price in known, None, "no such price in the snapshot"
    )
    named_kind = price_kinds().get(kind)
    if named_kind is None or not named_kind.term_hours:
        field_coverage.tick(CHECK, (*path, "total_obligation_usd"), (*path, "break_even_hours"))
        return kind
    hours = named_kind.term_hours
    obligation = nodes * price * hours
    paid = phase.offer_group.micros if phase.offer is None else phase.offer.usd_micros_per_hour
    busy = obligation / max(1, phase.nodes * paid)
    field_coverage.is_money(
        CHECK, (*path, "total_obligation_usd"), obligation, "not nodes x price x term", relative=0.0
    )
    field_coverage.is_number(
        CHECK, (*path, "break_even_hours"), busy if busy <= hours else None, "not where it pays off"
    )
    return kind
