"""Notes on saved plans: each identity has its own; without keys there is one for all."""

from dataclasses import replace
from datetime import datetime

from gpuplan.api.security.authorization import owner, viewer
from gpuplan.api.services.service_context import ContextService
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.ownership import EVERYBODY
from gpuplan.catalog.store.plan_store import PlanNote

LONGEST_NOTE = 4_000


class NoteService(ContextService):
    """Reads and writes notes of the requester."""

    def of(self, plan_id: str) -> PlanNote | None:
        """The requester's note on a plan, or None."""
        return self._context.store.note(plan_id, _identity())

    def by_plan(self) -> dict[str, str]:
        """The requester's notes by plan, without empty ones."""
        return self._context.store.noted_plans(_identity())

    def write(self, plan_id: str, text: str, *, seen: int, now: datetime) -> PlanNote | None:
        """Store the note that builds on version `seen` (0: none yet); None, without a change, if there is a newer one.

        Raises `UnusableInput` at `note` for an unusable text, `NotStored` if the requester may read no such plan.
        """
        self._context.store.plan(plan_id, viewer())
        note = PlanNote(plan_id=plan_id, identity=_identity(), note=_checked(text), version=seen + 1, changed_at=now)
        stored = self.of(plan_id)
        if stored is not None and replace(stored, version=note.version, changed_at=now) == note:
            # Saved twice, or by two tabs with the same text.
            return stored
        return note if self._context.store.save_note(note) else None


def _identity() -> str:
    return owner() or EVERYBODY


def _checked(text: str) -> str:
    note = text.replace("\r\n", "\n").strip()
    if len(note) > LONGEST_NOTE:
        raise UnusableInput.at("note", message=f"has {len(note):,} characters; accepted are at most {LONGEST_NOTE:,}")
    odd = next((char for char in note if not (char.isprintable() or char in "\n\t")), None)
    if odd is not None:
        raise UnusableInput.at("note", message=f"has the control character {shown(odd)}; write plain text")
    return note
