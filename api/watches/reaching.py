"""The way to a receiver: its name is resolved once, and the address that was looked at is the one connected to.

A name that leads to this machine or to its network is refused unless the channel says that this is meant: otherwise
whoever holds the name could have messages sent, with gpuplan's place in the network, to what only that network reaches.
"""

import asyncio
import socket
from ipaddress import ip_address
from urllib.request import getproxies, proxy_bypass

import httpx

from api.public_addresses import Address, is_public

#: The key under which a request says that its address may be a private one.
PRIVATE = "gpuplan.private"
#: A connection serves one message: kept, it could carry another channel's to a receiver whose name it never proved.
_LIMITS = httpx.Limits(max_keepalive_connections=0)


class NotPublic(Exception):
    """The name of a receiver leads to no address of the internet."""


class Reaching(httpx.AsyncBaseTransport):
    """Connects to public addresses alone, unless the request's extension `PRIVATE` is true.

    Where the environment names a proxy (`HTTPS_PROXY`, `NO_PROXY` ...) that one resolves names, and decides.
    Requests need bodies that can be sent twice. Raises `NotPublic`, and what httpx raises.
    """

    def __init__(self) -> None:
        """Nothing is connected to before the first request."""
        self._direct = httpx.AsyncHTTPTransport(limits=_LIMITS)
        self._by_proxy: dict[str, httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The answer of the receiver that the request names."""
        proxy = _proxy_for(request.url)
        if proxy is not None:
            by_proxy = self._by_proxy.setdefault(proxy, httpx.AsyncHTTPTransport(proxy=proxy, limits=_LIMITS))
            return await by_proxy.handle_async_request(request)
        *others, last = addresses = await _addresses(request)
        # A network that swallows what is sent to the first, as many do with IPv6, must leave time for the next.
        part = 1 / len(addresses)
        for address in others:
            try:
                return await self._direct.handle_async_request(_to(request, address, part))
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        return await self._direct.handle_async_request(_to(request, last, part))

    async def aclose(self) -> None:
        """Gives back what is open."""
        for each in (self._direct, *self._by_proxy.values()):
            await each.aclose()


async def _addresses(request: httpx.Request) -> list[Address]:
    """Those of the receiver that it may be reached at, at least one."""
    port = request.url.port or (443 if request.url.scheme == "https" else 80)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(request.url.host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # UnicodeError: a label of a name that is too long
        raise httpx.ConnectError(f"its name cannot be resolved: {error}", request=request) from error
    addresses = list(dict.fromkeys(ip_address(sockaddr[0]) for *_, sockaddr in found))
    allowed = [each for each in addresses if request.extensions.get(PRIVATE) or is_public(each)]
    if not allowed:
        message = f"its address leads to {addresses[0]}, which is not of the internet; write private: true if meant"
        raise NotPublic(message)
    return allowed


def _to(request: httpx.Request, address: Address, part: float) -> httpx.Request:
    """The same request to this very address, to be reached in this part of the time; certificates are held against the name still."""
    limits = dict(request.extensions.get("timeout", {}))
    if limits.get("connect") is not None:
        limits["connect"] *= part
    return httpx.Request(
        request.method,
        request.url.copy_with(host=str(address)),
        headers=request.headers,
        stream=request.stream,
        extensions=request.extensions | {"sni_hostname": request.url.host, "timeout": limits},
    )


def _proxy_for(url: httpx.URL) -> str | None:
    named = getproxies()
    proxy = named.get(url.scheme) or named.get("all")
    if not proxy or proxy_bypass(url.host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"
