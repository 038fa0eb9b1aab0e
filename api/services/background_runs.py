"""Background runs, which outlive their request: progress, answer and cancellation."""

from datetime import UTC, datetime

from gpuplan.api.jobs.recorded_refresh import refreshed
from gpuplan.api.jobs.run_document import shown
from gpuplan.api.schemas.run import Run
from gpuplan.api.security.authorization import record, viewer
from gpuplan.api.services.service_context import ContextService, Document, an_id
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.run_store import LIVE
from gpuplan.catalog.store.run_store import Run as StoredRun
from gpuplan.catalog.store.snapshot_list import NotStored

#: What the answer of a kind of run is called, where that is not the kind's own name.
_NOUNS = {"buy": "decision"}


class Cancellation(UnusableInput):
    """The run cannot be cancelled."""


class RunService(ContextService):
    """Reports on runs, whichever process executes them, and cancels them."""

    def stored(self, run_id: str) -> StoredRun:
        """The run in its present state. The report of a refresh, if there is one, decides how it ended.

        Raises `NotStored` if the requester may read no such run.
        """
        run_id = an_id(run_id, "run")
        try:
            run = self._context.store.runs.one(run_id, datetime.now(UTC), viewer())
        except NotStored as error:
            return self._refreshed(run_id, error)
        return self._refreshed(run_id, run) if run.kind == "refresh" and run.status == "failed" else run

    def _refreshed(self, run_id: str, otherwise: StoredRun | NotStored) -> StoredRun:
        try:
            return refreshed(self._context.store.refresh(run_id))
        except NotStored:
            if isinstance(otherwise, NotStored):
                raise otherwise from None
            return otherwise

    def one(self, run_id: str, *, progress: Document | None = None) -> Run:
        """The run, with its answer once there is one. `progress`, if given, is newer than the stored one."""
        return shown(self.stored(run_id), progress)

    def answer(self, run_id: str, kind: str) -> Document:
        """The answer of an ended run of this kind. Raises `NotStored` if there is none yet."""
        try:
            run = self.stored(run_id)
        except NotStored:
            run = None
        if run is None or run.kind != kind:
            raise NotStored.at(
                kind, message=f"no {_NOUNS.get(kind, kind)} {run_id[:80]!r} is stored here; accepted: the id of one"
            )
        if run.answer is None:
            what = "is not planned yet" if run.status in LIVE else f"has no answer: its run {run.status}"
            raise NotStored.at(kind, message=f"{run_id} {what}; /v1/runs/{run_id} says more")
        return run.answer

    def cancel(self, run_id: str) -> Run:
        """Request that a run ends, and return it. A run that has already ended does not change.

        Raises `Cancellation` for a refresh, `NotOwned` for a run of another owner.
        """
        run = self.stored(run_id)
        if run.kind == "refresh" and run.status in LIVE:
            message = (
                "a refresh cannot be cancelled: what a cloud gave is taken whole or not at all; wait until it ends"
            )
            raise Cancellation.at("run", message=message)
        self._context.store.runs.ask_cancel(run.id, viewer())
        self._context.store.access.record(record("run.cancel", run.id, datetime.now(UTC)))
        return self.one(run.id)
