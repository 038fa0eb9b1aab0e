"""Authentication of `gpuplan serve`: open on loopback, keys as soon as others can reach it."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gpuplan.api.security.web_addresses import is_loopback
from gpuplan.catalog.runtime.errors import UnusableInput

if TYPE_CHECKING:
    from gpuplan.api.http.authentication import Access
    from gpuplan.api.services.composition import Services

_NAME = re.compile(r"[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\]")
#: Values of --host that listen on every address of the machine.
_EVERYWHERE = frozenset({"0.0.0.0", "::", "*", ""})  # noqa: S104 - compared with, not bound to


def access_for(gpuplan: "Services", *, host: str, names: tuple[str, ...], insecure: bool) -> "Access":
    """Whom a service on this address lets in, which a proxy may make known under other `names`.

    On loopback alone anyone has access, unless the environment names an admin key or an issuer; elsewhere a key is
    required. Raises `UnusableInput`, with advice, if no key could exist.
    """
    from gpuplan.api.http.authentication import OPEN_TO_ALL, access_by
    from gpuplan.api.security.access_settings import access_settings

    settings = access_settings()
    if insecure:
        return OPEN_TO_ALL
    wanted = settings.admin_key is not None or settings.oidc is not None
    reached = not is_loopback(host) or bool(names)
    if not reached and not wanted:
        return OPEN_TO_ALL
    access = access_by(gpuplan.store.access, settings)
    if access.authenticator is None or not access.authenticator.opens():
        what = f"{host[:80]!r}" if not is_loopback(host) else f"the name {names[0][:80]!r}"
        message = (
            f"with {what} others can reach this service, and it has no key yet; accepted: create"
            " a key first (gpuplan keys create --name NAME --scope admin), or set GPUPLAN_ADMIN_KEY_FILE or"
            " GPUPLAN_OIDC_ISSUER; or a loopback address alone; or --insecure-no-auth behind a proxy that authenticates"
        )
        raise UnusableInput.at("host", message=message)
    return access


def checked_names(given: Iterable[str]) -> tuple[str, ...]:
    """The names as the header `Host` has them. Raises `UnusableInput` at `allow_host` for an invalid name."""
    names = tuple(host.strip().lower() for host in given)
    for name in names:
        if not _NAME.fullmatch(name):
            message = (
                f"{name[:80]!r} is not a host name; accepted: a name or address without port, such as plan.example.com"
            )
            raise UnusableInput.at("allow_host", message=message)
    return names


def hosts_for(host: str, names: tuple[str, ...], *, insecure: bool, guarded: bool) -> frozenset[str] | None:
    """Accepted `Host` names; None accepts any, where DNS rebinding cannot do harm.

    With keys, a rebound page has no key to send. Without keys, only this machine's names are accepted.
    """
    from gpuplan.api.http.middleware import LOOPBACK_HOSTS

    if not names and (insecure or (guarded and host in _EVERYWHERE)):
        return None
    return LOOPBACK_HOSTS | {host.lower()} | {name.lower() for name in names}
