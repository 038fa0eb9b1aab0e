"""HTTP transport to receivers: resolves a name once and connects to the address that was checked.

A name that resolves to this machine or its network is refused unless the channel allows it: otherwise the owner of the
name could direct messages to hosts that only this network can reach.
"""

import asyncio
import socket
from ipaddress import ip_address
from urllib.request import getproxies, proxy_bypass

import httpx

from gpuplan.api.security.public_addresses import Address, is_public

#: The request extension that allows private addresses.
PRIVATE = "gpuplan.private"
#: A connection serves one message: a reused one could carry another channel's message to a receiver that never proved
#: that name.
_LIMITS = httpx.Limits(max_keepalive_connections=0)


class NotPublic(Exception):
    """The name of a receiver does not resolve to a public address."""


class Reaching(httpx.AsyncBaseTransport):
    """Connects only to public addresses, unless the request's extension `PRIVATE` is true.

    A proxy from the environment (`HTTPS_PROXY`, `NO_PROXY` ...) resolves names and decides itself. Request bodies must
    be repeatable. Raises `NotPublic`, and what httpx raises.
    """

    def __init__(self) -> None:
        """Connects to nothing before the first request."""
        self._direct = httpx.AsyncHTTPTransport(limits=_LIMITS)
        self._by_proxy: dict[str, httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The response of the receiver."""
        proxy = _proxy_for(request.url)
        if proxy is not None:
            by_proxy = self._by_proxy.setdefault(proxy, httpx.AsyncHTTPTransport(proxy=proxy, limits=_LIMITS))
            return await by_proxy.handle_async_request(request)
        *others, last = addresses = await _addresses(request)
        # A network that drops packets to the first address, as is common with IPv6, must leave time for the next.
        part = 1 / len(addresses)
        for address in others:
            try:
                return await self._direct.handle_async_request(_to(request, address, part))
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        return await self._direct.handle_async_request(_to(request, last, part))

    async def aclose(self) -> None:
        """Close the connections."""
        for transport in (self._direct, *self._by_proxy.values()):
            await transport.aclose()


async def _addresses(request: httpx.Request) -> list[Address]:
    """The permitted addresses of the receiver, at least one."""
    port = request.url.port or (443 if request.url.scheme == "https" else 80)
    try:
        resolved = await asyncio.get_running_loop().getaddrinfo(request.url.host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # UnicodeError: a label of a name that is too long
        raise httpx.ConnectError(f"its name cannot be resolved: {error}", request=request) from error
    addresses = list(dict.fromkeys(ip_address(sockaddr[0]) for *_, sockaddr in resolved))
    allowed = [address for address in addresses if request.extensions.get(PRIVATE) or is_public(address)]
    if not allowed:
        message = f"its address resolves to {addresses[0]}, which is not public; write private: true if intended"
        raise NotPublic(message)
    return allowed


def _to(request: httpx.Request, address: Address, part: float) -> httpx.Request:
    """The same request to this address, within this part of the time; certificates are still checked against the name."""
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
