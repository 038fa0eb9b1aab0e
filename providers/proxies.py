"""The proxies that the environment names, looked at before anything goes through them."""

import os
from urllib.request import getproxies_environment

import httpx

from catalog.errors import Fault, UnusableInput

_SCHEMES = ("http", "https", "all")


def check_proxies() -> tuple[str, ...]:
    """The variables that name a proxy. Raises `UnusableInput` at each whose proxy cannot be used.

    The address is not repeated: it may hold a password.
    """
    given = getproxies_environment()
    named = {_variable(scheme): given[scheme] for scheme in _SCHEMES if given.get(scheme)}
    faults = [
        Fault((name,), "names no proxy that can be used; accepted: http://host:port")
        for name, url in named.items()
        if not _usable(url)
    ]
    if faults:
        raise UnusableInput(*faults)
    return tuple(named)


def _variable(scheme: str) -> str:
    """As it is written in this environment: both cases count."""
    name = f"{scheme}_proxy"
    return name if os.environ.get(name) else name.upper()


def _usable(url: str) -> bool:
    """As httpx takes it, which reads an address without a scheme as http."""
    try:
        proxy = httpx.Proxy(url if "://" in url else f"http://{url}")
    except (ValueError, httpx.InvalidURL):
        return False
    # Those of SOCKS need a package that is no part of gpuplan.
    return proxy.url.scheme in {"http", "https"} and bool(proxy.url.host)
