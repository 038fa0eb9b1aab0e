"""The home tab of the app: a button to plan, the recent plans and the watches of the workspace."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpuplan.api.presentation.phrases import machines, name_in_list, place_and_kind
from gpuplan.api.presentation.text_formatting import duration, plain, usd, when
from gpuplan.api.presentation.watches import last_reported, threshold
from gpuplan.api.schemas.answers import read_answer
from gpuplan.api.schemas.watch_answers import Watch
from gpuplan.api.security.authorization import Requester, acting_as
from gpuplan.api.slack.block_kit import Block, actions, button, header, small, words
from gpuplan.api.slack.channel_watches import watches_of
from gpuplan.api.slack.plan_message import NEW, SHOW
from gpuplan.api.slack.slack_settings import SlackSettings
from gpuplan.api.slack.workspaces import identity_of, unknown_workspace
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.store.plan_store import SavedPlan
from gpuplan.planner.model.plan import Infeasible

if TYPE_CHECKING:
    from gpuplan.api.services.composition import Services

#: Plans and watches shown; a home tab takes 100 blocks.
MOST_SHOWN = 10


def home(gpuplan: "Services", settings: SlackSettings, team_id: str, enterprise_id: str) -> JsonObject:
    """The view of the home tab. Raises `StoreFailure`."""
    workspace = gpuplan.store.slack.workspace(team_id, enterprise_id)
    if workspace is None:
        return _view([words(unknown_workspace(team_id or enterprise_id))])
    with acting_as(Requester(identity=identity_of(workspace), address=team_id)):
        plans = gpuplan.plans.recent(MOST_SHOWN)
    return _view(
        [
            header("gpuplan"),
            actions(button("Plan a job", NEW, "new", primary=True)),
            *_plans(plans, settings),
            *_watches(watches_of(gpuplan, team_id)),
            small(f"as of {when(datetime.now(UTC).isoformat())}; open this tab again for newer ones"),
        ]
    )


def _view(blocks: list[Block]) -> JsonObject:
    return {"type": "home", "blocks": blocks}


def _plans(plans: Sequence[SavedPlan], settings: SlackSettings) -> list[Block]:
    """A plan per section, which a button shows in a direct message, and its page if it has a public address."""
    blocks = [header("Recent plans")]
    if not plans:
        blocks.append(words("This workspace has no plans yet."))
    for plan in plans:
        shown = words(_in_two_lines(plan))
        blocks.append(shown | {"accessory": button("Show", SHOW, plan.id)})
    if plans and settings.page_url:
        page = f"{settings.page_url.rstrip('/')}/plans"
        blocks.append(actions(button("All plans in the browser", "page", "page") | {"url": page}))
    return blocks


def _in_two_lines(plan: SavedPlan) -> str:
    body = read_answer(plan.outcome).body
    name, made = name_in_list(body.job, limit=60), when(plan.created_at)
    if isinstance(body, Infeasible):
        return f"{name}: no plan meets its requirements, {made}"
    rented = " then ".join(f"{machines(phase)} in {place_and_kind(phase)}" for phase in body.phases)
    cost, time = usd(body.cost_usd.expected), duration(body.hours.expected)
    return f"{name}: {cost} in {time} on {rented}, {made}"


def _watches(watches: Sequence[Watch]) -> list[Block]:
    blocks = [header("Watches")]
    if not watches:
        blocks.append(words("This workspace has no watches yet: use Watch below a plan."))
    for watch in watches[-MOST_SHOWN:]:
        checked = when(watch.checked_at) if watch.checked_at else "not yet"
        line = f"{plain(watch.name, limit=60)}: notifies of {threshold(watch)}; last notified: {last_reported(watch)}"
        blocks += [words(line), small(f"{watch.id}, {watch.state}, checked {checked}")]
    if watches:
        blocks.append(small("/gpuplan unwatch ID ends a watch"))
    return blocks
