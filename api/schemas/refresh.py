"""The options of a refresh: clouds, accepted anomalies, and the time limit."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from gpuplan.catalog.parsing.document_fields import Document, YesNo, read_as
from gpuplan.providers.refresh.refresh_run import USUAL_LIMIT_SECONDS

USUAL_LIMIT_MINUTES = USUAL_LIMIT_SECONDS / 60
#: Longest time limit: refreshes run daily.
MOST_MINUTES = 24 * 60.0


class RefreshDocument(Document):
    """All clouds unless `provider` names some. `accept_loss` accepts a cloud that lost more than half of its rows,
    `accept_jumps` prices that changed tenfold; regions not read within `time_limit_minutes` fail.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"provider": ["aws", "azure"]}]})

    provider: Annotated[tuple[str, ...], Field(min_length=1, max_length=20)] | None = None
    accept_loss: Annotated[bool, YesNo] = False
    accept_jumps: Annotated[bool, YesNo] = False
    time_limit_minutes: Annotated[float, Field(gt=0, le=MOST_MINUTES, allow_inf_nan=False, strict=True)] = (
        USUAL_LIMIT_MINUTES
    )


def parse_refresh(document: Mapping[str, Any]) -> RefreshDocument:
    """Read the document. Raises `UnusableInput` naming every key that is unknown or out of range."""
    return read_as(RefreshDocument, document)
