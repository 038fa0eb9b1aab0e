"""`gpuplan run-policy` and `gpuplan simulate`: decide the next step of a spot run, and backtest the policy."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_answer, read_job
from gpuplan.api.cli.plan import AsJson
from gpuplan.api.presentation.ladder_replay import render_ladder_replay
from gpuplan.api.presentation.spot_policy import render_run_policy, render_simulation
from gpuplan.api.schemas.spot_policy_requests import SituationDocument
from gpuplan.api.schemas.spot_run import SpotRunDocument, spot_request
from gpuplan.api.services import spot_policy_solving
from gpuplan.api.services.ladder_replay import LadderReplays, replay_ladder
from gpuplan.api.services.spot_policies import run_of_saved_plan
from gpuplan.api.services.spot_policy_file import StoredPolicy, is_policy, read_policy, write_policy
from gpuplan.api.services.spot_policy_solving import Replays, about, decision, fitting_of, solved, traces_of
from gpuplan.api.services.spot_run_of_plan import finish_of_plan
from gpuplan.catalog.parsing.document_fields import read_as
from gpuplan.catalog.parsing.json_object import without_none
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.spot_policy import RunPolicy

PlanId = Annotated[str | None, typer.Option("--plan", metavar="ID", help="A saved plan on interruptible machines.")]
FitFiles = Annotated[
    list[str] | None,
    typer.Option("--fit", metavar="[PLACE=]FILE", help="Availability traces to learn from; repeatable."),
]


def run_policy(
    policy: Annotated[
        str | None, typer.Argument(metavar="[POLICY]", help="A run (YAML or JSON), or a saved policy.")
    ] = None,
    *,
    plan: PlanId = None,
    time: Annotated[str | None, typer.Option(metavar="DURATION", help="Since the start, e.g. 3h20min.")] = None,
    work_left: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Time the on-demand machines would take.")
    ] = None,
    saved_work_left: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Work left at the last checkpoint. Default: --work-left.")
    ] = None,
    up: Annotated[str, typer.Option(metavar="PLACE,...", help="Places available now.")] = "",
    at: Annotated[str | None, typer.Option(metavar="PLACE", help="Where it runs now, or on-demand.")] = None,
    data_at: Annotated[
        str | None, typer.Option(metavar="PLACE", help="Place of the last checkpoint, while nothing runs.")
    ] = None,
    since: Annotated[
        str, typer.Option(metavar="PLACE=DURATION,...", help="How long each place has been up or down.")
    ] = "",
    starts_in: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Time until starting machines are ready.")
    ] = None,
    checkpoint_age: Annotated[str | None, typer.Option(metavar="DURATION", help="Since the last checkpoint.")] = None,
    fit: FitFiles = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save the solved policy to FILE, for reuse.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Decide the next step of a spot run: stay, checkpoint, move, wait, or go on-demand."""
    if (time is None) != (work_left is None):
        missing = "time" if time is None else "work-left"
        raise UnusableInput.at(missing, message="is missing; a decision needs --time and --work-left")
    run = None if policy is not None and plan is None and _is_saved(policy) else _run(policy, plan)
    solved = _saved_policy(str(policy), fit) if run is None else _solve_policy(run, fit)
    if save is not None:
        write_policy(save, solved)
    named = {"time": time, "work_left": work_left, "saved_work_left": saved_work_left, "at": at, "data_at": data_at}
    named |= {"starts_in": starts_in, "checkpoint_age": checkpoint_age}
    situation = None if time is None else _situation(named, up=up, since=since)
    print_answer(_answer(solved, situation, run, plan), render_run_policy, as_json=as_json)


def _answer(
    policy: StoredPolicy, situation: SituationDocument | None, run: SpotRunDocument | None, plan: str | None
) -> RunPolicy:
    """The next step in a situation; without one what the policy is, beside the figures of the plan it follows."""
    if situation is not None:
        return decision(policy, situation)
    if plan is not None and run is not None:
        return replace(about(policy), as_planned=finish_of_plan(open_gpuplan().plans.saved(plan), run))
    return about(policy)


def simulate(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN.yaml]", help="The run, or with --ladder the job (YAML or JSON), - for standard input."
        ),
    ] = None,
    *,
    traces: Annotated[
        list[str],
        typer.Option("--traces", metavar="[PLACE=]FILE", help="Availability trace, or a folder of them; repeatable."),
    ],
    plan: PlanId = None,
    fit: FitFiles = None,
    starts: Annotated[int, typer.Option(min=1, max=5000, help="Random starts per trace.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random starts.")] = 1,
    ladder: Annotated[
        bool, typer.Option("--ladder", help="Replay a plan's capacity ladder; starts are spread evenly.")
    ] = False,
    refused: Annotated[
        float | None,
        typer.Option(min=0, max=1, metavar="SHARE", help="With --ladder: share of on-demand requests refused."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Backtest a run's policy, or a plan's capacity ladder, on availability traces: cost and lateness over many starts."""
    if ladder:
        _simulate_ladder(run, plan, traces, fit, starts=starts, refused=refused or 0.0, as_json=as_json)
        return
    if refused is not None:
        raise UnusableInput.at("refused", message="applies to a capacity ladder; add --ladder, or leave it out")
    asked = Replays(
        judged=traces_of(traces, field="traces"), fitted=traces_of(fit or [], field="fit"), starts=starts, seed=seed
    )
    answer = spot_policy_solving.simulate(_run(run, plan), asked)
    print_answer(answer, render_simulation, as_json=as_json)


def _simulate_ladder(
    job: str | None,
    plan: str | None,
    traces: list[str],
    fit: list[str] | None,
    *,
    starts: int,
    refused: float,
    as_json: bool,
) -> None:
    """Replay the ladder of a saved plan, or of the plan of a job."""
    if (job is None) == (plan is None):
        raise UnusableInput.at("job", message="give either a job file or --plan ID")
    if fit:
        raise UnusableInput.at("fit", message="a ladder learns from no traces; leave --fit out")
    asked = LadderReplays(traces=traces_of(traces, field="traces"), starts=starts, refused=refused)
    gpuplan = open_gpuplan()
    answer = gpuplan.plans.saved(plan) if plan is not None else gpuplan.plans.plan(read_job(str(job)), save=False)
    replayed = replay_ladder(answer, gpuplan.context.columns(answer.body.snapshot_id), asked)
    print_answer(replayed, render_ladder_replay, as_json=as_json)


def _run(run: str | None, plan: str | None) -> SpotRunDocument:
    """The run, from a file or a saved plan."""
    if (run is None) == (plan is None):
        raise UnusableInput.at("run", message="give either a run file or --plan ID")
    if plan is not None:
        return run_of_saved_plan(open_gpuplan().context, plan)
    return read_as(SpotRunDocument, read_job(str(run), field="run"))


def _is_saved(policy: str) -> bool:
    return is_policy(Path(policy))


def _saved_policy(policy: str, fit: list[str] | None) -> StoredPolicy:
    """The policy saved in a file."""
    if fit:
        message = "a saved policy is already solved; give the run file to learn from traces"
        raise UnusableInput.at("fit", message=message)
    return read_policy(Path(policy))


def _solve_policy(run: SpotRunDocument, fit: list[str] | None) -> StoredPolicy:
    """The policy of a run, solved now."""
    return solved(spot_request(run, fitting=fitting_of(run, traces_of(fit or [], field="fit"))))


def _situation(named: dict[str, str | None], *, up: str, since: str) -> SituationDocument:
    """One run as the options describe it."""
    places = [name.strip() for name in up.split(",") if name.strip()]
    return read_as(SituationDocument, without_none(**named, up=places, since=_ages(since)))


def _ages(text: str) -> dict[str, str]:
    """`a=3h,b=20min` by place."""
    ages = {}
    for part in filter(None, (word.strip() for word in text.split(","))):
        name, equals, age = part.rpartition("=")
        if not equals or not name.strip():
            message = f"{shown(part)} is not accepted; write PLACE=DURATION, such as us-east-1a=3h"
            raise UnusableInput.at("since", message=message)
        ages[name.strip()] = age
    return ages
