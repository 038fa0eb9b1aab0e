"""What stands between gpuplan and others: proxies on the way out, proxies that it believes on the way in."""

import ipaddress
import os
from collections.abc import Mapping

from api.doctor.finding import Finding, broken, ok, warning
from providers.proxies import check_proxies
from providers.said import said

_BELIEVED = "FORWARDED_ALLOW_IPS"


def surroundings(environment: Mapping[str, str] = os.environ) -> list[Finding]:
    """Proxies either way. Raises `UnusableInput` at each variable that names a proxy which cannot be used."""
    names = check_proxies()
    way = f"through the proxies of {', '.join(names)}" if names else "without a proxy"
    return [ok("network", f"others are asked {way}"), *_believed(environment)]


def issuer() -> list[Finding]:
    """Asks the issuer of tokens, where there is one, for its keys. Raises `UnusableInput` at what is set wrongly."""
    from api.identity.oidc import Issuer, IssuerDown
    from api.identity.settings import access_settings

    settings = access_settings().oidc
    if settings is None:
        return []
    asked = Issuer(settings)
    try:
        count = asked.reach()
    except IssuerDown as error:
        return [broken("issuer", said(error), "correct GPUPLAN_OIDC_ISSUER, or check network, proxy and DNS")]
    finally:
        asked.close()
    if not count:
        return [broken("issuer", f"{settings.issuer} shows no key that signs", "its jwks_uri must list public keys")]
    return [ok("issuer", f"{settings.issuer} shows {count} keys")]


def _believed(environment: Mapping[str, str]) -> list[Finding]:
    """What is neither address nor network is compared as it stands, and so trusts nobody."""
    parts = [each.strip() for each in environment.get(_BELIEVED, "").split(",")]
    wrong = [each for each in parts if each and not _network(each)]
    # By itself `*` is everybody, which somebody may want; beside others it is a name that nobody has.
    if not wrong or parts == ["*"]:
        return []
    found = f"{_BELIEVED}: {', '.join(each[:80] for each in wrong)} is no address or network, and trusts nobody"
    return [warning("proxy before the service", found, "give addresses or networks such as 10.0.0.0/8, with commas")]


def _network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True
