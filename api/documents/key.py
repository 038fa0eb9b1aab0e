"""A key as somebody asks for it: a name, what it may, until when, and how much."""

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field

from api.identity.keys import MOST_DAYS, MOST_NAME
from api.identity.who import MEANING, SCOPES
from catalog.document_fields import Document, Reads, choice, quantity, read_as, whole_number
from catalog.errors import UnusableInput
from catalog.quantities import hours, looks_like_time, moment, shown

_EXPIRES = "a duration from now on (90d) or a time with its zone; left out: never"
_HOURS_PER_DAY = 24


def _name(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > MOST_NAME:
        raise ValueError(f"{shown(value)} is no name; write 1 to {MOST_NAME} printable characters")
    return value.strip()


def _expires(value: object) -> float | datetime | None:
    """Hours from now on, or a time."""
    if value is None:
        return None
    return moment(value) if looks_like_time(value) else hours(value)


class KeyDocument(Document):
    """What `POST /v1/keys` and `gpuplan keys create` take. A scope includes those before it: read, plan, refresh, admin."""

    name: Annotated[
        str,
        Reads(
            _name,
            {
                "type": "string",
                "minLength": 1,
                "maxLength": MOST_NAME,
                "description": "whose key it is",
                "examples": ["ci"],
            },
        ),
    ]
    scope: Annotated[str, choice(SCOPES, description="; ".join(f"{each}: {MEANING[each]}" for each in SCOPES))] = "plan"
    expires: Annotated[float | datetime | None, quantity(_expires, _EXPIRES, "90d", "2027-06-30T00:00Z")] = Field(None)
    requests_per_minute: Annotated[
        int | None, whole_number(1, 1_000_000, "as many requests a minute, instead of the service's own limit")
    ] = Field(None)
    plans_per_day: Annotated[
        int | None, whole_number(1, 1_000_000_000, "as many plans a day (UTC), instead of the service's own limit")
    ] = Field(None)

    def expires_at(self, now: datetime) -> datetime | None:
        """When it ends. Raises `UnusableInput` at `expires` for what lies in the past or too far ahead."""
        if self.expires is None:
            return None
        at = self.expires if isinstance(self.expires, datetime) else now + timedelta(hours=self.expires)
        if not now < at <= now + timedelta(days=MOST_DAYS):
            message = f"{at.isoformat(timespec='seconds')} is not accepted; a key ends in the future: {_EXPIRES}"
            raise UnusableInput.at("expires", message=message)
        return at


def parse_key(document: object) -> KeyDocument:
    """The document, read. Raises `UnusableInput` naming every field at fault."""
    return read_as(KeyDocument, document)
