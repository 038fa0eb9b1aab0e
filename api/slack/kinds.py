"""What is done for each kind of question: asked of gpuplan as any door asks, in a worker thread, and made a message."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from api.catalogue import OfferFilter
from api.documents.job import parse_job
from api.history import HistoryFilter
from api.questions.opened import body_of, days_between
from api.render.text import duration, number, usd
from api.slack.blocks import Message
from api.slack.plan_words import in_words
from api.slack.show_plan import plan_message
from api.slack.show_rest import history_message, note, price_message, watches_message, why_message
from api.slack.watching import unwatch, watch, watches_of
from catalog.errors import UnusableInput
from catalog.slack_answers import SlackAnswer
from catalog.snapshot_list import NotStored

if TYPE_CHECKING:
    from api.app import Gpuplan

Document = dict[str, Any]

#: As many prices of one type as a message shows.
MOST_POINTS = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that goes with an answer."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is told: the message, the plan it is of (empty: none), and the job behind that plan; perhaps a file."""

    message: Message
    plan_id: str = ""
    job: Document = field(default_factory=dict)
    file: File | None = None


def told(gpuplan: "Gpuplan", asked: SlackAnswer) -> Told:
    """The answer to a question. Raises `UnusableInput` for what its author can mend, `StoreFailure`."""
    return KINDS[asked.kind](gpuplan, asked)


def _plan(gpuplan: "Gpuplan", asked: SlackAnswer) -> Told:
    return _planned(gpuplan, asked.request["job"])


def _planned(gpuplan: "Gpuplan", job: Document, *notes: str) -> Told:
    try:
        answer = gpuplan.plan(job)
    except UnusableInput as error:
        raise in_words(error) from None
    return Told(message=plan_message(answer, notes=notes), plan_id=body_of(answer)["id"], job=job)


def _cheaper(gpuplan: "Gpuplan", asked: SlackAnswer) -> Told:
    """The plan at the deadline from which on something cheaper is there."""
    plan = _saved(gpuplan, asked)
    step = (plan.get("sensitivity") or {}).get("next_cheaper")
    if not step:
        return Told(message=note("Nothing is cheaper at any deadline: this is the cheapest at any speed."))
    return _moved(
        gpuplan, asked, plan, step["deadline_hours"], f"With a deadline of {duration(step['deadline_hours'])}:"
    )


def _faster(gpuplan: "Gpuplan", asked: SlackAnswer) -> Told:
    """The plan at the deadline of the next faster of the best trades."""
    plan = _saved(gpuplan, asked)
    step = (plan.get("sensitivity") or {}).get("next_faster")
    if not step:
        return Told(message=note("Nothing is faster within what was asked for."))
    costs = f"within {duration(step['deadline_hours'])}, for about {usd(step['costs_usd'])} more:"
    return _moved(gpuplan, asked, plan, step["deadline_hours"], f"The next faster, {costs}")


def _moved(gpuplan: "Gpuplan", asked: SlackAnswer, plan: Document, hours: float, what: str) -> Told:
    # A thousandth more than the trade itself: a deadline of exactly its hours would turn on the last digit.
    job = job_of(gpuplan, asked, plan) | {"deadline": round(hours * 1.001, 4)}
    return _planned(gpuplan, job, what)


def job_of(gpuplan: "Gpuplan", asked: SlackAnswer, plan: Document) -> Document:
    """The job of a saved plan: as it was asked for in Slack, else as the plan repeats it, without the start it had."""
    found = gpuplan.store.slack.asked_for(plan["id"], asked.team_id)
    if found is not None and found.get("job"):
        return dict(found["job"])
    return {name: value for name, value in plan["job"].items() if name != "start"}


def _share(gpuplan: "Gpuplan", asked: SlackAnswer) -> Told:
    answer = _saved_answer(gpuplan, asked)
    return Told(message=plan_message(answer, shared_by=asked.request["by"]))


def _why(gpuplan: "Gpuplan", asked: SlackAnswer) -> Told:
    plan = _saved(gpuplan, asked)
    # As of the plan: its start, its prices.
    answer = gpuplan.why({"job": plan["job"]} | asked.request.get("about", {}), snapshot=plan["snapshot_id"])
    return Told(message=why_message(answer))


def _price(gpuplan: "Gpuplan", asked: SlackAnswer) -> Told:
    name, region = asked.request["accelerator"], asked.request.get("region")
    page = gpuplan.offers(OfferFilter(accelerator=name, region=region))
    best: dict[tuple[str, str], tuple[float, Document]] = {}
    for row in page.rows:
        per_accelerator = float(row["usd_per_hour"]) / float(row["accelerator_count"])
        key = row["provider"], row["price_kind"]
        if key not in best or per_accelerator < best[key][0]:
            best[key] = per_accelerator, row
    if not best:
        where = f" in {region}" if region else ""
        raise UnusableInput.at("price", message=f"nobody sells {name}{where} in the catalogue; try another region")
    rows = [row for _, row in sorted(best.values(), key=lambda each: each[0])]
    return Told(message=price_message(name, rows, page.total, _age(gpuplan, page.snapshot_id)))


def _age(gpuplan: "Gpuplan", snapshot_id: str) -> str:
    columns = gpuplan.columns(snapshot_id)
    days = int(days_between(datetime.now(UTC), columns.observed_at))
    return f"snapshot {snapshot_id}, {'of today' if days < 1 else f'{number(days)} days old'}"


def _history(gpuplan: "Gpuplan", asked: SlackAnswer) -> Told:
    wanted = HistoryFilter(instance_type=asked.request["instance_type"], region=asked.request.get("region"))
    page = gpuplan.prices(wanted)
    newest = sorted(page.rows, key=lambda each: (each["until"] is None, each["from"]), reverse=True)
    return Told(message=history_message(page.instance_type, newest[:MOST_POINTS], page.total))


def _export(gpuplan: "Gpuplan", asked: SlackAnswer) -> Told:
    from api.export.formats import one_export

    made = one_export(_saved_answer(gpuplan, asked), to=asked.request["format"])
    text = f"{made.file_name} is in your direct messages with gpuplan"
    return Told(message=note(text), file=File(name=made.file_name, text=made.text))


def _watch(gpuplan: "Gpuplan", asked: SlackAnswer) -> Told:
    plan = _saved(gpuplan, asked)
    kept = watch(gpuplan, asked, job_of(gpuplan, asked, plan), asked.request["percent"])
    what = f"{kept['name']} is watched ({kept['id']})"
    return Told(
        message=note(f"{what}: this channel is told when its cost changes by {kept['cheaper_by_percent']:g} % or more.")
    )


def _watches(gpuplan: "Gpuplan", asked: SlackAnswer) -> Told:
    return Told(message=watches_message(watches_of(gpuplan, asked.team_id)))


def _unwatch(gpuplan: "Gpuplan", asked: SlackAnswer) -> Told:
    unwatch(gpuplan, asked.team_id, asked.request["watch"])
    return Told(message=note(f"{asked.request['watch']} is no longer watched."))


def _note(_: "Gpuplan", asked: SlackAnswer) -> Told:
    """What was wrong with a button's question, which an acknowledgement cannot say."""
    return Told(message=asked.request["message"])


KINDS: dict[str, Callable[["Gpuplan", SlackAnswer], Told]] = {
    "plan": _plan,
    "cheaper": _cheaper,
    "faster": _faster,
    "share": _share,
    "why": _why,
    "price": _price,
    "history": _history,
    "export": _export,
    "watch": _watch,
    "watches": _watches,
    "unwatch": _unwatch,
    "note": _note,
}


def _saved(gpuplan: "Gpuplan", asked: SlackAnswer) -> Document:
    """The plan that the question is about, or the part that says why there is none. Raises `UnusableInput`."""
    return body_of(_saved_answer(gpuplan, asked))


def _saved_answer(gpuplan: "Gpuplan", asked: SlackAnswer) -> Document:
    """The answer that the question is about, as it was given. Raises `UnusableInput` if it is no longer stored."""
    plan_id = asked.request["plan"]
    try:
        return gpuplan.saved_plan(plan_id)
    except NotStored:
        message = f"{plan_id} is not stored (any more); ask again with /gpuplan plan"
        raise UnusableInput.at("plan", message=message) from None


def checked_job(document: Document) -> str:
    """The name of a job that can be read. Raises `UnusableInput` with all that cannot."""
    return parse_job(document, now=datetime.now(UTC)).name
