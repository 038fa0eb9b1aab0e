"""Channels as messages go to them: address and signature, read from the environment when they are needed."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from api.documents.channel import WHSEC, ChannelDocument, checked_url
from api.secret_files import secret
from catalog.errors import UnusableInput

#: What the Standard Webhooks specification asks of a symmetric secret, in bytes.
SHORTEST_SECRET, LONGEST_SECRET = 24, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    """Where messages of one channel go.

    `secret` is never shown, nor is `url` if it came from the environment; `secrets` is what to mask in any text.
    `private`: it may be this machine or one of its network.
    """

    name: str
    kind: str
    url: str = field(repr=False)
    url_is_secret: bool
    private: bool = False
    secret: str = field(repr=False, default="")

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every form in which the secret or a secret address may turn up in what somebody else says."""
        forms = [self.secret, self.secret.removeprefix(WHSEC)]
        if self.url_is_secret:
            parts = urlsplit(self.url)
            # The longest first: what is masked in part would no longer be found as a whole.
            forms += [self.url, parts.query, parts.path.lstrip("/"), parts.path.rpartition("/")[2]]
        return tuple(each for each in forms if each)


def named(channels: Sequence[ChannelDocument], name: str) -> ChannelDocument:
    """The channel of that name. Raises `UnusableInput` at `channels` naming those there are."""
    for each in channels:
        if each.name == name:
            return each
    there = ", ".join(each.name for each in channels)
    accepted = f"accepted: {there}" if there else "the settings file has no channels yet: add one under channels"
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
        raise _unusable(channel, "secret_from", f"what it holds does not begin with {WHSEC}; {accepted}")
    encoded = value.removeprefix(WHSEC)
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise _unusable(channel, "secret_from", f"what it holds is no base64; {accepted}") from None
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
