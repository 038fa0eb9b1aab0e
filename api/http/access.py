"""The door of the service: who asks is found out, what they may is held against what the route needs, and how often.

Every route stands in `api.http.scopes` with the scope that it needs, or declares it beside itself with
`dependencies=[Depends(needs("plan"))]`; one that does neither needs `admin`.
"""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from urllib.parse import quote, urlsplit

import anyio.to_thread
from fastapi import FastAPI, Request
from fastapi.routing import iter_route_contexts

from api.http.problems import Refused
from api.http.rates import Rates
from api.http.scopes import OPEN, scope_in_table
from api.identity.asking import Asking, asked_by, record
from api.identity.gate import Gate, Unauthenticated
from api.identity.oidc import IssuerDown
from api.identity.settings import AccessSettings
from api.identity.who import LOCAL, SCOPES, Identity, Scope
from catalog.access_store import AccessStore
from catalog.audit import AuditRecord
from catalog.errors import StoreFailure

log = logging.getLogger("gpuplan.access")

#: A cookie that begins so is taken by browsers only over https, from this very host, for all of its paths.
SECURE_COOKIE = "__Host-gpuplan"
PLAIN_COOKIE = "gpuplan"
#: An issuer that restarts is usually back by then.
ISSUER_RETRY_SECONDS = 15
_CHANGES_NOTHING = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who may ask this service: everybody who reaches it (`gate` is None), or who the gate knows."""

    store: AccessStore | None = None
    gate: Gate | None = None
    settings: AccessSettings | None = None
    rates: Rates | None = None


OPEN_TO_ALL = Access()


def access_by(store: AccessStore, settings: AccessSettings) -> Access:
    """Access for those whom the keys of this store, the admin key or the issuer of these settings let in."""
    return Access(store=store, gate=Gate(store, settings), settings=settings, rates=Rates(settings.variables))


class Needs:
    """A dependency that lets through who has a scope; `OPEN` lets through everybody."""

    def __init__(self, scope: Scope | None) -> None:
        """The scope, None for a route that is open."""
        self.scope = scope

    async def __call__(self, request: Request) -> None:
        """Raises `Refused`: 401 for nobody, 403 for too little, 429 for too often, 503 where it cannot be told."""
        if self.scope is not None:
            await admit(request, self.scope)


def needs(scope: Scope | None) -> Needs:
    """What a route that stands in no table declares: `dependencies=[Depends(needs("plan"))]`."""
    return Needs(scope)


async def guard(request: Request) -> None:
    """The dependency of the whole service: what the route needs, by the table, or `admin` where nobody said.

    It waits only for what is not known yet, and so is a coroutine: plain functions go through a thread.
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
    """What each route needs, by its endpoint and method; None for what is open. Routes that say nothing are left out."""
    found: dict[tuple[object, str], Scope | None] = {}
    for context in iter_route_contexts(app.routes):
        path = getattr(context, "path", None)
        for method in getattr(context, "methods", None) or ():
            declared = [each.dependency for each in getattr(context, "dependencies", ()) or ()]
            needed = [each.scope for each in declared if isinstance(each, Needs)]
            if path is not None and (inscribed := scope_in_table(method, path)) is not None:
                needed.append(None if inscribed == OPEN else inscribed)
            if needed:
                found[getattr(context, "endpoint", None), method] = max(needed, key=_weight)
    return found


def _weight(scope: Scope | None) -> int:
    """Where a route, its router and the table say different things, the strictest counts."""
    return -1 if scope is None else SCOPES.index(scope)


async def admit(request: Request, scope: Scope) -> Identity:
    """Who asks, if they have the scope and do not ask too often; it is then known to all that follows.

    Asked again in the same request, it only looks at the scope.
    """
    access: Access = request.app.state.access
    identity: Identity | None = getattr(request.state, "identity", None)
    if identity is None:
        identity = await _identity(request, access)
        request.state.identity = identity
        limits = access.settings.variables if access.settings is not None else None
        plans_per_day = identity.plans_per_day or (limits.plans_per_day if limits is not None else None)
        asked_by(
            Asking(
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
        detail = f"this needs the scope {scope!r}, which {identity.name!r} does not have; accepted: a key with it"
        raise Refused(403, detail, headers={"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scope}"'})
    return identity


async def whoever_asks(request: Request) -> Identity | None:
    """Who asks, if they may read; None for anybody else: for what is open, yet says less to those."""
    try:
        return await admit(request, "read")
    except Refused:
        return None


async def _identity(request: Request, access: Access) -> Identity:
    header = request.headers.get("authorization")
    if header is None or access.gate is None:
        refuse_other_sites(request)
    if access.gate is None:
        return LOCAL
    if header is not None:
        kind, _, text = header.partition(" ")
        if kind.lower() != "bearer" or not text.strip():
            await failed_login(request, access, "no bearer")
            raise unauthenticated(request)
        return await _found(request, access, access.gate, text.strip(), session=False)
    cookie = session_cookie(request)
    if cookie is None:
        raise unauthenticated(request, shown=False)
    return await _found(request, access, access.gate, cookie, session=True)


async def _found(request: Request, access: Access, gate: Gate, text: str, *, session: bool) -> Identity:
    known = gate.known(text, session=session)
    if known is not None:
        return known
    await refuse_guessing(request, access, gate, text, session=session)
    try:
        return await anyio.to_thread.run_sync(partial(gate.identify, session=session), text)
    except IssuerDown as error:
        log.warning("a token could not be checked: %s", error)
        detail = "the issuer of this token cannot be reached, so it cannot be checked; keys are checked as always"
        raise Refused(503, detail, headers={"Retry-After": str(ISSUER_RETRY_SECONDS)}) from error
    except Unauthenticated as error:
        await failed_login(request, access, str(error))
        raise unauthenticated(request) from error


async def refuse_guessing(request: Request, access: Access, gate: Gate, text: str, *, session: bool = False) -> None:
    """Raises `Refused` (429) where the address has failed too often: then nothing is looked up, so that nothing is guessed.

    What has opened something here before is looked up still: behind one address, as of a proxy, those who work are not
    locked out by somebody else.
    """
    if access.rates is not None and not gate.was_known(text, session=session):
        await access.rates.refuse_failing(address_of(request))


def session_cookie(request: Request) -> str | None:
    """The session that a browser shows. Over https only in the cookie that no other host and no plain page can set."""
    if request.url.scheme == "https":
        return request.cookies.get(SECURE_COOKIE)
    return request.cookies.get(PLAIN_COOKIE)


async def failed_login(request: Request, access: Access, why: str) -> None:
    """Note that somebody was not let in, as often as an address may fail; past that it is told to wait."""
    address = address_of(request)
    if access.rates is not None:
        await access.rates.count_failure(address)
    log.info("refused %s: %s", address, why)
    nobody = Asking(
        identity=Identity(id="nobody", name="nobody", scopes=frozenset(), via="none"),
        request_id=request.scope.get("request_id", ""),
        address=address,
    )
    await _note(access, record("login", why, datetime.now(UTC), outcome="refused", asking=nobody))


async def _note_denied(request: Request, access: Access, identity: Identity) -> None:
    """Who tries what they may not is written down, as often in a minute as an address may fail to log in."""
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
    """The one answer to whoever is not known, whatever they showed; a browser that asks for a page is sent to log in."""
    if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
        back = quote(request.url.path + (f"?{request.url.query}" if request.url.query else ""), safe="")
        return Refused(303, "log in first", headers={"Location": f"/login?next={back}", "Cache-Control": "no-store"})
    error = ' error="invalid_token"' if shown else ""
    headers = {"WWW-Authenticate": f'Bearer realm="gpuplan"{"," if error else ""}{error}', "Cache-Control": "no-store"}
    if request.headers.get("hx-request") == "true":
        headers["HX-Redirect"] = "/login"
    return Refused(401, "a key is needed that holds: send `Authorization: Bearer gpk_...`", headers=headers)


def refuse_other_sites(request: Request) -> None:
    """A page of another site may make a browser send what changes something here, with its cookie: that is refused.

    Browsers say where a request comes from in `Sec-Fetch-Site`, older ones in `Origin`; other clients say neither.
    """
    if request.method in _CHANGES_NOTHING:
        return
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    elsewhere = site not in {"same-origin", "none"} if site is not None else False
    if site is None and origin is not None:
        elsewhere = urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower()
    if elsewhere:
        raise Refused(403, "this was sent by a page of another site; send it from the page of this service")


def address_of(request: Request) -> str:
    """Where the request comes from, as the server sees it (behind a proxy: as it is told, see FORWARDED_ALLOW_IPS)."""
    return request.client.host if request.client is not None else ""


def _open_metrics(request: Request) -> bool:
    access: Access = request.app.state.access
    return request.url.path == "/metrics" and access.settings is not None and access.settings.variables.metrics_open
