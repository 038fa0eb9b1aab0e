"""Login with an API key in a browser: the key is entered once and starts a session.

The session is a random number in a cookie that scripts cannot read and other sites cannot send. The key is never in a
cookie or an address.
"""

import re
from urllib.parse import parse_qs

import anyio.to_thread
from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from gpuplan.api.http.authentication import (
    PLAIN_COOKIE,
    SECURE_COOKIE,
    Access,
    address_of,
    failed_login,
    refuse_guessing,
    refuse_other_sites,
    session_cookie,
)
from gpuplan.api.http.problem_details import Refused
from gpuplan.api.http.request_bodies import limited_body
from gpuplan.api.security.authentication import Unauthenticated
from gpuplan.api.security.authorization import Requester
from gpuplan.api.security.identity import LOCAL
from gpuplan.api.web.page_rendering import PageRoute, render

router = APIRouter(route_class=PageRoute, include_in_schema=False)

FORM = "application/x-www-form-urlencoded"
_NO_STORE = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
#: Accepted return paths: only of this service. `//` would lead to another site, and so would a backslash in browsers.
_PATH = re.compile(r"/(?![/\\])[!-\[\]-~]{0,1000}")


@router.get("/login")
async def login_form(request: Request, next: str = "/") -> Response:  # noqa: A002 - the name that addresses use
    """Show the form, or redirect back if no login is required."""
    access: Access = request.app.state.access
    if access.authenticator is None:
        return RedirectResponse(_back(next), status_code=303, headers=_NO_STORE)
    return _page(request, _back(next))


@router.post("/login")
async def log_in(request: Request) -> Response:
    """Start a session for a valid key. Anything else gets the form again, always with the same answer."""
    refuse_other_sites(request)
    access: Access = request.app.state.access
    form = await _form(request)
    back = _back(form.get("next", "/"))
    if access.authenticator is None:
        return RedirectResponse(back, status_code=303, headers=_NO_STORE)
    requester = Requester(identity=LOCAL, request_id=request.scope.get("request_id", ""), address=address_of(request))
    key = form.get("key", "").strip()
    await refuse_guessing(request, access, access.authenticator, key)
    try:
        text, until = await anyio.to_thread.run_sync(access.authenticator.log_in, key, requester)
    except Unauthenticated as error:
        await failed_login(request, access, str(error))
        return _page(request, back, refused=True)
    await _end_session(request, access, requester)
    answer = RedirectResponse(back, status_code=303, headers=_NO_STORE)
    secure = request.url.scheme == "https"
    name = SECURE_COOKIE if secure else PLAIN_COOKIE
    answer.set_cookie(name, text, expires=until, path="/", secure=secure, httponly=True, samesite="strict")
    return answer


@router.post("/logout")
async def log_out(request: Request) -> Response:
    """End the session in the browser and in the store."""
    refuse_other_sites(request)
    access: Access = request.app.state.access
    requester = Requester(identity=LOCAL, request_id=request.scope.get("request_id", ""), address=address_of(request))
    await _end_session(request, access, requester)
    headers = _NO_STORE | {"Clear-Site-Data": '"cookies", "storage"'}
    answer = RedirectResponse("/login", status_code=303, headers=headers)
    for name in (SECURE_COOKIE, PLAIN_COOKIE):
        answer.delete_cookie(name, path="/", secure=name == SECURE_COOKIE, httponly=True, samesite="strict")
    return answer


async def _end_session(request: Request, access: Access, requester: Requester) -> None:
    """Delete the session, so that neither the browser's cookie nor a copy of it works any more."""
    cookie = session_cookie(request)
    if access.authenticator is not None and cookie is not None:
        await anyio.to_thread.run_sync(access.authenticator.log_out, cookie, requester)


def _page(request: Request, back: str, *, refused: bool = False) -> Response:
    context = {"back": back, "refused": refused}
    return render(request, "login.html", context, status=401 if refused else 200, headers=_NO_STORE)


async def _form(request: Request) -> dict[str, str]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != FORM:
        raise Refused(415, f"{kind[:80]!r} is not accepted; send {FORM}")
    body = await limited_body(request)
    try:
        fields = parse_qs(body.decode("ascii"), max_num_fields=10, errors="strict")
    except ValueError as error:
        raise Refused(400, "the form cannot be read; send its fields in UTF-8") from error
    return {name: values[0] for name, values in fields.items()}


def _back(text: str) -> str:
    return text if _PATH.fullmatch(text) else "/"
