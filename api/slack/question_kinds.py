"""Handlers by kind of request: they call the services in a worker thread and return a message."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpuplan.api.presentation.text_formatting import duration, number, usd
from gpuplan.api.presentation.watches import last_reported, threshold
from gpuplan.api.schemas.catalogue import OfferRow
from gpuplan.api.schemas.job import parse_job
from gpuplan.api.schemas.key_value_words import in_words
from gpuplan.api.services.offer_listing import OfferFilter
from gpuplan.api.services.price_history import HistoryFilter
from gpuplan.api.services.service_context import days_between
from gpuplan.api.slack.block_kit import Message
from gpuplan.api.slack.channel_watches import unwatch, watch, watch_machines, watches_of
from gpuplan.api.slack.charts import chart_text
from gpuplan.api.slack.follow_ups import changed_job
from gpuplan.api.slack.other_messages import history_message, note, price_message, watches_message, why_message
from gpuplan.api.slack.plan_message import plan_message
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.slack_store import SlackAnswer
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.planner.model.plan import Infeasible, Plan, PlanAnswer
from gpuplan.planner.model.wire import wire

if TYPE_CHECKING:
    from gpuplan.api.services.composition import Services


#: Most prices of a message.
MOST_POINTS = 25
#: Most longer deadlines that are planned in search of a cheaper plan, each in about 0.1 s. A fine-tuning run of 8B
#: parameters needed at most three at deadlines of 2 to 20 hours.
MOST_DEADLINES_TRIED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file attached to an answer."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedAnswer:
    """A computed answer: message, plan id (empty: none), the plan's job, an optional file, and what its chart shows.

    `about` is the plan that the page's link and the chart show.
    """

    message: Message
    plan_id: str = ""
    job: JsonObject = field(default_factory=dict)
    file: File | None = None
    about: str = ""
    chart: str = ""


def finished_answer(gpuplan: "Services", asked: SlackAnswer) -> FinishedAnswer:
    """The answer to a request. Raises `UnusableInput` for errors of the user, and `StoreFailure`."""
    return KINDS[asked.kind](gpuplan, asked)


def _plan(gpuplan: "Services", asked: SlackAnswer) -> FinishedAnswer:
    return _planned(gpuplan, asked.request["job"])


def _planned(gpuplan: "Services", job: JsonObject, *notes: str) -> FinishedAnswer:
    try:
        answer = gpuplan.plans.plan(job, live=None, frontier=True)
    except UnusableInput as error:
        raise in_words(error) from None
    body = answer.body
    return FinishedAnswer(
        message=plan_message(answer, notes=notes), plan_id=body.id, job=job, about=body.id, chart=chart_text(answer)
    )


def _cheaper(gpuplan: "Services", asked: SlackAnswer) -> FinishedAnswer:
    """The plan at the next deadline that is cheaper.

    A longer deadline lets cheaper machines in, but those with the best chances may stay the first choice: then the
    deadline after it is tried.
    """
    body = _saved(gpuplan, asked).body
    job, longer, hours = job_of(gpuplan, asked, body), body, 0.0
    for _ in range(MOST_DEADLINES_TRIED):
        step = longer.sensitivity.next_cheaper if isinstance(longer, Plan) else None
        if step is None:
            return FinishedAnswer(
                message=note("No longer deadline is cheaper: this is the cheapest plan at any speed.")
            )
        hours = step.deadline_hours
        job |= {"deadline": _with_margin(hours)}
        longer = gpuplan.plans.plan(job, live=None, save=False).body
        if isinstance(body, Plan) and isinstance(longer, Plan) and longer.cost_usd.expected < body.cost_usd.expected:
            return _planned(gpuplan, job, f"With a deadline of {duration(hours)}:")
    return FinishedAnswer(message=note(f"No deadline up to {duration(hours)} is cheaper."))


def _faster(gpuplan: "Services", asked: SlackAnswer) -> FinishedAnswer:
    """The plan at the deadline of the next faster frontier point."""
    body = _saved(gpuplan, asked).body
    step = body.sensitivity.next_faster if isinstance(body, Plan) else None
    if step is None:
        return FinishedAnswer(message=note("No faster plan meets the requirements."))
    costs = f"within {duration(step.deadline_hours)}, for about {usd(step.costs_usd)} more:"
    return _moved(gpuplan, asked, body, step.deadline_hours, f"The next faster, {costs}")


def _moved(gpuplan: "Services", asked: SlackAnswer, body: Plan | Infeasible, hours: float, what: str) -> FinishedAnswer:
    return _planned(gpuplan, job_of(gpuplan, asked, body) | {"deadline": _with_margin(hours)}, what)


def _with_margin(hours: float) -> float:
    """A deadline of exactly these hours would depend on rounding: 0.1 % more."""
    return round(hours * 1.001, 4)


def job_of(gpuplan: "Services", asked: SlackAnswer, body: Plan | Infeasible) -> JsonObject:
    """The job of a saved plan: as requested in Slack, else the plan's own without its start."""
    request = gpuplan.store.slack.asked_for(body.id, asked.team_id)
    if request is not None and request.get("job"):
        return dict(request["job"])
    return {name: value for name, value in body.job.items() if name != "start"}


def _share(gpuplan: "Services", asked: SlackAnswer) -> FinishedAnswer:
    answer = _saved(gpuplan, asked)
    message = plan_message(answer, shared_by=asked.request["by"])
    return FinishedAnswer(message=message, about=asked.request["plan"], chart=chart_text(answer))


def _show(gpuplan: "Services", asked: SlackAnswer) -> FinishedAnswer:
    answer = _saved(gpuplan, asked)
    return FinishedAnswer(message=plan_message(answer), about=asked.request["plan"], chart=chart_text(answer))


def _follow_up(gpuplan: "Services", asked: SlackAnswer) -> FinishedAnswer:
    """The plan of a thread with the changes that a reply asks for."""
    job, changes = changed_job(job_of(gpuplan, asked, _saved(gpuplan, asked).body), asked.request["changes"])
    return _planned(gpuplan, job, changes)


def _why(gpuplan: "Services", asked: SlackAnswer) -> FinishedAnswer:
    body = _saved(gpuplan, asked).body
    # With the plan's start and prices.
    answer = gpuplan.explanations.why({"job": body.job} | asked.request.get("about", {}), snapshot=body.snapshot_id)
    return FinishedAnswer(message=why_message(answer))


def _price(gpuplan: "Services", asked: SlackAnswer) -> FinishedAnswer:
    name, region = asked.request["accelerator"], asked.request.get("region")
    page = gpuplan.catalogue.offers(OfferFilter(accelerator=name, region=region))
    best: dict[tuple[str, str], tuple[float, OfferRow]] = {}
    for row in page.rows:
        per_accelerator = float(row.usd_per_hour) / row.accelerator_count
        key = row.provider, row.price_kind
        if key not in best or per_accelerator < best[key][0]:
            best[key] = per_accelerator, row
    if not best:
        where = f" in {region}" if region else ""
        raise UnusableInput.at("price", message=f"the catalogue has no offers of {name}{where}; try another region")
    rows = [row for _, row in sorted(best.values(), key=lambda priced: priced[0])]
    return FinishedAnswer(message=price_message(name, rows, page.total, _age(gpuplan, page.snapshot_id)))


def _age(gpuplan: "Services", snapshot_id: str) -> str:
    columns = gpuplan.context.columns(snapshot_id)
    days = int(days_between(datetime.now(UTC), columns.observed_at))
    return f"snapshot {snapshot_id}, {'of today' if days < 1 else f'{number(days)} days old'}"


def _history(gpuplan: "Services", asked: SlackAnswer) -> FinishedAnswer:
    wanted = HistoryFilter(instance_type=asked.request["instance_type"], region=asked.request.get("region"))
    page = gpuplan.price_history.prices(wanted)
    newest = sorted(page.rows, key=lambda row: (row.until is None, row.from_), reverse=True)
    return FinishedAnswer(message=history_message(page.instance_type, newest[:MOST_POINTS], page.total))


def _export(gpuplan: "Services", asked: SlackAnswer) -> FinishedAnswer:
    from gpuplan.api.exports.export_formats import one_export

    made = one_export(wire(_saved(gpuplan, asked)), to=asked.request["format"])
    text = f"{made.file_name} is in your direct messages from gpuplan"
    return FinishedAnswer(message=note(text), file=File(name=made.file_name, text=made.text))


def _watch(gpuplan: "Services", asked: SlackAnswer) -> FinishedAnswer:
    if "capacity" in asked.request:
        return _watch_machines(gpuplan, asked)
    body = _saved(gpuplan, asked).body
    saved = watch(gpuplan, asked, job_of(gpuplan, asked, body), asked.request["percent"])
    what = f"{saved.name} is watched ({saved.id})"
    return FinishedAnswer(
        message=note(f"{what}: this channel is notified when its cost changes by {threshold(saved)} or more.")
    )


def _watch_machines(gpuplan: "Services", asked: SlackAnswer) -> FinishedAnswer:
    saved = watch_machines(gpuplan, asked)
    now = saved.problem or last_reported(saved)
    wish = f"this channel is notified when a cloud gives {threshold(saved)}"
    return FinishedAnswer(message=note(f"{saved.name} is watched ({saved.id}): {wish}. Now: {now}."))


def _watches(gpuplan: "Services", asked: SlackAnswer) -> FinishedAnswer:
    return FinishedAnswer(message=watches_message(watches_of(gpuplan, asked.team_id)))


def _unwatch(gpuplan: "Services", asked: SlackAnswer) -> FinishedAnswer:
    unwatch(gpuplan, asked.team_id, asked.request["watch"])
    return FinishedAnswer(message=note(f"{asked.request['watch']} is no longer watched."))


def _note(_: "Services", asked: SlackAnswer) -> FinishedAnswer:
    """The stored error message of a button, which an acknowledgement cannot contain."""
    return FinishedAnswer(message=asked.request["message"])


KINDS: dict[str, Callable[["Services", SlackAnswer], FinishedAnswer]] = {
    "plan": _plan,
    "cheaper": _cheaper,
    "faster": _faster,
    "follow_up": _follow_up,
    "share": _share,
    "show": _show,
    "why": _why,
    "price": _price,
    "history": _history,
    "export": _export,
    "watch": _watch,
    "watches": _watches,
    "unwatch": _unwatch,
    "note": _note,
}


def _saved(gpuplan: "Services", asked: SlackAnswer) -> PlanAnswer:
    """The saved answer that the request names. Raises `UnusableInput` if it is not stored any more."""
    plan_id = asked.request["plan"]
    try:
        return gpuplan.plans.saved(plan_id)
    except NotStored:
        message = f"{plan_id} is not stored (any more); make a new one with /gpuplan plan"
        raise UnusableInput.at("plan", message=message) from None


def checked_job(document: JsonObject) -> str:
    """Check a job and return its name. Raises `UnusableInput` with all faults."""
    return parse_job(document, now=datetime.now(UTC)).name
