"""Network surroundings: proxies for outgoing requests, and trusted proxies in front of the service."""

import ipaddress
import os
from collections.abc import Mapping

from gpuplan.api.observability.doctor.finding import Finding, broken, ok, warning
from gpuplan.providers.error_redaction import redacted_text
from gpuplan.providers.proxy_settings import check_proxies

_BELIEVED = "FORWARDED_ALLOW_IPS"


def surroundings(environment: Mapping[str, str] = os.environ) -> list[Finding]:
    """Outgoing and incoming proxies. Raises `UnusableInput` at each variable that names an unusable proxy."""
    names = check_proxies()
    way = f"through the proxies of {', '.join(names)}" if names else "without a proxy"
    return [ok("network", f"outgoing requests go {way}"), *_believed(environment)]


def issuer() -> list[Finding]:
    """Query the token issuer, if there is one, for its keys. Raises `UnusableInput` at invalid settings."""
    from gpuplan.api.security.access_settings import access_settings
    from gpuplan.api.security.oidc import Issuer, IssuerDown

    settings = access_settings().oidc
    if settings is None:
        return []
    asked = Issuer(settings)
    try:
        count = asked.reach()
    except IssuerDown as error:
        return [broken("issuer", redacted_text(error), "correct GPUPLAN_OIDC_ISSUER, or check network, proxy and DNS")]
    finally:
        asked.close()
    if not count:
        return [broken("issuer", f"{settings.issuer} publishes no signing key", "its jwks_uri must list public keys")]
    return [ok("issuer", f"{settings.issuer} shows {count} keys")]


def _believed(environment: Mapping[str, str]) -> list[Finding]:
    """Entries that are neither address nor network are compared literally, and so trust nobody."""
    parts = [entry.strip() for entry in environment.get(_BELIEVED, "").split(",")]
    wrong = [part for part in parts if part and not _network(part)]
    # A single `*` means everybody, which may be intended; in a list it is a name that matches nothing.
    if not wrong or parts == ["*"]:
        return []
    summary = f"{_BELIEVED}: {', '.join(entry[:80] for entry in wrong)} is not an address or network, and trusts nobody"
    return [warning("proxy before the service", summary, "give addresses or networks such as 10.0.0.0/8, with commas")]


def _network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True
