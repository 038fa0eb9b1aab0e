"""Slack in the store: questions and their answers, workspaces and installations; each method one transaction."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from catalog.slack_answers import (
    SlackAnswer,
    asked_for,
    count_waiting,
    first_time,
    hold,
    last_plan,
    read_answer,
    read_due,
    settle,
    spend,
    write_answer,
    write_message,
)
from catalog.slack_workspaces import (
    SlackWorkspace,
    delete_installation,
    delete_workspace,
    find_workspace,
    read_installation,
    read_workspaces,
    write_installation,
    write_workspace,
)

Transaction = Callable[[], AbstractContextManager[sa.Connection]]


class SlackStore:
    """The part of a store that Slack lives in. Every method raises `StoreFailure` if the database cannot be used."""

    def __init__(self, *, reading: Transaction, writing: Transaction) -> None:
        """On the store's own ways to begin a transaction."""
        self._reading = reading
        self._writing = writing

    def first_time(self, keys: Iterable[str], now: datetime, until: datetime) -> bool:
        """Whether none of `keys` has been seen in any process; from now on all of them have, `until` that time."""
        with self._writing() as connection:
            return first_time(connection, keys, now, until)

    def spend(self, key: str, now: datetime) -> bool:
        """Whether `key` was kept by `first_time` and is still good; it is gone from now on."""
        with self._writing() as connection:
            return spend(connection, key, now)

    def ask(self, answer: SlackAnswer, *, most_waiting: int) -> bool:
        """Keeps a question; False, and nothing is kept, where so many of its workspace wait already."""
        with self._writing() as connection:
            if count_waiting(connection, answer.team_id) >= most_waiting:
                return False
            write_answer(connection, answer)
            return True

    def answer(self, answer_id: str) -> SlackAnswer | None:
        """The question under this id, None if there is none (any more)."""
        with self._reading() as connection:
            return read_answer(connection, answer_id)

    def due(self, now: datetime, *, most: int) -> tuple[SlackAnswer, ...]:
        """Questions that wait and that nobody holds, the oldest first."""
        with self._reading() as connection:
            return read_due(connection, now, most)

    def hold(self, answer_id: str, mine: datetime, until: datetime) -> bool:
        """Whether the caller, who read or set `mine` as `held_until`, is the one who is at it up to `until`."""
        with self._writing() as connection:
            return hold(connection, answer_id, mine, until)

    def answered(self, answer_id: str, message: Mapping[str, Any], *, plan_id: str, request: Mapping[str, Any]) -> None:
        """Keeps what is to be told, and the job behind it."""
        with self._writing() as connection:
            write_message(connection, answer_id, message, plan_id=plan_id, request=request)

    def settle(
        self,
        answer_id: str,
        *,
        attempts: int,
        delivered_at: datetime | None = None,
        given_up_at: datetime | None = None,
        again_at: datetime | None = None,
        error: str = "",
    ) -> None:
        """Notes how telling went: it is done, given up, or tried again at `again_at`."""
        with self._writing() as connection:
            settle(
                connection,
                answer_id,
                attempts=attempts,
                delivered_at=delivered_at,
                given_up_at=given_up_at,
                again_at=again_at,
                error=error,
            )

    def last_plan(self, team_id: str, user_id: str) -> str | None:
        """The id of the plan that this user was told last."""
        with self._reading() as connection:
            return last_plan(connection, team_id, user_id)

    def asked_for(self, plan_id: str, team_id: str) -> dict[str, Any] | None:
        """What a workspace had asked for when it was told this plan, None if that was not in Slack."""
        with self._reading() as connection:
            return asked_for(connection, plan_id, team_id)

    def allow(self, workspace: SlackWorkspace) -> None:
        """Allows a workspace, in place of what was allowed to it before."""
        with self._writing() as connection:
            write_workspace(connection, workspace)

    def workspaces(self) -> tuple[SlackWorkspace, ...]:
        """All that are allowed, the oldest first."""
        with self._reading() as connection:
            return read_workspaces(connection)

    def workspace(self, team_id: str, enterprise_id: str = "") -> SlackWorkspace | None:
        """What is allowed to a workspace: what its own row says, else that of its enterprise."""
        with self._reading() as connection:
            return find_workspace(connection, team_id, enterprise_id)

    def remove(self, workspace_id: str) -> None:
        """Allows a workspace no longer, and forgets its token. Raises `NotStored` at `workspace` if it was not allowed."""
        with self._writing() as connection:
            delete_workspace(connection, workspace_id)

    def install(self, workspace_id: str, installation: Mapping[str, Any], now: datetime) -> None:
        """Keeps what an installation left, in place of an earlier one of the same workspace."""
        with self._writing() as connection:
            write_installation(connection, workspace_id, installation, now)

    def installation(self, *workspace_ids: str) -> dict[str, Any] | None:
        """What the installation of the first of these left, None if there was none."""
        with self._reading() as connection:
            return read_installation(connection, *workspace_ids)

    def uninstall(self, workspace_id: str) -> None:
        """Forgets the token of a workspace, if there is one."""
        with self._writing() as connection:
            delete_installation(connection, workspace_id)
