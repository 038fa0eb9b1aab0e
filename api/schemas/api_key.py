"""The request for an API key: name, scope, expiry and limits."""

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import ConfigDict, Field

from gpuplan.api.security.api_key_secrets import MOST_DAYS, MOST_NAME
from gpuplan.api.security.identity import MEANING, SCOPES
from gpuplan.catalog.parsing.document_fields import Document, Reads, choice, quantity, read_as, whole_number
from gpuplan.catalog.parsing.quantities import hours, looks_like_time, moment, shown
from gpuplan.catalog.runtime.errors import UnusableInput

_EXPIRES = "a duration from now (90d) or a time with a zone; default: never"


def _name(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > MOST_NAME:
        raise ValueError(f"{shown(value)} is not a valid name; write 1 to {MOST_NAME} printable characters")
    return value.strip()


def _expires(value: object) -> float | datetime | None:
    """Hours from now on, or a time."""
    if value is None:
        return None
    return moment(value) if looks_like_time(value) else hours(value)


class KeyDocument(Document):
    """What `POST /v1/keys` and `gpuplan keys create` take. A scope includes those before it: read, plan, refresh, admin."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "ci", "scope": "plan", "expires": "90d"}]})

    name: Annotated[
        str,
        Reads(
            _name,
            {
                "type": "string",
                "minLength": 1,
                "maxLength": MOST_NAME,
                "description": "the owner of the key",
                "examples": ["ci"],
            },
        ),
    ]
    scope: Annotated[str, choice(SCOPES, description="; ".join(f"{scope}: {MEANING[scope]}" for scope in SCOPES))] = (
        "plan"
    )
    expires: Annotated[float | datetime | None, quantity(_expires, _EXPIRES, "90d", "2027-06-30T00:00Z")] = Field(None)
    requests_per_minute: Annotated[
        int | None, whole_number(1, 1_000_000, "requests per minute; default: the service's limit")
    ] = Field(None)
    plans_per_day: Annotated[
        int | None, whole_number(1, 1_000_000_000, "plans per UTC day; default: the service's limit")
    ] = Field(None)

    def expires_at(self, now: datetime) -> datetime | None:
        """The time of expiry. Raises `UnusableInput` at `expires` for a time in the past or too far ahead."""
        if self.expires is None:
            return None
        at = self.expires if isinstance(self.expires, datetime) else now + timedelta(hours=self.expires)
        if not now < at <= now + timedelta(days=MOST_DAYS):
            message = f"{at.isoformat(timespec='seconds')} is not accepted; a key must expire in the future: {_EXPIRES}"
            raise UnusableInput.at("expires", message=message)
        return at


def parse_key(document: object) -> KeyDocument:
    """Read the document. Raises `UnusableInput` naming every field at fault."""
    return read_as(KeyDocument, document)
