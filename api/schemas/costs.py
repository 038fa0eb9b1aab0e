"""Costs by month: the question, and a team's budget."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict

from gpuplan.catalog.model.money import usd_micros
from gpuplan.catalog.parsing.document_fields import Document, Label, choose, quantity, read_as
from gpuplan.catalog.parsing.quantities import shown, usd
from gpuplan.catalog.runtime.errors import UnusableInput

By = Literal["team", "project", "provider", "kind"]
BY: tuple[By, ...] = ("team", "project", "provider", "kind")
#: The first year that a month is accepted of.
FIRST_YEAR = 2000
_MONTH = re.compile(r"(2\d{3})-(0[1-9]|1[0-2])")
Budget = Annotated[
    float, quantity(lambda value: usd(value, zero=True), "US dollars a month: 5000, $5,000, 5k", 5000, "$5k")
]


class BudgetDocument(Document):
    """A team's budget for each month; without `usd` it is removed."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"team": "research", "usd": "5000"}]})

    team: Annotated[str, Label] | None = None
    usd: Budget | None = None

    @property
    def usd_micros(self) -> int | None:
        """The budget in micro-dollars; None removes it."""
        return None if self.usd is None else usd_micros(self.usd)


def read_month(text: str | None, now: datetime) -> datetime:
    """The first moment of a month in UTC; that of `now` unless given. Raises `UnusableInput` at `month`."""
    matched = _MONTH.fullmatch(f"{now.astimezone(UTC):%Y-%m}" if text is None else text)
    if matched is None:
        message = f"{shown(text)} is not accepted; write a year from 2000 and a month, as 2026-11"
        raise UnusableInput.at("month", message=message)
    return datetime(int(matched[1]), int(matched[2]), 1, tzinfo=UTC)


def read_by(text: str | None) -> By:
    """What costs are added up by; team unless given. Raises `UnusableInput` at `by`."""
    try:
        chosen = choose(text or "team", BY)
    except ValueError as error:
        raise UnusableInput.at("by", message=str(error)) from None
    return next(by for by in BY if by == chosen)


def parse_budget(document: Any) -> BudgetDocument:
    """A team's budget. Raises `UnusableInput` naming every wrong field."""
    given = read_as(BudgetDocument, document)
    if given.team is None:
        raise UnusableInput.at("team", message="is missing; name the team whose budget it is")
    return given
