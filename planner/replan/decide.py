"""The cheapest way to end a job that is under way: going on, other machines, more or fewer nodes, or several in turn.

Everything is planned from now, over what is left to do. The machines that run it are configurations like all others,
but that nothing sets them up, the data are there, and what was billed so far is not billed again; they come first or not
at all. On any other, the checkpoint is written first (by the machines that are left, paid meanwhile), then brought along:
egress from where it stands, and time on its way. So the search of `planner.plan` is the whole of it, and its proof too.

To run on another number of nodes is to start all of them anew: in synchronous training every process restarts with the
number of them, and nodes that are kept are paid while others are set up. The checkpoint is in the region already.
"""

from dataclasses import dataclass, replace

from catalog.columns import Columns
from catalog.errors import UnusableInput
from catalog.owned import OwnedMachine
from planner.answer import Choice, Infeasible, Moved, Planned
from planner.candidates.configurations import Configurations, of_a_share
from planner.candidates.gather import Candidates, candidates, estimated_up, kin, over
from planner.candidates.market import Market, markets
from planner.candidates.places import copied
from planner.candidates.requirements import BIT
from planner.choice import in_words
from planner.cost.checkpoints import checkpoint_gb
from planner.estimate.learned import NOTHING, Learned, learned_from
from planner.estimate.machines import REASONS
from planner.explain.statements import warnings
from planner.job import REQUIREMENTS, TrainingJob
from planner.origin import Origin
from planner.past_runs import PastRun
from planner.phases.course import on_one_configuration
from planner.plan import best_plan
from planner.question import Question
from planner.replan.answer import GoingOn, Measured, Replanned
from planner.replan.holds import holds
from planner.replan.machines import running_market
from planner.replan.speed import learned_here, measured
from planner.replan.under_way import Left, On, UnderWay, left_of
from planner.settings import PlannerSettings
from planner.workload import work_of
from planner.workload.work import Work


def replan(
    job: TrainingJob,
    columns: Columns,
    *,
    running: UnderWay,
    owned: tuple[OwnedMachine, ...] = (),
    settings: PlannerSettings,
    past_runs: tuple[PastRun, ...] = (),
) -> Replanned:
    """The best plan from now for a job that stands as `running` says, beside going on as it is.

    The job is stated as it was at its start: deadline and budget are those of all of it. Raises `UnusableInput` as `plan`
    does, and at fields under `running` for what cannot be.
    """
    work = work_of(job.workload, job.training)
    left = left_of(job, work, running)
    rest = work if left.share == 1 else replace(work, units_total=work.units_total * left.share)
    question = Question(
        job=left.job,
        work=rest,
        markets=markets(columns, owned, settings, running.now),
        start=running.now,
        settings=settings,
        learned=learned_from(past_runs, work.task),
    )
    if running.on is None:
        return Replanned(
            job=job,
            running=running,
            left=left,
            machines=None,
            going_on=None,
            best=best_plan(candidates(question)),
            action="start",
            leads=0,
            holds=None,
            measured=None,
            assumptions=(),
        )
    there = _standing(question, work, running, left, on=running.on, columns=columns, owned=owned, past_runs=past_runs)
    return _from_there(replace(question, learned=there.learned, origin=there.origin), job, running, left, there)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _There:
    """Where the job stands: the machines as a market and in words, what a plan sets out from, and what was measured."""

    market: Market
    machines: Choice
    origin: Origin
    learned: Learned
    measured: Measured | None
    notes: tuple[str, ...]


def _standing(
    question: Question,
    work: Work,
    running: UnderWay,
    left: Left,
    *,
    on: On,
    columns: Columns,
    owned: tuple[OwnedMachine, ...],
    past_runs: tuple[PastRun, ...],
) -> _There:
    """The machines as they would do all the work by the plain estimate, and what follows from them."""
    settings = question.settings
    up_hours = left.elapsed_hours if running.up_hours is None else running.up_hours
    market, notes = running_market(on, columns, owned, settings, now=running.now, up_hours=up_hours)
    alone = replace(question, work=work, markets=(market,), learned=NOTHING)
    found, ready = estimated_up(alone)
    if not len(found.table):
        reason = REASONS[int(ready.estimates.reason[-1])] or "longer than its price kind or free windows allow"
        message = f"{on.nodes} x {on.instance_type} cannot run this job by the estimate: {reason}; name what it runs on"
        raise UnusableInput.at("running", "on", "instance_type", message=message)
    table = found.table
    choice, row = in_words(found, table, 0), int(table.row[0])
    speed = measured(
        running,
        left,
        work,
        predicted_rate=float(ready.estimates.units_per_second[row]),
        run_hours=float(table.bill.run_hours[0] / table.bill.mean_factor[0]),
        setup_hours=settings.setup_hours,
    )
    gigabytes = checkpoint_gb(work, question.job.training)
    write_hours = float(table.checkpoint_hours[0]) if running.up else 0.0
    per_hour = float(market.columns.usd_per_hour[0] + market.power_usd_per_node_hour[0]) * on.nodes
    origin = Origin(
        provider=choice.offer.provider,
        region=choice.offer.region,
        kin=kin(table, market, ready)[0],
        write_hours=write_hours,
        write_usd=write_hours * per_hour,
        far_hours=gigabytes / settings.move_gbs / 3600.0,
    )
    learned = learned_here(past_runs, work, choice.accelerator, float(ready.estimates.log_sigma[row]), speed)
    return _There(market=market, machines=choice, origin=origin, learned=learned, measured=speed, notes=notes)


def _from_there(question: Question, job: TrainingJob, running: UnderWay, left: Left, there: _There) -> Replanned:
    number = len(question.markets)
    if running.up:
        question = replace(question, markets=(*question.markets, there.market))
    found = candidates(question)
    best = best_plan(found)
    going_on = None
    if running.up:
        stays = of_a_share(question, number, found.screened[number], found.estimated[number], found.costs[number])
        going_on = _going_on(found, stays)
    leads = _leads(best, number) if running.up else 0
    action = _action(best, number if running.up else None, there.machines, leads)
    if isinstance(best, Planned):
        best = _with_the_way(question, best, number if running.up else None, there)
    return Replanned(
        job=job,
        running=running,
        left=left,
        machines=there.machines,
        going_on=going_on,
        best=best,
        action=action,
        leads=leads,
        holds=holds(found, number) if action == "continue" and job.objective == "cost" else None,
        measured=there.measured,
        assumptions=(*there.notes, *_assumptions(running, left, job, there)),
    )


def _going_on(found: Candidates, stays: Configurations) -> GoingOn | None:
    """The job to its end on the machines that run it; None if they are not there for long enough."""
    table = stays.whole()
    if not len(table):
        return None
    job = found.question.job
    bits = int(over(table, job.deadline_hours, job.budget_usd)[0])
    return GoingOn(
        course=on_one_configuration(replace(found, table=table, shares=stays), 0),
        breaks=tuple(name for name in REQUIREMENTS if bits & int(BIT[name])),
    )


#: Going on for less than this before a move is to move now: it saves seconds of a bill at most.
_MOMENT_HOURS = 1 / 60


def _leads(best: Planned | Infeasible, up: int) -> int:
    """The first phase worth telling."""
    if isinstance(best, Infeasible) or len(best.phases) < 2 or best.phases[1].role == "standby":
        return 0
    first = best.phases[0]
    return 1 if first.market == up and first.hours_with_goodput < _MOMENT_HOURS else 0


def _action(best: Planned | Infeasible, up: int | None, machines: Choice, leads: int) -> str:
    if isinstance(best, Infeasible):
        return "none"
    first = best.phases[leads]
    if up is not None and first.market == up:
        return "continue" if len(best.phases) == 1 else "standby" if best.phases[1].role == "standby" else "move_later"
    if first.choice.offer.key == machines.offer.key:
        if up is None or first.choice.nodes == machines.nodes:
            return "restart"
        return "add_nodes" if first.choice.nodes > machines.nodes else "shed_nodes"
    return "move"


def _with_the_way(question: Question, best: Planned, up: int | None, there: _There) -> Planned:
    """The plan with what its first machines take over, and when they start, if they are not those that run."""
    first, origin = best.phases[0], there.origin
    if first.market == up:
        # That machines which run need a quota, or a zone that is opted into, is no news.
        known = set(warnings((first,), best.start)) - set(warnings(best.phases[1:], best.start))
        kept = tuple(said for said in best.warnings if said not in known or "price" in said or "modelled" in said)
        return replace(best, warnings=kept)
    offer, data = first.choice.offer, question.job.data
    stays = (offer.provider, offer.region) == (origin.provider, origin.region)
    moved = Moved(
        origin=there.machines.offer,
        checkpoint_gb=checkpoint_gb(question.work, question.job.training),
        data_gb=0.0 if stays else copied(data, offer.provider, offer.region),
        egress=first.choice.cost.egress,
    )
    begins = max(first.begins_hours, origin.write_hours + (0.0 if stays else origin.far_hours))
    return replace(best, phases=(replace(first, moved=moved, begins_hours=begins), *best.phases[1:]))


def _assumptions(running: UnderWay, left: Left, job: TrainingJob, there: _There) -> tuple[str, ...]:
    """What is taken for granted of a job that is under way."""
    said = ["what was spent is gone: cost, hours and chances are those from now on"]
    if running.up:
        said += [
            (
                "machines that run go on without set-up, with their data in place; what they have been billed is not billed "
                "again; they come first in a plan of several phases"
            ),
            (
                "on other machines, or another number of nodes, all start anew from a checkpoint that is written first; "
                "machines that are left are paid until then, not longer"
            ),
        ]
    else:
        lost = left.done - left.kept
        said.append(
            f"{lost:.3g} of the work was done and not saved: it is done again"
            if lost > 0
            else "all work that is done is taken as saved; say what was at the last checkpoint with saved"
        )
    if there.origin.far_hours > 0:
        said.append("the checkpoint goes with the software stack and precision that wrote it: others cannot take it up")
    if job.constraints.carbon_budget_kg is not None:
        said.append("of constraints.carbon_budget_kg the part is left that the work left is of all work")
    if there.measured is not None:
        name = there.machines.accelerator
        said.append(
            f"hours on {name} are {there.measured.factor:.3g} times the estimate, as measured on this job; other "
            "accelerators learn from it what they learn of a past run"
        )
    return tuple(said)
