"""Validate the proxies in the environment before use."""

import os
from urllib.request import getproxies_environment

import httpx

from gpuplan.catalog.runtime.errors import Fault, UnusableInput

_SCHEMES = ("http", "https", "all")


def check_proxies() -> tuple[str, ...]:
    """The variables that name a proxy. Raises `UnusableInput` at each with an unusable proxy.

    The message omits the address, which may contain a password.
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
    """The variable's name in this environment: both cases count."""
    name = f"{scheme}_proxy"
    return name if os.environ.get(name) else name.upper()


def _usable(url: str) -> bool:
    """The proxy as httpx interprets it, which reads an address without a scheme as http."""
    try:
        proxy = httpx.Proxy(url if "://" in url else f"http://{url}")
    except (ValueError, httpx.InvalidURL):
        return False
    # SOCKS proxies need a package that gpuplan does not install.
    return proxy.url.scheme in {"http", "https"} and bool(proxy.url.host)
