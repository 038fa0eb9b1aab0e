"""Events between two answers of a watched job, with their sentences and outgoing messages."""

from collections.abc import Sequence
from fractions import Fraction

from gpuplan.api.presentation.infeasibility import conflicts_in_short
from gpuplan.api.presentation.text_formatting import offer_place, plain, usd
from gpuplan.catalog.model.money import usd_micros, usd_text
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.store.stored_watches import Watch

CHEAPER, DEARER, OFFER_GONE = "cheaper", "dearer", "offer_gone"
INFEASIBLE, FEASIBLE, DEADLINE_PASSED = "infeasible", "feasible", "deadline_passed"
#: Of watched machines.
OBTAINABLE, NOT_OBTAINABLE = "obtainable", "not_obtainable"
TEST = "test"

#: Each event with the beginning of its message.
TITLES = {
    CHEAPER: "is cheaper now",
    DEARER: "got dearer",
    OFFER_GONE: "lost the offer it was planned on",
    INFEASIBLE: "can no longer be done as asked",
    FEASIBLE: "can be done now",
    DEADLINE_PASSED: "is no longer watched: its deadline has passed",
    OBTAINABLE: "can be obtained now",
    NOT_OBTAINABLE: "can no longer be obtained as wanted",
}


def event_between(
    before: JsonObject, after: JsonObject, gone: Sequence[JsonObject], threshold_percent: float
) -> str | None:
    """The event between the last report and the new answer; None if there is nothing to report.

    A cost counts as changed from exactly `threshold_percent` of the reported one. A lost offer takes precedence over a
    change of cost, which the message then includes.
    """
    was, now = before["outcome"] == "planned", after["outcome"] == "planned"
    if was != now:
        return FEASIBLE if now else INFEASIBLE
    if not now:
        return None
    if gone:
        return OFFER_GONE
    old, new = _micros(before), _micros(after)
    part = Fraction(str(threshold_percent)) / 100
    if new < old and new <= (1 - part) * old:
        return CHEAPER
    if new > old and new >= (1 + part) * old:
        return DEARER
    return None


def message(
    watch: Watch, event: str, before: JsonObject, after: JsonObject, gone: Sequence[JsonObject], *, at: str
) -> JsonObject:
    """The outgoing message as JSON: `{"type": "watch.cheaper", "timestamp": ..., "data": {...}}`, without any secret.

    `data.summary` is all of it in one line; `before` and `after` hold outcome, cost, hours, choice and plan id.
    """
    data = {
        "event": event,
        "watch": {"id": watch.id, "name": plain(watch.name)},
        "job": plain(str(watch.job.get("name", ""))),
        "snapshot_id": after["snapshot_id"],
        "plan_id": after["plan_id"],
        "threshold_percent": watch.threshold_percent,
        "change_usd": None,
        "change_percent": None,
        "before": _shown(before),
        "after": _shown(after),
        "offers_gone": [dict(document) for document in gone],
    }
    if before["outcome"] == after["outcome"] == "planned":
        old, new = _micros(before), _micros(after)
        data["change_usd"] = usd_text(new - old)
        data["change_percent"] = round(float(Fraction(new - old, old) * 100), 2) if old else None
    return {"type": f"watch.{event}", "timestamp": at, "data": data | {"summary": _summary(data)}}


def _shown(document: JsonObject) -> JsonObject:
    """The report without the offers that gpuplan stores for comparison."""
    return {name: value for name, value in document.items() if name != "offers"}


def _summary(data: JsonObject) -> str:
    before, after, event = data["before"], data["after"], data["event"]
    begin = f"{data['watch']['name']} {TITLES[event]}"
    if event == DEADLINE_PASSED:
        return f"{begin}."
    if event == INFEASIBLE:
        return f"{begin} ({conflicts_in_short(after['conflicts'], after.get('searched_nodes'))}); it was {usd(before['cost_usd'])} on {before['choice']}."
    best = f"{usd(after['cost_usd'])} on {after['choice']}"
    if event == FEASIBLE:
        return f"{begin}: {best}."
    change = _change(data)
    if event == OFFER_GONE:
        lost = " and ".join(f"{offer['instance_type']} in {offer_place(offer)}" for offer in data["offers_gone"])
        return f"{begin}, {lost}: the best plan is now {best}, {change} than {usd(before['cost_usd'])} before."
    return f"{begin}: {best}, {change} than {usd(before['cost_usd'])} on {before['choice']}."


def _change(data: JsonObject) -> str:
    amount, percent = data["change_usd"], data["change_percent"]
    micros = usd_micros(amount)
    part = "" if percent is None else f" ({abs(percent):.3g} %)"
    if micros == 0:
        return "no dearer"
    return f"{usd(usd_text(abs(micros)))}{part} {'more' if micros > 0 else 'less'}"


def _micros(document: JsonObject) -> int:
    return usd_micros(document["cost_usd"])
