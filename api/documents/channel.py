"""A channel of the settings file: where messages go, by a name that watches use, and where its secrets are kept.

The file never holds a secret: it names environment variables, which are read when a message is sent.
"""

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationInfo, field_validator, model_validator

from api.public_addresses import is_public, literal_address
from api.web_address import is_loopback
from catalog.document_fields import Document

#: What secrets of the Standard Webhooks scheme begin with.
WHSEC = "whsec_"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_LONGEST_URL = 2_000


def checked_url(text: str, *, query: bool, private: bool) -> str:
    """An address that messages may go to; with `query`, it may have one; if `private`, it may be of this network.

    Raises `ValueError`, which never repeats the address, for anything but https (or http to this machine itself),
    for a user or password in it, and for what is no address. Where a name leads is looked at when it is connected to.
    """
    accepted = "write https://host/path, or http:// for this machine itself"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(f"is no address; {accepted}") from None
    if len(text) > _LONGEST_URL or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(
            f"is no address; {accepted}, in at most {_LONGEST_URL} ASCII characters without blanks"
        ) from None
    if not parts.hostname or port == 0 or parts.scheme not in {"http", "https"}:
        raise ValueError(f"is no address of the web; {accepted}")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ValueError(f"is plain http, which anybody on the way can read; {accepted}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("holds a user or password; give the address without, messages are signed with secret_from")
    if parts.fragment:
        raise ValueError(f"has a fragment (#), which no server ever sees; {accepted}")
    if parts.query and not query:
        raise ValueError(
            "has a query (?), where secrets travel; put the whole address into an environment variable "
            "and name that in url_from"
        )
    address = literal_address(parts.hostname)
    if not private and (is_loopback(parts.hostname or "") or (address is not None and not is_public(address))):
        raise ValueError("leads to this machine or its network; write private: true beside it if that is meant")
    return text


def _variable(name: str) -> str:
    if name.startswith(WHSEC):
        raise ValueError("is a secret itself; put it into an environment variable and write the name of that here")
    if not _VARIABLE.fullmatch(name):
        raise ValueError("is no name of an environment variable; write the name alone, such as TEAM_WEBHOOK_SECRET")
    return name


class ChannelDocument(Document):
    """One channel: Slack's incoming webhook, or a webhook of your own that is signed by the Standard Webhooks scheme."""

    name: str
    kind: Literal["slack", "webhook"]
    #: Whether it may be this machine or one of its network, which is refused otherwise. Stands before the address,
    #: which is looked at by it.
    private: Annotated[bool, Field(strict=True)] = False
    url: str | None = None
    url_from: str | None = None
    secret_from: str | None = None

    @field_validator("name")
    @classmethod
    def _a_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError("is no name of a channel; write up to 64 letters, digits, and . _ - between them")
        return name

    @field_validator("url")
    @classmethod
    def _an_address(cls, url: str | None, info: ValidationInfo) -> str | None:
        # `private` that is no yes or no is a fault of its own, and the address then none.
        return None if url is None else checked_url(url, query=False, private=info.data.get("private", True))

    @field_validator("url_from", "secret_from")
    @classmethod
    def _a_variable(cls, name: str | None) -> str | None:
        return None if name is None else _variable(name)

    @model_validator(mode="after")
    def _whole(self) -> "ChannelDocument":
        if self.kind == "slack":
            if self.url is not None or self.url_from is None:
                raise ValueError(
                    "Slack's address is a secret: put it into an environment variable and name that in url_from"
                )
            if self.secret_from is not None:
                raise ValueError("Slack takes no signature; leave out secret_from")
            return self
        if (self.url is None) == (self.url_from is None):
            raise ValueError("give either url, or url_from with the environment variable that holds it")
        if self.secret_from is None:
            raise ValueError(
                "secret_from is missing: name the environment variable that holds the secret (whsec_...) messages are "
                "signed with"
            )
        return self
