"""What every question that makes the planner work has in common: it counts as a plan of the day, and is written down."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from api.identity.asking import charge, counting, record, refuse_used_up, uncounted
from api.planning_processes.budget import OutOfMemory, ProcessEnded
from api.questions.opened import Document, Opened, body_of
from catalog.allowed_time import OutOfTime
from catalog.errors import StoreFailure, UnusableInput

log = logging.getLogger("gpuplan.questions")


@dataclass(slots=True)
class Noted:
    """What the audit log is to say of a question: what it was about, and how it ended."""

    subject: str = ""
    outcome: str = "answered"

    def of(self, answer: Document, *, subject: str = "") -> None:
        """About what an answer is about, ended as it says."""
        self.subject = subject or str(body_of(answer).get("id", ""))
        self.outcome = answer["outcome"]


class Counted(Opened):
    """Questions that count. What the command line asks is of this machine's own user, and leaves no record but its plans."""

    @contextmanager
    def counted(self, action: str) -> Iterator[Noted]:
        """Around working out an answer, which counts once it is there. Raises `QuotaExceeded`, and then it is not given."""
        noted = Noted()
        with self.unanswered_noted(action):
            yield noted
        if uncounted() is not None:
            self._charge(action, noted)

    @contextmanager
    def unanswered_noted(self, action: str) -> Iterator[None]:
        """Around reading and working out: nothing is begun for one whose day is used up, and what is refused is recorded.

        What was given up since it took too long, or too much memory, counts like an answer: its work was done.
        """
        refuse_used_up(datetime.now(UTC))
        try:
            with self.refusals_noted(action):
                yield
        except (OutOfTime, OutOfMemory, ProcessEnded) as error:
            if uncounted() is not None:
                self._charge(action, Noted(outcome="too long" if isinstance(error, OutOfTime) else "too large"))
            raise

    @contextmanager
    def refusals_noted(self, action: str) -> Iterator[None]:
        """Around reading what is asked: what is refused as unusable is recorded."""
        try:
            yield
        except UnusableInput as error:
            if uncounted() is not None:
                self._note_refused(action, error)
            raise

    def _charge(self, action: str, noted: Noted) -> None:
        now = datetime.now(UTC)
        with counting(now):
            self.store.access.charge(charge(action, noted.subject, now, outcome=noted.outcome))

    def _note_refused(self, action: str, error: UnusableInput) -> None:
        """A refusal that cannot be recorded is still said to who asked, who got nothing else."""
        try:
            self.store.access.record(record(action, error.faults[0].field, datetime.now(UTC), outcome="refused"))
        except StoreFailure as failure:
            log.warning("a refused %s could not be recorded: %s", action, failure)
