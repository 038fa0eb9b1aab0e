"""Whom `gpuplan serve` lets in: everybody on this machine, or who has a key as soon as others can reach it."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from api.web_address import is_loopback
from catalog.errors import UnusableInput

if TYPE_CHECKING:
    from api.app import Gpuplan
    from api.http.access import Access

_NAME = re.compile(r"[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\]")
#: How a service is told to listen on every address of the machine.
_EVERYWHERE = frozenset({"0.0.0.0", "::", "*", ""})  # noqa: S104 - compared with, not bound to


def access_for(gpuplan: "Gpuplan", *, host: str, names: tuple[str, ...], insecure: bool) -> "Access":
    """Whom a service on this address lets in, which a proxy may make known under other `names`.

    On loopback alone everybody, unless the environment names an admin key or an issuer; elsewhere who has a key.
    Raises `UnusableInput` where nobody could get in, saying what to do.
    """
    from api.http.access import OPEN_TO_ALL, access_by
    from api.identity.settings import access_settings

    settings = access_settings()
    if insecure:
        return OPEN_TO_ALL
    wanted = settings.admin_key is not None or settings.oidc is not None
    reached = not is_loopback(host) or bool(names)
    if not reached and not wanted:
        return OPEN_TO_ALL
    access = access_by(gpuplan.store.access, settings)
    if access.gate is None or not access.gate.opens():
        what = f"{host[:80]!r}" if not is_loopback(host) else f"the name {names[0][:80]!r}"
        message = (
            f"with {what} others can reach this service, and there is no key by which anybody could get in; accepted: make"
            " one first (gpuplan keys create --name NAME --scope admin), or set GPUPLAN_ADMIN_KEY_FILE or"
            " GPUPLAN_OIDC_ISSUER; or a loopback address alone; or --insecure-no-auth behind a proxy that authenticates"
        )
        raise UnusableInput.at("host", message=message)
    return access


def checked_names(given: Iterable[str]) -> tuple[str, ...]:
    """The names as they come in the header `Host`. Raises `UnusableInput` at `allow_host` for what is no name."""
    names = tuple(each.strip().lower() for each in given)
    for name in names:
        if not _NAME.fullmatch(name):
            message = (
                f"{name[:80]!r} is no host name; accepted: a name or address without port, such as plan.example.com"
            )
            raise UnusableInput.at("allow_host", message=message)
    return names


def hosts_for(host: str, names: tuple[str, ...], *, insecure: bool, guarded: bool) -> frozenset[str] | None:
    """By which names the service may be called; None for any, where no browser could be led astray.

    With keys, a page whose name was made to point here brings none; without, only this machine's names count.
    """
    from api.http.edge import LOOPBACK_HOSTS

    if not names and (insecure or (guarded and host in _EVERYWHERE)):
        return None
    return LOOPBACK_HOSTS | {host.lower()} | {name.lower() for name in names}
