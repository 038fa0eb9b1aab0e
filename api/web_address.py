"""Addresses that settings and commands hold."""

import ipaddress
from urllib.parse import urlsplit


def is_web_address(text: str) -> bool:
    """Whether this is `http://` or `https://`, a host, and perhaps a port and more, without blanks."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    plain = text.isprintable() and " " not in text
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and port != 0 and plain


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
