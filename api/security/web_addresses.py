"""Checks of web addresses in settings and commands."""

import ipaddress
from urllib.parse import urlsplit


def is_web_address(text: str) -> bool:
    """Whether this is `http://` or `https://` with a host, optionally a port and path, without blanks."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    plain = text.isprintable() and " " not in text
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and port != 0 and plain


def is_loopback(host: str) -> bool:
    """Whether the address can be reached only from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
