"""Retention: deletes from the store what the settings file no longer keeps."""

from dataclasses import asdict
from datetime import UTC, datetime

from gpuplan.api.schemas.settings_file import settings_file
from gpuplan.api.services.service_context import ContextService, Document


class RetentionService(ContextService):
    """Deletes old rows of the store."""

    def retain(self, *, now: datetime | None = None) -> Document:
        """Delete what is too old as of `now`, and count it. A refresh ends with this."""
        policy = settings_file(self._context.environment.settings).retention.policy()
        return asdict(self._context.store.retain(policy, now or datetime.now(UTC)))
