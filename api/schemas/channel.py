"""A notification channel of the settings file: its name, address, and the environment variables of its secrets.

The file never contains a secret. The variables are read when a message is sent.
"""

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationInfo, field_validator, model_validator

from gpuplan.api.security.public_addresses import is_public, literal_address
from gpuplan.api.security.web_addresses import is_loopback
from gpuplan.catalog.parsing.document_fields import Document

#: Prefix of secrets in the Standard Webhooks scheme.
WHSEC = "whsec_"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_LONGEST_URL = 2_000


def checked_url(text: str, *, query: bool, private: bool) -> str:
    """Check an address for messages; `query` allows a query string, `private` an address of this network.

    Raises `ValueError`, without repeating the address, for anything but https (or http to this machine), for a user or
    password in it, and for an invalid address. The host name is resolved and checked when connecting.
    """
    accepted = "write https://host/path, or http:// for this machine itself"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(f"is not an address; {accepted}") from None
    if len(text) > _LONGEST_URL or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(
            f"is not an address; {accepted}, in at most {_LONGEST_URL} ASCII characters without blanks"
        ) from None
    if not parts.hostname or port == 0 or parts.scheme not in {"http", "https"}:
        raise ValueError(f"is not a web address; {accepted}")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ValueError(f"is plain http, which is not encrypted; {accepted}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("contains a user or password; remove it: secrets are in environment variables")
    if parts.fragment:
        raise ValueError(f"has a fragment (#), which is never sent to a server; {accepted}")
    if parts.query and not query:
        raise ValueError(
            "has a query (?), which may contain secrets; put the whole address into an environment variable "
            "and name the variable in url_from"
        )
    address = literal_address(parts.hostname)
    if not private and (is_loopback(parts.hostname or "") or (address is not None and not is_public(address))):
        raise ValueError("points to this machine or its network; add private: true to allow that")
    return text


def variable_name(name: str) -> str:
    """The name of an environment variable. Raises `ValueError` for a secret, or for any other text."""
    if name.startswith(WHSEC):
        raise ValueError("is a secret; put it into an environment variable and write the name of the variable here")
    if not _VARIABLE.fullmatch(name):
        raise ValueError("is not the name of an environment variable; write only the name, such as TEAM_WEBHOOK_SECRET")
    return name


class ChannelDocument(Document):
    """One channel: Slack's incoming webhook, or your own webhook, signed by the Standard Webhooks scheme."""

    name: str
    kind: Literal["slack", "webhook"]
    #: Allows an address of this machine or its network. Declared before the address, whose validator reads it.
    private: Annotated[bool, Field(strict=True)] = False
    url: str | None = None
    url_from: str | None = None
    secret_from: str | None = None

    @field_validator("name")
    @classmethod
    def _a_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError("is not a channel name; write up to 64 letters, digits, and . _ - between them")
        return name

    @field_validator("url")
    @classmethod
    def _an_address(cls, url: str | None, info: ValidationInfo) -> str | None:
        # An invalid `private` is a fault of its own; the address is then checked as public.
        return None if url is None else checked_url(url, query=False, private=info.data.get("private", True))

    @field_validator("url_from", "secret_from")
    @classmethod
    def _a_variable(cls, name: str | None) -> str | None:
        return None if name is None else variable_name(name)

    @model_validator(mode="after")
    def _whole(self) -> "ChannelDocument":
        if self.kind == "slack":
            if self.url is not None or self.url_from is None:
                raise ValueError(
                    "Slack's address is a secret: put it into an environment variable and name the variable in url_from"
                )
            if self.secret_from is not None:
                raise ValueError("Slack does not check signatures; leave out secret_from")
            return self
        if (self.url is None) == (self.url_from is None):
            raise ValueError("give either url, or url_from with the name of the environment variable that contains it")
        if self.secret_from is None:
            raise ValueError(
                "secret_from is missing: name the environment variable with the secret (whsec_...) that signs messages"
            )
        return self
