"""What may be said about a refresh: which clouds, what of their answers is accepted unseen, how long it may take."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from catalog.document_fields import Document, YesNo, read_as
from providers.refresh import USUAL_LIMIT_SECONDS

USUAL_LIMIT_MINUTES = USUAL_LIMIT_SECONDS / 60
#: A refresh that takes longer than a day has met the next one.
MOST_MINUTES = 24 * 60.0


class RefreshDocument(Document):
    """All clouds unless `provider` names some. `accept_loss` takes a cloud that lost half of its rows,
    `accept_jumps` prices that moved by ten times; regions not read within `time_limit_minutes` have failed.
    """

    provider: Annotated[tuple[str, ...], Field(min_length=1, max_length=20)] | None = None
    accept_loss: Annotated[bool, YesNo] = False
    accept_jumps: Annotated[bool, YesNo] = False
    time_limit_minutes: Annotated[float, Field(gt=0, le=MOST_MINUTES, allow_inf_nan=False, strict=True)] = (
        USUAL_LIMIT_MINUTES
    )


def parse_refresh(document: Mapping[str, Any]) -> RefreshDocument:
    """The document, checked. Raises `UnusableInput` naming every key that is unknown or out of range."""
    return read_as(RefreshDocument, document)
