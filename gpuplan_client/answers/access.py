"""Keys without their secrets, and who did what."""

from typing import Literal, TypedDict

from gpuplan_client.answers.parts import Moment


class Key(TypedDict):
    """A key, without its secret."""

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
    """None: the service's own limit."""
    plans_per_day: int | None


class NewKey(Key):
    """A key just made, or given another secret: the only answer that holds it."""

    key: str
    """`gpk_<id>_<secret>`, for the header `Authorization: Bearer`."""


class Keys(TypedDict):
    """Every key, the oldest first."""

    keys: list[Key]


class AuditEntry(TypedDict):
    """Somebody did something."""

    number: int
    at: Moment
    identity: str
    name: str
    via: str
    """How they showed who they are: key, session, oidc, slack, loopback, command."""
    action: str
    subject: str
    """The id of the plan, key, run, watch or refresh."""
    outcome: str
    request_id: str
    address: str


class Audit(TypedDict):
    """Who did what, the newest first."""

    entries: list[AuditEntry]
    next_cursor: str | None


class Share(TypedDict):
    """A link by which others may read a plan, run or watch, without its secret."""

    id: str
    kind: Literal["plan", "run", "watch"]
    object_id: str
    created_at: Moment
    created_by: str
    revoked_at: Moment | None


class NewShare(Share):
    """A link just made: the only answer that holds it."""

    link: str
    """`/shared/gpl_<id>_<secret>` at the address of the service; a browser opens it, as does `POST /v1/shares/open`."""


class Shares(TypedDict):
    """Every link to what belongs to who is asking, the oldest first."""

    shares: list[Share]


class OpenedShare(TypedDict):
    """What a link leads to."""

    kind: Literal["plan", "run", "watch"]
    object_id: str
