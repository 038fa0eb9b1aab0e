"""What may be asked of work that outlives its request: how far it is, what came of it, and to end it."""

from datetime import UTC, datetime

from api.identity.asking import record, viewer
from api.questions.opened import Document, Opened, an_id
from api.runs.refreshes import refreshed
from api.runs.shown import shown
from catalog.errors import UnusableInput
from catalog.runs import LIVE, Run
from catalog.snapshot_list import NotStored


class Cancellation(UnusableInput):
    """What was asked to end cannot be ended."""


class Runs(Opened):
    """Questions about runs, whichever process is at them."""

    def stored_run(self, run_id: str) -> Run:
        """The run as it stands now; a refresh that has a report has ended as the report says.

        Raises `NotStored` if there is none that may be read by who is asking.
        """
        run_id = an_id(run_id, "run")
        try:
            run = self.store.runs.one(run_id, datetime.now(UTC), viewer())
        except NotStored as nowhere:
            return self._refreshed(run_id, nowhere)
        return self._refreshed(run_id, run) if run.kind == "refresh" and run.status == "failed" else run

    def _refreshed(self, run_id: str, otherwise: Run | NotStored) -> Run:
        try:
            return refreshed(self.store.refresh(run_id))
        except NotStored:
            if isinstance(otherwise, NotStored):
                raise otherwise from None
            return otherwise

    def run(self, run_id: str, *, progress: Document | None = None) -> Document:
        """The run as it stands now, with its answer once there is one; `progress` is newer than the store's."""
        return shown(self.stored_run(run_id), progress)

    def run_answer(self, run_id: str, kind: str) -> Document:
        """The answer of an ended run of this kind, as it was given. Raises `NotStored` if there is none (yet)."""
        try:
            run = self.stored_run(run_id)
        except NotStored:
            run = None
        if run is None or run.kind != kind:
            raise NotStored.at(kind, message=f"no {kind} {run_id[:80]!r} is stored here; accepted: the id of one")
        if run.answer is None:
            what = "is not planned yet" if run.status in LIVE else f"has no answer: its run {run.status}"
            raise NotStored.at(kind, message=f"{run_id} {what}; /v1/runs/{run_id} says more")
        return run.answer

    def cancel_run(self, run_id: str) -> Document:
        """Ask a run to end, and show it; one that has ended stays as it is.

        Raises `Cancellation` for a refresh, `NotOwned` for a run of somebody else.
        """
        run = self.stored_run(run_id)
        if run.kind == "refresh" and run.status in LIVE:
            message = (
                "a refresh cannot be cancelled: what a cloud gave is taken whole or not at all; wait until it ends"
            )
            raise Cancellation.at("run", message=message)
        self.store.runs.ask_cancel(run.id, viewer())
        self.store.access.record(record("run.cancel", run.id, datetime.now(UTC)))
        return self.run(run.id)
