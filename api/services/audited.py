"""Audits questions that make the planner work: each counts as a plan of the day and leaves an audit record."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from gpuplan.api.jobs.planning_processes.question_limits import OutOfMemory, ProcessEnded
from gpuplan.api.security.authorization import charge, counting, record, refuse_used_up, uncounted
from gpuplan.api.services.planner_calls import PlannerCalls
from gpuplan.api.services.service_context import ContextService
from gpuplan.catalog.runtime.errors import StoreFailure, UnusableInput
from gpuplan.catalog.runtime.time_limit import OutOfTime

log = logging.getLogger("gpuplan.questions")


@dataclass(slots=True)
class AuditEntry:
    """The subject and the outcome that the audit log records for a question."""

    subject: str = ""
    outcome: str = "answered"


class Audited(ContextService):
    """Counts questions and records refusals. A user of the command line is not counted, and leaves no record but plans."""

    @contextmanager
    def question(self, action: str) -> Iterator[AuditEntry]:
        """Around working out an answer, which counts once it is there. Raises `QuotaExceeded` instead of answering."""
        entry = AuditEntry()
        with self.failures(action):
            yield entry
        if uncounted() is not None:
            self._charge(action, entry)

    @contextmanager
    def failures(self, action: str) -> Iterator[None]:
        """Around reading and working out a question. Raises `QuotaExceeded` at once for a used-up day.

        Records a refusal. A question that ran out of time or memory counts like an answer, because it cost the work.
        """
        refuse_used_up(datetime.now(UTC))
        try:
            with self.refusals(action):
                yield
        except (OutOfTime, OutOfMemory, ProcessEnded) as error:
            if uncounted() is not None:
                self._charge(action, AuditEntry(outcome="too long" if isinstance(error, OutOfTime) else "too large"))
            raise

    @contextmanager
    def refusals(self, action: str) -> Iterator[None]:
        """Around reading a question. Records a refusal of unusable input."""
        try:
            yield
        except UnusableInput as error:
            if uncounted() is not None:
                self._record_refusal(action, error)
            raise

    def start(self, action: str, subject: str) -> None:
        """Count a long question as a plan when it starts. Raises `QuotaExceeded`."""
        now = datetime.now(UTC)
        refuse_used_up(now)
        with counting(now):
            self._context.store.access.charge(charge(action, subject, now, outcome="started"))

    def _charge(self, action: str, entry: AuditEntry) -> None:
        now = datetime.now(UTC)
        with counting(now):
            self._context.store.access.charge(charge(action, entry.subject, now, outcome=entry.outcome))

    def _record_refusal(self, action: str, error: UnusableInput) -> None:
        """A failure to record goes to the log, so that the user still gets the refusal itself."""
        try:
            refusal = record(action, error.faults[0].field, datetime.now(UTC), outcome="refused")
            self._context.store.access.record(refusal)
        except StoreFailure as failure:
            log.warning("a refused %s could not be recorded: %s", action, failure)


class PlannerService:
    """A service that works out answers by `planner`, each question counted by `audited`."""

    def __init__(self, planner: PlannerCalls, audited: Audited) -> None:
        """Work out nothing yet."""
        self._planner, self._audited = planner, audited
