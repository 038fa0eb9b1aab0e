"""The section `retention` of the settings file: how long snapshots, plans and reports are kept."""

from typing import Annotated

from pydantic import Field, model_validator

from catalog.document_fields import Document
from catalog.retention import RetentionPolicy

_DEFAULT = RetentionPolicy()
#: A century: beyond it somebody means for ever, which is null.
Days = Annotated[int, Field(ge=1, le=36_525, strict=True)]


class RetentionDocument(Document):
    """Whole days; null keeps for ever, a key left out keeps its default.

    Every snapshot is kept for `every_snapshot_days`, then one a week until it is `weekly_snapshot_days` old;
    plans that no run reported on and no watch follows, and the answers of long questions, for `plans_days`. The audit log is kept for `audit_days`.
    """

    every_snapshot_days: Days | None = _DEFAULT.every_snapshot_days
    weekly_snapshot_days: Days | None = _DEFAULT.weekly_snapshot_days
    plans_days: Days | None = _DEFAULT.plans_days
    audit_days: Days | None = _DEFAULT.audit_days

    @model_validator(mode="after")
    def _weekly_is_the_longer(self) -> "RetentionDocument":
        every, weekly = self.every_snapshot_days, self.weekly_snapshot_days
        if every is not None and weekly is not None and weekly < every:
            raise ValueError(
                f"weekly_snapshot_days {weekly} is less than every_snapshot_days {every}; "
                "give at least as many, or null for ever"
            )
        return self

    def policy(self) -> RetentionPolicy:
        """What the store is given."""
        return RetentionPolicy(
            every_snapshot_days=self.every_snapshot_days,
            weekly_snapshot_days=self.weekly_snapshot_days,
            plans_days=self.plans_days,
            audit_days=self.audit_days,
        )
