"""Notification channels: address and secret, read from the environment when needed."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from gpuplan.api.schemas.channel import WHSEC, ChannelDocument, checked_url
from gpuplan.api.security.secret_files import secret
from gpuplan.catalog.runtime.errors import UnusableInput

#: The length that the Standard Webhooks specification requires of a symmetric secret, in bytes.
SHORTEST_SECRET, LONGEST_SECRET = 24, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    """The destination of one channel.

    `secret` is never shown, nor is `url` if it came from the environment; `secrets` must be masked in any text.
    `private`: the address may be this machine or one in its network.
    """

    name: str
    kind: str
    url: str = field(repr=False)
    url_is_secret: bool
    private: bool = False
    secret: str = field(repr=False, default="")

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every form in which the secret or a secret address may appear in foreign text."""
        forms = [self.secret, self.secret.removeprefix(WHSEC)]
        if self.url_is_secret:
            parts = urlsplit(self.url)
            # The longest first: after partial masking the whole secret would not match any more.
            forms += [self.url, parts.query, parts.path.lstrip("/"), parts.path.rpartition("/")[2]]
        return tuple(form for form in forms if form)


def named(channels: Sequence[ChannelDocument], name: str) -> ChannelDocument:
    """The channel with this name. Raises `UnusableInput` at `channels`, listing the existing ones."""
    for channel in channels:
        if channel.name == name:
            return channel
    names = ", ".join(channel.name for channel in channels)
    accepted = f"accepted: {names}" if names else "the settings file has no channels yet: add one under channels"
    raise UnusableInput.at("channels", message=f"no channel {name[:80]!r} is in the settings file; {accepted}")


def receiver(channel: ChannelDocument) -> Receiver:
    """Address and secret of a channel.

    Raises `UnusableInput` at the channel, naming the environment variable that is missing or wrong, never its value.
    """
    url = channel.url
    if url is None:
        url = _value(channel, "url_from")
        try:
            checked_url(url, query=True, private=channel.private)
        except ValueError as error:
            raise _unusable(channel, "url_from", f"the address in it {error}") from None
    secret = "" if channel.secret_from is None else _secret(channel)
    return Receiver(
        name=channel.name,
        kind=channel.kind,
        url=url,
        url_is_secret=channel.url_from is not None,
        private=channel.private,
        secret=secret,
    )


def _secret(channel: ChannelDocument) -> str:
    value = _value(channel, "secret_from")
    accepted = f"write {WHSEC} and then {SHORTEST_SECRET} to {LONGEST_SECRET} bytes in base64"
    if not value.startswith(WHSEC):
        raise _unusable(channel, "secret_from", f"its value does not begin with {WHSEC}; {accepted}")
    encoded = value.removeprefix(WHSEC)
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise _unusable(channel, "secret_from", f"its value is not base64; {accepted}") from None
    if not SHORTEST_SECRET <= len(key) <= LONGEST_SECRET:
        raise _unusable(channel, "secret_from", f"the secret in it has {len(key)} bytes; {accepted}")
    return value


def _value(channel: ChannelDocument, key: str) -> str:
    variable = getattr(channel, key)
    value = secret(variable)
    if not value:
        raise _unusable(channel, key, "it is not set, or empty; set it where gpuplan runs")
    return value


def _unusable(channel: ChannelDocument, key: str, what: str) -> UnusableInput:
    variable = getattr(channel, key)
    return UnusableInput.at("channels", channel.name, key, message=f"environment variable {variable}: {what}")
