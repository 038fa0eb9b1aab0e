"""Sections for watches: their start, notifications sent, and failed deliveries."""

from gpuplan.api.presentation.capacity import condition, in_one_line
from gpuplan.api.presentation.infeasibility import conflicts_in_short
from gpuplan.api.presentation.sections import Block, Heading, Sections, Tone, sections_of
from gpuplan.api.presentation.text_formatting import number, plain, usd, when
from gpuplan.api.presentation.text_tables import bullets, cell, facts, footer, heading, listing
from gpuplan.api.schemas.watch_answers import (
    CapacityWatch,
    JobWatch,
    NoCapacityAnswer,
    Notification,
    ReportedCapacity,
    ReportedConflicts,
    ReportedJob,
    ReportedMachines,
    ReportedPlan,
    Watch,
    WatchCheck,
    Watches,
)

_TITLES = ("watch", "name", "state", "last notified", "on", "channels", "checked")


def render_added(watch: Watch) -> Sections:
    """A watch that was just added."""
    ended_by = f"gpuplan watch remove {watch.id}"
    if isinstance(watch, JobWatch):
        rows = [
            (
                "notifies",
                f"when the plan gets {number(watch.cheaper_by_percent)} % cheaper or dearer, loses its offer,",
            ),
            ("", "becomes impossible, or possible again"),
            ("starts from", last_reported(watch)),
            ("plan", watch.last_told.plan_id),
        ]
        closing = f"End it with: {ended_by}"
    else:
        rows = [
            ("notifies", f"when a cloud gives {condition(watch.capacity)}, and when none does any more"),
            ("now", last_reported(watch)),
        ]
        closing = f"Checked after each refresh and by gpuplan watch check --capacity; end it with: {ended_by}"
    return sections_of(
        cell(f"Watching {watch.name} as {watch.id}", Tone.GOOD),
        facts([("channels", ", ".join(watch.channels)), *rows]),
        *bullets(watch.warnings or (), Tone.WARNING),
        footer(closing),
    )


def render_watches(answer: Watches) -> Sections:
    """All watches as a table."""
    watches = answer.watches
    if not watches:
        return sections_of(cell("Nothing is watched: gpuplan watch add JOB.yaml --channel NAME"))
    rows = [
        (
            watch.id,
            watch.name,
            "problem" if watch.problem else watch.state,
            _cost(watch.last_told),
            _choice(watch.last_told),
            ", ".join(watch.channels),
            when(watch.checked_at) if watch.checked_at else "not yet",
        )
        for watch in watches
    ]
    problems = bullets((f"{watch.id}: {watch.problem}" for watch in watches if watch.problem), Tone.WARNING)
    return sections_of(listing(_TITLES, rows, right=(3,)), *problems)


def render_watch(answer: Watch) -> Sections:
    """One watch and its notifications."""
    rows = [
        ("name", answer.name),
        ("state", answer.state),
        ("channels", ", ".join(answer.channels)),
        ("notifies of", threshold(answer)),
        ("last notified", last_reported(answer)),
        ("plan", answer.last_told.plan_id if isinstance(answer, JobWatch) else None),
        ("checked", when(answer.checked_at) if answer.checked_at else "not yet"),
        ("problem", answer.problem),
    ]
    notifications = answer.notifications or ()
    sentences = [
        f"{when(notification.created_at)} to {notification.channel}, {_state(notification)}: {notification.summary}"
        for notification in notifications
    ]
    return sections_of(
        cell(answer.id, Tone.STRONG), facts(rows), heading("Notifications"), *bullets(sentences or ["none yet"])
    )


def render_check(answer: WatchCheck) -> Sections:
    """Changes found by a check of all watches, and notifications sent."""
    sent = answer.deliveries
    title = (
        f"{number(answer.checked)} {_watches(answer.checked)} on snapshot {answer.snapshot_id}: "
        f"{number(len(answer.told))} changed, {number(sent.sent)} sent, {number(len(sent.failed))} not"
    )
    parts: list[Block | Heading] = [cell(title, Tone.STRONG), *bullets(change.summary for change in answer.told)]
    parts += bullets(
        (f"{problem.watch} could not be planned: {problem.problem}" for problem in answer.problems), Tone.BAD
    )
    if sent.held_elsewhere:
        parts += bullets([f"{number(sent.held_elsewhere)} are being sent by another process"], Tone.WARNING)
    return sections_of(*parts)


def check_lines(answer: WatchCheck) -> list[str]:
    """A check in sentences: changes, and failed deliveries."""
    return [*(change.summary for change in answer.told), *undelivered(answer)]


def undelivered(answer: WatchCheck) -> list[str]:
    """One line per undelivered message and per job that could not be planned."""
    lines = [
        f"{failure.watch}: {failure.event} not delivered to {failure.channel}"
        f"{'' if failure.final else ', tried again at the next run'}: {failure.error}"
        for failure in answer.deliveries.failed
    ]
    return lines + [f"{problem.watch}: could not be planned: {problem.problem}" for problem in answer.problems]


def threshold(watch: Watch) -> str:
    """What a watch notifies of, in short."""
    return f"{number(watch.cheaper_by_percent)} %" if isinstance(watch, JobWatch) else condition(watch.capacity)


def last_reported(watch: Watch) -> str:
    """What a watch last notified of, or started from."""
    if isinstance(watch, CapacityWatch):
        return in_one_line(watch.last_told, watch.capacity)
    reported = watch.last_told
    if isinstance(reported, ReportedPlan):
        return f"{usd(reported.cost_usd)} on {reported.choice}"
    return f"no plan ({conflicts_in_short(reported.conflicts, reported.searched_nodes)})"


def _cost(reported: ReportedJob | ReportedMachines) -> str:
    match reported:
        case ReportedPlan():
            return usd(reported.cost_usd)
        case ReportedConflicts():
            return "no plan"
        case ReportedCapacity():
            return f"chance {reported.chance:.2f}"
        case NoCapacityAnswer():
            return "no chance"


def _choice(reported: ReportedJob | ReportedMachines) -> str:
    return reported.choice if isinstance(reported, ReportedPlan | ReportedCapacity) else ""


def _state(part: Notification) -> str:
    state = str(part.state).replace("_", " ")
    return state if part.state == "delivered" or not part.last_error else f"{state} ({plain(part.last_error)})"


def _watches(count: int) -> str:
    return "watch planned" if count == 1 else "watches planned"
