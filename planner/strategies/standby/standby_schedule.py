"""The cheapest pair of spot and standby as a schedule: the spot run as planned, the standby with its probability."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.candidates.configurations import Configurations
from gpuplan.planner.candidates.place_costs import copied
from gpuplan.planner.cost.billing_rounding import mean_factor
from gpuplan.planner.cost.cost_quantiles import cost_quantiles, relative_prices
from gpuplan.planner.cost.preemption_and_checkpoint_interval import wait_log_spread
from gpuplan.planner.model.outcome import CostMicros, Moved, PhaseChoice
from gpuplan.planner.model.shared import Hours
from gpuplan.planner.strategies.phased.phase_columns import PhaseColumns
from gpuplan.planner.strategies.schedule import Schedule, phase
from gpuplan.planner.strategies.standby.exact_standby_run import StandbyRun
from gpuplan.planner.strategies.standby.standby_pairs import StandbyPlan, carbon_of
from gpuplan.planner.strategies.standby.standby_switching import billed

Floats = NDArray[np.float64]

_PARTS = ("compute", "storage", "egress", "power", "setup")


def standby_schedule(candidates: Candidates, standby_plan: StandbyPlan) -> Schedule:
    """The plan on a pair as a schedule: the spot run as planned, the standby with its probability."""
    columns, run = standby_plan.columns, standby_plan.pair.run
    spot_kg, standby_kg = carbon_of(columns, standby_plan.spot, standby_plan.standby, run)
    spot_cost, standby_cost = _costs(standby_plan)
    share = _share_on_spot(standby_plan)
    delay = standby_plan.delay_hours
    planned = _leg(candidates, columns.table, standby_plan.spot, spot_cost, run.spot_wall_hours)
    planned = replace(
        planned,
        begins_hours=delay,
        checkpoint_interval_hours=run.interval_hours,
        expected_preemptions=float(columns.table.cluster_rate[standby_plan.spot])
        * (run.spot_hours - float(columns.run.setup_hours[standby_plan.spot])),
        carbon_kg=None if np.isnan(spot_kg) else spot_kg,
    )
    standby = _leg(candidates, columns.table, standby_plan.standby, standby_cost, run.standby_hours)
    standby = replace(
        standby,
        role="standby",
        share=1.0 - share,
        begins_hours=delay + run.switch_hours,
        probability=run.switch_probability,
        switch_by_hours=delay + run.switch_hours,
        switch_share=share_needed(
            delay + run.switch_hours, _last_moment(columns, run), float(columns.run.work_hours[standby_plan.standby])
        ),
        moved=_moved(candidates, standby_plan, planned, standby),
        carbon_kg=None if np.isnan(standby_kg) else standby_kg,
    )
    total = {name: getattr(spot_cost, name) + getattr(standby_cost, name) for name in _PARTS}
    return Schedule(
        phases=(planned, standby),
        cost=_total(run, planned, standby, total),
        hours=Hours(
            expected=delay + run.hours,
            median=delay + run.hours_median,
            confident=min(delay + run.hours_at_confidence, columns.deadline_hours),
            p95=delay + max(run.hours_p95, run.hours),
        ),
        deadline_probability=run.in_time,
        notes=_notes(standby_plan),
    )


def _total(run: StandbyRun, spot: PhaseChoice, standby: PhaseChoice, parts: dict[str, int]) -> CostMicros:
    """The cost of both legs, with the spread of the prices that are estimates in its quantiles.

    Few calls of a dear standby may raise the mean above what 95 % of runs cost; then that is stated as the mean.
    """
    spot_price, standby_price = (relative_prices(leg.choice.offer) for leg in (spot, standby))
    median, p95 = round(run.usd_median * 1e6), round(run.usd_p95 * 1e6)
    if spot_price is not None or standby_price is not None:
        median, p95 = cost_quantiles(run.costs.run_costs(spot_price, standby_price))
    return CostMicros(**parts, median=median, p95=max(p95, sum(parts.values())))


def _leg(candidates: Candidates, table: Configurations, index: int, cost: CostMicros, hours: float) -> PhaseChoice:
    whole = phase(candidates, table, index)
    clock = Hours(expected=hours, median=hours, confident=hours, p95=hours)
    return replace(whole, choice=replace(whole.choice, cost=cost, hours=clock))


def _costs(standby_plan: StandbyPlan) -> tuple[CostMicros, CostMicros]:
    """The expected cost of both legs, in micro-dollars; a leg states its mean as quantiles, the schedule has the real ones."""
    columns, run = standby_plan.columns, standby_plan.pair.run
    given, k, m = columns.run, standby_plan.spot, standby_plan.standby
    spot_rate = float(given.nodes[k] * given.usd_per_node_hour[k])
    compute = spot_rate * float(_billed(columns, k, run.spot_hours))
    ready = min(spot_rate * float(given.setup_hours[k]), compute)
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
    ready = min(standby_rate * run.switch_probability * float(given.setup_hours[m]), compute)
    standby = _cost(
        compute=compute - ready,
        setup=ready,
        storage=float(given.storage_usd_per_hour[m]) * run.standby_hours,
        egress=run.switch_probability * _moving_usd(standby_plan),
        power=float(given.nodes[m] * given.power_usd_per_node_hour[m]) * run.standby_hours,
    )
    return spot, standby


def _billed(columns: PhaseColumns, index: int, hours: float) -> Floats:
    run = columns.run
    return billed(np.array(hours), run.billing_step_hours[index], run.billing_minimum_hours[index])


def _cost(**usd: float) -> CostMicros:
    """A leg's cost: the total is rounded once, and compute absorbs the rounding of the parts."""
    micros = {name: round(value * 1e6) for name, value in usd.items()}
    whole = round(sum(usd.values()) * 1e6)
    micros["compute"] += whole - sum(micros.values())
    return CostMicros(**micros, median=whole, p95=whole)


def _moving_usd(standby_plan: StandbyPlan) -> float:
    """Egress of checkpoint and data to the standby, if it is in another region."""
    k, m = np.array([standby_plan.spot]), np.array([standby_plan.standby])
    if bool(standby_plan.moving.near(k, m)[0]):
        return 0.0
    return float(standby_plan.moving.egress_usd(k, m)[0] + standby_plan.columns.data_usd[standby_plan.standby])


def _moved(candidates: Candidates, standby_plan: StandbyPlan, before: PhaseChoice, after: PhaseChoice) -> Moved:
    origin, offer = before.choice.offer, after.choice.offer
    stays = (origin.provider, origin.region) == (offer.provider, offer.region)
    return Moved(
        origin=origin,
        checkpoint_gb=standby_plan.columns.checkpoint_gb,
        data_gb=0.0 if stays else copied(candidates.question.job.data, offer.provider, offer.region),
        egress=after.choice.cost.egress,
    )


def _share_on_spot(standby_plan: StandbyPlan) -> float:
    """The expected share of the work that is saved on spot."""
    run, given = standby_plan.pair.run, standby_plan.columns.run
    work = float(given.work_hours[standby_plan.standby] * mean_factor(given.log_sigma[standby_plan.standby]))
    trained = run.standby_hours - run.switch_probability * run.changeover_hours
    return min(max(1.0 - trained / work, 0.0), 1.0)


def _last_moment(columns: PhaseColumns, run: StandbyRun) -> float:
    """The last moment at which the standby could be called with almost no work left."""
    return columns.deadline_hours - run.length_hours - run.changeover_hours


def share_needed(at_hours: float, last_moment_hours: float, standby_hours: float) -> float:
    """The share of the work that must be saved `at_hours` after the start for the standby to be in time."""
    return min(max(1.0 - (last_moment_hours - at_hours) / standby_hours, 0.0), 1.0)


def _notes(standby_plan: StandbyPlan) -> tuple[str, ...]:
    run, given, k = standby_plan.pair.run, standby_plan.columns.run, standby_plan.spot
    standby = float(given.work_hours[standby_plan.standby])
    ready, compared = run.length_hours + run.changeover_hours, standby_plan.searched
    notes = [
        (
            f"the standby is called as soon as the hours left are no more than {ready:.3g} h (a checkpoint interval and the "
            f"changeover) plus {standby:.4g} h times the share of the work that is not saved"
        ),
        (
            "the run meets the deadline unless its hours are so underestimated that the standby itself is late; the error is "
            "one factor for both machines and shows in the first interval"
        ),
        (
            "costs and hours are expectations over preemptions and that error, each machine billed by its expected hours "
            "given that it runs; the standby's share of the work is an expectation"
        ),
        f"checkpoints every {run.interval_hours:.2g} h: the best of Young's interval and its halves under this deadline",
        (
            f"{compared.pairs:,} pairs of spot and standby were compared: all by a bound, {compared.by_moments:,} by "
            f"moments, and {compared.exactly:,} runs of them, each at an interval between checkpoints, exactly; of each "
            "machine, price kind and provider only offers that no other dominates"
        ),
        "standbys are machines that are available at once, without booking, term, windows or interruption",
    ]
    if wait_log_spread(given.cluster_rate[k], given.wait_hours[k]) > given.log_sigma[k]:
        notes.append(
            "waits for preempted machines differ between zones by more than the estimate may err; they are not paid, and a run "
            "that waits long is taken to be one whose work takes long, too"
        )
    return tuple(notes)
