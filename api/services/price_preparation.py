"""What the planner derives from new prices before the first question that uses them."""

from contextlib import suppress
from datetime import UTC, datetime

from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.runtime.time_limit import OutOfTime, at_most
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.performance.past_runs import PastRun

#: Nobody requested this plan, so new prices do not wait for it any longer.
MOST_PLANNING_SECONDS = 5.0


def prepare_markets(columns: Columns, settings: PlannerSettings) -> None:
    """Fill the planner's caches for a snapshot at the prices that a plan for today is made at."""
    from gpuplan.planner.candidates.estimate_cache import prepare_rows
    from gpuplan.planner.candidates.markets import commitment_markets, rented
    from gpuplan.planner.cost.planned_prices import planned_prices

    columns = planned_prices(columns, settings, datetime.now(UTC))
    commitment_markets(columns, settings.held)
    # A snapshot without any price to plan on is still a catalogue. A request for a plan gets the error.
    with suppress(UnusableInput):
        prepare_rows(rented(columns).snapshot.shapes)


def plan_again(
    document: JsonObject,
    columns: Columns,
    *,
    owned: tuple[OwnedMachine, ...],
    settings: PlannerSettings,
    past_runs: tuple[PastRun, ...],
) -> None:
    """Plan the last job on new prices, so that the planner's caches hold the steps of this kind of job."""
    from gpuplan.api.schemas.job import parse_job
    from gpuplan.planner.cost.spend_commitments import with_spending
    from gpuplan.planner.planning import plan

    # A job that these prices refuse, or that takes long, fails when a user plans it; here nobody waits for the answer.
    with suppress(UnusableInput, OutOfTime), at_most(MOST_PLANNING_SECONDS):
        job = parse_job(document, now=datetime.now(UTC))
        plan(job, columns, owned=owned, settings=with_spending(settings, columns), past_runs=past_runs)
