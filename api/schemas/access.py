"""The answers on API keys, the audit log and share links.

Field names and their order are those of the JSON object.
"""

from dataclasses import dataclass
from typing import Literal

from gpuplan.api.schemas.json_types import Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """An API key without its secret."""

    id: str
    name: str
    scope: Literal["read", "plan", "refresh", "admin"]
    """Each includes those before it."""
    state: Literal["holds", "expired", "revoked"]
    created_at: Moment
    created_by: str
    expires_at: Moment | None
    revoked_at: Moment | None
    last_used_at: Moment | None
    """To the minute."""
    requests_per_minute: int | None
    """Null: the limit of the service."""
    plans_per_day: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key with a new secret. No other answer has the secret."""

    key: str
    """`gpk_<id>_<secret>`, for the header `Authorization: Bearer`."""
    id: str
    name: str
    scope: Literal["read", "plan", "refresh", "admin"]
    """Each includes those before it."""
    state: Literal["holds", "expired", "revoked"]
    created_at: Moment
    created_by: str
    expires_at: Moment | None
    revoked_at: Moment | None
    last_used_at: Moment | None
    """To the minute."""
    requests_per_minute: int | None
    """Null: the limit of the service."""
    plans_per_day: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """All keys, the oldest first."""

    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """An action of one identity."""

    number: int
    at: Moment
    identity: str
    name: str
    via: str
    """How the identity was proven: key, session, oidc, slack, loopback, command."""
    action: str
    subject: str
    """The id of the plan, key, run, watch or refresh."""
    outcome: str
    request_id: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """A page of the audit log, the newest entry first."""

    entries: tuple[AuditEntry, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A link by which others may read a plan, run or watch, without its secret."""

    id: str
    kind: Literal["plan", "run", "watch"]
    object_id: str
    created_at: Moment
    created_by: str
    revoked_at: Moment | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewShare:
    """A new link. No other answer has its secret."""

    link: str
    """`/shared/gpl_<id>_<secret>` at the address of the service; a browser opens it, as does `POST /v1/shares/open`."""
    id: str
    kind: Literal["plan", "run", "watch"]
    object_id: str
    created_at: Moment
    created_by: str
    revoked_at: Moment | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """All links to objects of the requester, the oldest first."""

    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedObject:
    """The object of a link."""

    kind: Literal["plan", "run", "watch"]
    object_id: str
