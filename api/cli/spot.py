"""`gpuplan run-policy` and `gpuplan simulate`: run on interruptible machines, and see how that would have gone."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.documents import open_gpuplan, print_json, read_job
from api.cli.plan import AsJson
from api.cli.standard_output import console

if TYPE_CHECKING:
    from api.spot_policy_file import KeptPolicy
    from planner.spot.advice import Situation

PlanId = Annotated[str | None, typer.Option("--plan", metavar="ID", help="A saved plan on interruptible machines.")]
FitFiles = Annotated[
    list[str] | None,
    typer.Option("--fit", metavar="[PLACE=]FILE", help="Traces to learn how the places come and go; several times."),
]


def run_policy(
    policy: Annotated[
        str | None, typer.Argument(metavar="[POLICY]", help="A run (YAML or JSON), or a policy saved before.")
    ] = None,
    *,
    plan: PlanId = None,
    time: Annotated[str | None, typer.Option(metavar="DURATION", help="Since the start, e.g. 3h20min.")] = None,
    work_left: Annotated[
        str | None, typer.Option(metavar="DURATION", help="As the on-demand machines would take.")
    ] = None,
    saved_work_left: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Left at the last checkpoint; else all is saved.")
    ] = None,
    up: Annotated[str, typer.Option(metavar="PLACE,...", help="The places that can be had now.")] = "",
    at: Annotated[str | None, typer.Option(metavar="PLACE", help="Where it runs now, or on-demand.")] = None,
    data_at: Annotated[
        str | None, typer.Option(metavar="PLACE", help="Where the last checkpoint lies, while nothing runs.")
    ] = None,
    since: Annotated[
        str, typer.Option(metavar="PLACE=DURATION,...", help="For how long places have been as they are.")
    ] = "",
    starts_in: Annotated[
        str | None, typer.Option(metavar="DURATION", help="What is left of the changeover, while machines start.")
    ] = None,
    checkpoint_age: Annotated[str | None, typer.Option(metavar="DURATION", help="Since the last checkpoint.")] = None,
    fit: FitFiles = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the policy, so that it need not be solved again.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What to do now in a run on interruptible machines: stay, checkpoint, move, wait, or go on-demand."""
    from catalog.errors import UnusableInput

    document = None if policy is not None and plan is None and _is_saved(policy) else _document(policy, plan)
    kept = _kept(str(policy), fit) if document is None else _solved(document, fit)
    if save is not None:
        from api.spot_policy_file import write_policy

        write_policy(save, kept)
    if (time is None) != (work_left is None):
        missing = "time" if time is None else "work-left"
        raise UnusableInput.at(missing, message="is missing; a decision needs --time and --work-left")
    from api.spot import about, decision

    if time is None:
        answer, show = about(kept), "policy"
        if plan is not None and document is not None:
            from api.spot_of_plan import finish_of_plan

            answer |= {"as_planned": finish_of_plan(open_gpuplan().saved_plan(plan), document)}
    else:
        now = _situation(
            kept,
            {"time": time, "work_left": work_left, "saved_work_left": saved_work_left}
            | {"starts_in": starts_in, "checkpoint_age": checkpoint_age},
            up=up,
            at=at,
            data_at=data_at,
            since=since,
        )
        answer, show = decision(kept, now), "decision"
    if as_json:
        print_json(answer)
        return
    from api.render.spot import render_decision, render_policy

    console().print(render_policy(answer) if show == "policy" else render_decision(answer))


def simulate(
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN.yaml]", help="The run (YAML or JSON), - for standard input.")
    ] = None,
    *,
    traces: Annotated[
        list[str], typer.Option("--traces", metavar="[PLACE=]FILE", help="Availability to replay; several times.")
    ],
    plan: PlanId = None,
    fit: FitFiles = None,
    starts: Annotated[int, typer.Option(min=1, max=5000, help="Random starts per trace.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Of the starts.")] = 1,
    as_json: AsJson = False,
) -> None:
    """What a run's policy would have cost, and whether it was late, over many starts in availability traces."""
    from api.spot import Replays, simulate, traces_of

    asked = Replays(
        judged=traces_of(traces, field="traces"), fitted=traces_of(fit or [], field="fit"), starts=starts, seed=seed
    )
    answer = simulate(_document(run, plan), asked)
    if as_json:
        print_json(answer)
        return
    from api.render.spot import render_simulation

    console().print(render_simulation(answer))


def _document(run: str | None, plan: str | None) -> dict[str, Any]:
    """The run's document, out of a file or a saved plan."""
    from catalog.errors import UnusableInput

    if (run is None) == (plan is None):
        raise UnusableInput.at("run", message="give one of a run file and --plan ID")
    if plan is not None:
        from api.spot_of_plan import run_of_plan
        from planner.discounts import discounted

        gpuplan = open_gpuplan()
        answer = gpuplan.saved_plan(plan)
        snapshot = (answer.get("plan") or {}).get("snapshot_id")
        return run_of_plan(answer, discounted(gpuplan.columns(snapshot), gpuplan.settings.discounts))
    return read_job(str(run))


def _is_saved(policy: str) -> bool:
    from api.spot_policy_file import is_policy

    return is_policy(Path(policy))


def _kept(policy: str, fit: list[str] | None) -> "KeptPolicy":
    """The policy out of its file."""
    from api.spot_policy_file import read_policy
    from catalog.errors import UnusableInput

    if fit:
        message = "a saved policy is solved already; give the run's document to learn from traces"
        raise UnusableInput.at("fit", message=message)
    return read_policy(Path(policy))


def _solved(document: dict[str, Any], fit: list[str] | None) -> "KeptPolicy":
    """The policy of a run, solved now."""
    from api.documents.spot_run import parse_spot_run
    from api.spot import fitting_of, solved, traces_of

    return solved(parse_spot_run(document, fitting=fitting_of(document, traces_of(fit or [], field="fit"))))


def _situation(
    kept: "KeptPolicy", durations: dict[str, str | None], *, up: str, at: str | None, data_at: str | None, since: str
) -> "Situation":
    """One run as the options describe it."""
    from planner.spot.advice import Situation

    hours = {name: _hours(name, text) for name, text in durations.items() if text is not None}
    work = hours["work_left"]
    return Situation(
        left_hours=kept.policy.terms.deadline_hours - hours["time"],
        work_hours=work,
        saved_work_hours=hours.get("saved_work_left", work),
        up=frozenset(name.strip() for name in up.split(",") if name.strip()),
        at=at,
        data_at=data_at,
        to_go_hours=hours.get("starts_in", 0.0),
        checkpoint_age_hours=hours.get("checkpoint_age", 0.0),
        up_hours=_ages(since),
    )


def _ages(text: str) -> dict[str, float]:
    """`a=3h,b=20min` as hours by place."""
    from catalog.errors import UnusableInput
    from catalog.quantities import shown

    found = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, equals, age = part.rpartition("=")
        if not equals or not name.strip():
            message = f"{shown(part)} is not accepted; write PLACE=DURATION, such as us-east-1a=3h"
            raise UnusableInput.at("since", message=message)
        found[name.strip()] = _hours("since", age)
    return found


def _hours(option: str, text: str) -> float:
    """A duration of an option, 0 included."""
    from catalog.errors import UnusableInput
    from catalog.quantities import hours

    if text.strip().rstrip("hmsind") in {"0", "0.0"}:
        return 0.0
    try:
        return hours(text)
    except ValueError as error:
        raise UnusableInput.at(option, message=str(error)) from None
