"""Authentication, authorization and rate limits of HTTP requests.

The table in `gpuplan.api.http.route_scopes` gives the scope that each route needs; a route may instead declare
`dependencies=[Depends(needs("plan"))]`. A route without either needs `admin`.
"""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from urllib.parse import quote, urlsplit

import anyio.to_thread
from fastapi import FastAPI, Request
from fastapi.routing import iter_route_contexts

from gpuplan.api.http.problem_details import Refused
from gpuplan.api.http.request_limits import Rates
from gpuplan.api.http.route_scopes import OPEN, scope_in_table
from gpuplan.api.security.access_settings import AccessSettings
from gpuplan.api.security.authentication import Authenticator, Unauthenticated
from gpuplan.api.security.authorization import Requester, asked_by, record
from gpuplan.api.security.identity import LOCAL, SCOPES, Identity, Scope
from gpuplan.api.security.oidc import IssuerDown
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.access_store import AccessStore, AuditRecord

log = logging.getLogger("gpuplan.access")

#: Browsers accept a cookie with this prefix only over https, only from this host and only for all of its paths.
SECURE_COOKIE = "__Host-gpuplan"
PLAIN_COOKIE = "gpuplan"
#: An issuer that restarts is usually available again by then.
ISSUER_RETRY_SECONDS = 15
_CHANGES_NOTHING = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who may use this service: everybody who can reach it (`authenticator` is None), or authenticated identities."""

    store: AccessStore | None = None
    authenticator: Authenticator | None = None
    settings: AccessSettings | None = None
    rates: Rates | None = None


OPEN_TO_ALL = Access()


def access_by(store: AccessStore, settings: AccessSettings) -> Access:
    """Access for the keys of this store, and for the admin key or the token issuer of these settings."""
    return Access(
        store=store, authenticator=Authenticator(store, settings), settings=settings, rates=Rates(settings.variables)
    )


class Needs:
    """A dependency that requires a scope; with `OPEN` it accepts every request."""

    def __init__(self, scope: Scope | None) -> None:
        """The required scope, or None for an open route."""
        self.scope = scope

    async def __call__(self, request: Request) -> None:
        """Raises `Refused`: 401 without authentication, 403 without the scope, 429 above the rate limit, 503 if the
        token cannot be checked.
        """
        if self.scope is not None:
            await admit(request, self.scope)


def needs(scope: Scope | None) -> Needs:
    """The dependency for a route outside the table: `dependencies=[Depends(needs("plan"))]`."""
    return Needs(scope)


async def guard(request: Request) -> None:
    """The dependency of the whole service: it requires the scope that the table gives for the route, or `admin` if it
    gives none.

    It is a coroutine because FastAPI runs plain functions in a thread; it only blocks on an identity that is not
    cached.
    """
    scopes = request.app.state.scopes
    if scopes is None:
        scopes = request.app.state.scopes = scopes_of_routes(request.app)
    needed: Scope | None = scopes.get((request.scope["endpoint"], request.method), "admin")
    if needed == "read" and request.app.state.access.settings is not None and _open_metrics(request):
        return
    if needed is not None:
        await admit(request, needed)


def scopes_of_routes(app: FastAPI) -> dict[tuple[object, str], Scope | None]:
    """The scope of each route by endpoint and method; None for open routes. Routes without a declared scope are left
    out.
    """
    scopes: dict[tuple[object, str], Scope | None] = {}
    for context in iter_route_contexts(app.routes):
        path = getattr(context, "path", None)
        for method in getattr(context, "methods", None) or ():
            declared = [dependency.dependency for dependency in getattr(context, "dependencies", ()) or ()]
            needed = [dependency.scope for dependency in declared if isinstance(dependency, Needs)]
            if path is not None and (inscribed := scope_in_table(method, path)) is not None:
                needed.append(None if inscribed == OPEN else inscribed)
            if needed:
                scopes[getattr(context, "endpoint", None), method] = max(needed, key=_weight)
    return scopes


def _weight(scope: Scope | None) -> int:
    """The strictest scope applies when a route, its router and the table differ."""
    return -1 if scope is None else SCOPES.index(scope)


async def admit(request: Request, scope: Scope) -> Identity:
    """Authenticate the requester, require the scope and apply the rate limit; set the requester for the rest of the
    request.

    A second call in the same request only checks the scope.
    """
    access: Access = request.app.state.access
    identity: Identity | None = getattr(request.state, "identity", None)
    if identity is None:
        identity = await _identity(request, access)
        request.state.identity = identity
        limits = access.settings.variables if access.settings is not None else None
        plans_per_day = identity.plans_per_day or (limits.plans_per_day if limits is not None else None)
        asked_by(
            Requester(
                identity=identity,
                request_id=request.scope.get("request_id", ""),
                address=address_of(request),
                plans_per_day=None if identity.unlimited else plans_per_day,
            )
        )
        if access.rates is not None and not identity.unlimited:
            await access.rates.count(request, identity)
    if scope not in identity.scopes:
        await _note_denied(request, access, identity)
        detail = f"this operation needs the scope {scope!r}, which {identity.name!r} does not have; send a key with it"
        raise Refused(403, detail, headers={"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scope}"'})
    return identity


async def whoever_asks(request: Request) -> Identity | None:
    """The requester if it may read, else None. For open routes that show less to anonymous requests."""
    try:
        return await admit(request, "read")
    except Refused:
        return None


async def _identity(request: Request, access: Access) -> Identity:
    header = request.headers.get("authorization")
    if header is None or access.authenticator is None:
        refuse_other_sites(request)
    if access.authenticator is None:
        return LOCAL
    if header is not None:
        kind, _, text = header.partition(" ")
        if kind.lower() != "bearer" or not text.strip():
            await failed_login(request, access, "no bearer")
            raise unauthenticated(request)
        return await _identified(request, access, access.authenticator, text.strip(), session=False)
    cookie = session_cookie(request)
    if cookie is None:
        raise unauthenticated(request, shown=False)
    return await _identified(request, access, access.authenticator, cookie, session=True)


async def _identified(
    request: Request, access: Access, authenticator: Authenticator, text: str, *, session: bool
) -> Identity:
    known = authenticator.known(text, session=session)
    if known is not None:
        return known
    await refuse_guessing(request, access, authenticator, text, session=session)
    try:
        return await anyio.to_thread.run_sync(partial(authenticator.identify, session=session), text)
    except IssuerDown as error:
        log.warning("a token could not be checked: %s", error)
        detail = "the issuer of this token cannot be reached, so the token cannot be checked; keys still work"
        raise Refused(503, detail, headers={"Retry-After": str(ISSUER_RETRY_SECONDS)}) from error
    except Unauthenticated as error:
        await failed_login(request, access, str(error))
        raise unauthenticated(request) from error


async def refuse_guessing(
    request: Request, access: Access, authenticator: Authenticator, text: str, *, session: bool = False
) -> None:
    """Raises `Refused` (429) if the address has failed too often. The secret is then not looked up, which prevents
    guessing.

    Secrets that this process has already accepted are still looked up, so that clients behind a shared address, such as
    a proxy, are not locked out by others.
    """
    if access.rates is not None and not authenticator.was_known(text, session=session):
        await access.rates.refuse_failing(address_of(request))


def session_cookie(request: Request) -> str | None:
    """The session cookie of a browser. Over https, only the cookie that other hosts and plain HTTP pages cannot set."""
    if request.url.scheme == "https":
        return request.cookies.get(SECURE_COOKIE)
    return request.cookies.get(PLAIN_COOKIE)


async def failed_login(request: Request, access: Access, why: str) -> None:
    """Record a failed login, up to the failure limit of an address; above it the address must wait."""
    address = address_of(request)
    if access.rates is not None:
        await access.rates.count_failure(address)
    log.info("refused %s: %s", address, why)
    nobody = Requester(
        identity=Identity(id="nobody", name="nobody", scopes=frozenset(), via="none"),
        request_id=request.scope.get("request_id", ""),
        address=address,
    )
    await _note(access, record("login", why, datetime.now(UTC), outcome="refused", requester=nobody))


async def _note_denied(request: Request, access: Access, identity: Identity) -> None:
    """Record an attempt without the required scope, at most as often per minute as an address may fail to log in."""
    if access.rates is not None and await access.rates.notes_denied(identity):
        tried = f"{request.method} {request.url.path}"
        await _note(access, record("denied", tried, datetime.now(UTC), outcome="refused"))


async def _note(access: Access, noted: AuditRecord) -> None:
    if access.store is None:
        return
    try:
        await anyio.to_thread.run_sync(partial(access.store.record, noted))
    except StoreFailure as error:
        log.warning("%s of %s could not be recorded: %s", noted.action, noted.identity, error)


def unauthenticated(request: Request, *, shown: bool = True) -> Refused:
    """The same refusal for every unauthenticated request, whatever it sent; a browser that requests a page or sends a form
    is redirected to the login page, and from there back to the page or the form.
    """
    by_script = request.headers.get("hx-request") == "true"
    if "text/html" in request.headers.get("accept", "") and not by_script:
        shown_page = str(request.url) if request.method == "GET" else request.headers.get("referer", "/")
        headers = {"Location": _login_for(shown_page), "Cache-Control": "no-store"}
        return Refused(303, "log in first", headers=headers)
    error = ' error="invalid_token"' if shown else ""
    headers = {"WWW-Authenticate": f'Bearer realm="gpuplan"{"," if error else ""}{error}', "Cache-Control": "no-store"}
    if by_script:
        headers["HX-Redirect"] = _login_for(request.headers.get("hx-current-url", "/"))
    return Refused(401, "a valid key is needed: send `Authorization: Bearer gpk_...`", headers=headers)


def _login_for(address: str) -> str:
    """The login page that leads back to an address of this service; only its path and query count."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "/login"
    return f"/login?next={quote((parts.path or '/') + (f'?{parts.query}' if parts.query else ''), safe='')}"


def refuse_other_sites(request: Request) -> None:
    """Refuse requests from pages of other sites that would change something here with the browser's cookie.

    Browsers send the origin of a request in `Sec-Fetch-Site`, older ones in `Origin`; other clients send neither.
    """
    if request.method in _CHANGES_NOTHING:
        return
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    elsewhere = site not in {"same-origin", "none"} if site is not None else False
    if site is None and origin is not None:
        elsewhere = urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower()
    if elsewhere:
        raise Refused(403, "this request was sent by a page of another site; send it from a page of this service")


def address_of(request: Request) -> str:
    """The client's address as the server sees it (behind a proxy: from its headers, see FORWARDED_ALLOW_IPS)."""
    return request.client.host if request.client is not None else ""


def _open_metrics(request: Request) -> bool:
    access: Access = request.app.state.access
    return request.url.path == "/metrics" and access.settings is not None and access.settings.variables.metrics_open
