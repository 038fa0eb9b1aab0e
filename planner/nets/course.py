"""The cheapest pair under a net as a course: the spot run as planned, the standby with its probability, in words."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.answer import Cost, Hours, Moved, Phase
from planner.candidates.configurations import Configurations
from planner.candidates.gather import Candidates
from planner.candidates.places import copied
from planner.cost.expected_billing import mean_factor
from planner.nets.offers import Netted, carbon_of
from planner.phase import phase
from planner.phases.columns import PhaseColumns
from planner.phases.course import Course
from planner.spot.net import billed
from planner.spot.net_exact import NetRun

Floats = NDArray[np.float64]

_PARTS = ("compute", "storage", "egress", "power", "setup")


def under_net(found: Candidates, netted: Netted) -> Course:
    """The plan on a pair as a course: the spot run as planned, the standby with its probability."""
    columns, run = netted.columns, netted.found.run
    spot_kg, standby_kg = carbon_of(columns, netted.spot, netted.standby, run, netted.start)
    spot_cost, standby_cost = _costs(netted)
    share = _share_on_spot(netted)
    delay = netted.start.delay_hours
    planned = _leg(found, columns.table, netted.spot, spot_cost, run.spot_wall_hours)
    planned = replace(
        planned,
        begins_hours=delay,
        checkpoint_interval_hours=run.interval_hours,
        expected_preemptions=float(columns.table.cluster_rate[netted.spot])
        * (run.spot_hours - netted.start.setup_hours),
        carbon_kg=None if np.isnan(spot_kg) else spot_kg,
    )
    standby = _leg(found, columns.table, netted.standby, standby_cost, run.standby_hours)
    standby = replace(
        standby,
        role="standby",
        share=1.0 - share,
        begins_hours=delay + run.switch_hours,
        probability=run.switch_probability,
        switch_by_hours=delay + run.switch_hours,
        switch_share=share_needed(
            delay + run.switch_hours, _last_moment(columns, run), float(columns.run.work_hours[netted.standby])
        ),
        moved=_moved(found, netted, planned, standby),
        carbon_kg=None if np.isnan(standby_kg) else standby_kg,
    )
    total = {name: getattr(spot_cost, name) + getattr(standby_cost, name) for name in _PARTS}
    return Course(
        phases=(planned, standby),
        cost=Cost(**total, median=round(run.usd_median * 1e6), p95=max(round(run.usd_p95 * 1e6), sum(total.values()))),
        hours=Hours(
            expected=delay + run.hours,
            median=delay + run.hours_median,
            confident=min(delay + run.hours_kept, columns.deadline_hours),
            p95=delay + run.hours_p95,
        ),
        deadline_probability=run.in_time,
        notes=_notes(netted),
    )


def _leg(found: Candidates, table: Configurations, index: int, cost: Cost, hours: float) -> Phase:
    whole = phase(found, table, index)
    clock = Hours(expected=hours, median=hours, confident=hours, p95=hours)
    return replace(whole, choice=replace(whole.choice, cost=cost, hours=clock))


def _costs(netted: Netted) -> tuple[Cost, Cost]:
    """What either leg costs on average, in micro-dollars; a leg's quantiles are its expectation, the course states its own."""
    columns, run = netted.columns, netted.found.run
    given, k, m, setup = columns.run, netted.spot, netted.standby, columns.settings.setup_hours
    spot_rate = float(given.nodes[k] * given.usd_per_node_hour[k])
    compute = spot_rate * float(_billed(columns, k, run.spot_hours))
    ready = min(spot_rate * netted.start.setup_hours, compute)
    lead, fetch = (0.0, 0.0) if given.takeover is None else (given.takeover.lead_usd[k], given.takeover.fetch_usd[k])
    spot = _cost(
        compute=compute - ready,
        setup=ready + float(lead),
        storage=float(given.storage_usd_per_hour[k]) * run.spot_wall_hours,
        egress=float(given.egress_usd[k] + fetch),
        power=0.0,
    )
    used = max(run.switch_probability, 1e-12)
    standby_rate = float(given.nodes[m] * given.usd_per_node_hour[m])
    compute = standby_rate * run.switch_probability * float(_billed(columns, m, run.standby_hours / used))
    ready = min(standby_rate * run.switch_probability * setup, compute)
    standby = _cost(
        compute=compute - ready,
        setup=ready,
        storage=float(given.storage_usd_per_hour[m]) * run.standby_hours,
        egress=run.switch_probability * _moving_usd(netted),
        power=float(given.nodes[m] * given.power_usd_per_node_hour[m]) * run.standby_hours,
    )
    return spot, standby


def _billed(columns: PhaseColumns, index: int, hours: float) -> Floats:
    run = columns.run
    return billed(np.array(hours), run.billing_step_hours[index], run.billing_minimum_hours[index])


def _cost(**usd: float) -> Cost:
    """A leg's cost: its total rounded once, compute taking what rounding the parts would shift."""
    micros = {name: round(value * 1e6) for name, value in usd.items()}
    whole = round(sum(usd.values()) * 1e6)
    micros["compute"] += whole - sum(micros.values())
    return Cost(**micros, median=whole, p95=whole)


def _moving_usd(netted: Netted) -> float:
    """Checkpoint and data brought to the standby, if it is elsewhere."""
    k, m = np.array([netted.spot]), np.array([netted.standby])
    if bool(netted.moving.near(k, m)[0]):
        return 0.0
    return float(netted.moving.egress_usd(k, m)[0] + netted.columns.data_usd[netted.standby])


def _moved(found: Candidates, netted: Netted, before: Phase, after: Phase) -> Moved:
    origin, offer = before.choice.offer, after.choice.offer
    stays = (origin.provider, origin.region) == (offer.provider, offer.region)
    return Moved(
        origin=origin,
        checkpoint_gb=netted.columns.checkpoint_gb,
        data_gb=0.0 if stays else copied(found.question.job.data, offer.provider, offer.region),
        egress=after.choice.cost.egress,
    )


def _share_on_spot(netted: Netted) -> float:
    """The share of the work that is saved on spot, on average."""
    run, given = netted.found.run, netted.columns.run
    work = float(given.work_hours[netted.standby] * mean_factor(given.log_sigma[netted.standby]))
    trained = run.standby_hours - run.switch_probability * run.changeover_hours
    return min(max(1.0 - trained / work, 0.0), 1.0)


def _last_moment(columns: PhaseColumns, run: NetRun) -> float:
    """The last moment at which the standby could be called with all but nothing left to do."""
    return columns.deadline_hours - run.length_hours - run.changeover_hours


def share_needed(at_hours: float, last_moment_hours: float, standby_hours: float) -> float:
    """The share of the work that must be saved `at_hours` after the start for the standby to be in time."""
    return min(max(1.0 - (last_moment_hours - at_hours) / standby_hours, 0.0), 1.0)


def _notes(netted: Netted) -> tuple[str, ...]:
    run = netted.found.run
    standby = float(netted.columns.run.work_hours[netted.standby])
    ready, compared = run.length_hours + run.changeover_hours, netted.searched
    said = [
        (
            f"at any time the standby is called once the hours left are no more than {ready:.3g} h, for an interval between "
            f"checkpoints and the changeover, and {standby:.4g} h times the share of the work that is not saved"
        ),
        (
            "the run is in time unless its hours are so underestimated that the standby itself comes too late; the error is "
            "one factor for both machines and shows in the first interval"
        ),
        (
            "costs and hours are expectations over preemptions and that error, each machine billed by its expected hours "
            "given that it runs; a standby's share of the work is that expected of it"
        ),
        f"checkpoints every {run.interval_hours:.2g} h: the best of Young's interval and halves of it under this deadline",
        (
            f"{compared.pairs:,} pairs of spot and standby were compared: all by a bound, {compared.by_moments:,} by "
            f"moments, and {compared.exactly:,} runs of them, each at an interval between checkpoints, exactly; of each "
            "machine, kind and provider those that no other beats"
        ),
        "standbys are machines that are there at once, without booking, term, windows or interruption",
    ]
    return tuple(said)
