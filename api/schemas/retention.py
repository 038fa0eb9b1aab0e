"""The section `retention` of the settings file: how long records are kept."""

from typing import Annotated

from pydantic import Field, model_validator

from gpuplan.catalog.parsing.document_fields import Document
from gpuplan.catalog.store.retention import RetentionPolicy

_DEFAULT = RetentionPolicy()
#: A century in days; null keeps records forever.
Days = Annotated[int, Field(ge=1, le=36_525, strict=True)]


class RetentionDocument(Document):
    """Whole days; null keeps records forever; a missing key has its default.

    Every snapshot is kept for `every_snapshot_days`, then one per week for `weekly_snapshot_days`. Plans without a
    reported run or a watch, and answers of long runs, are kept for `plans_days`; the audit log for `audit_days`.
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
                "give at least as many, or null to keep forever"
            )
        return self

    def policy(self) -> RetentionPolicy:
        """The store's retention policy."""
        return RetentionPolicy(
            every_snapshot_days=self.every_snapshot_days,
            weekly_snapshot_days=self.weekly_snapshot_days,
            plans_days=self.plans_days,
            audit_days=self.audit_days,
        )
