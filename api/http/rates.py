"""How often somebody may ask: requests a minute per identity, and logins that fail per address.

Counted in this process's memory: behind several processes each grants the whole rate, so a key has up to so many
times it. What a key may have in a day is counted in the store, and there holds across processes and restarts.
Answers say the limit and what is left of it (draft-ietf-httpapi-ratelimit-headers, structured fields).
"""

import ipaddress
import math
import time
from datetime import UTC, datetime, timedelta

from fastapi import Request
from fastapi.responses import Response
from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter

from api.http.extra_headers import add_headers
from api.http.problems import Refused, problem
from api.identity.settings import Variables
from api.identity.who import Identity
from catalog.quota_use import QuotaExceeded

_MINUTE = 60
_DAY = 86_400


class Rates:
    """The counters of one process; its methods belong to the event loop."""

    def __init__(self, limits: Variables) -> None:
        """With the limits of who has none of their own."""
        self._limits = limits
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._failures = RateLimitItemPerMinute(limits.failed_logins_per_minute, namespace="failures")

    async def count(self, request: Request, identity: Identity) -> None:
        """Counts a request, and lets its answer say what is left. Raises `Refused` (429) for one too many."""
        quota = identity.requests_per_minute or self._limits.requests_per_minute
        plans = identity.plans_per_day or self._limits.plans_per_day
        item = RateLimitItemPerMinute(quota, namespace="requests")
        within = await self._limiter.hit(item, identity.id)
        reset_at, left = await self._limiter.get_window_stats(item, identity.id)
        wait = max(1, math.ceil(reset_at - time.time()))
        headers = {
            "RateLimit-Policy": f'"requests";q={quota};w={_MINUTE}, "plans";q={plans};w={_DAY}',
            "RateLimit": f'"requests";r={max(left, 0) if within else 0};t={wait}',
        }
        add_headers(request, headers)
        if not within:
            detail = f"more than {quota} requests a minute; wait {wait} s"
            raise Refused(429, detail, headers={"Retry-After": str(wait)})

    async def refuse_failing(self, address: str) -> None:
        """Raises `Refused` (429) for an address that has failed as often as it may within a minute; counts nothing."""
        place = place_of(address)
        if not await self._limiter.test(self._failures, place):
            raise await self._too_many_failures(place)

    async def count_failure(self, address: str) -> None:
        """Counts a login that failed. Raises `Refused` (429) for one too many within a minute."""
        place = place_of(address)
        if not await self._limiter.hit(self._failures, place):
            raise await self._too_many_failures(place)

    async def _too_many_failures(self, place: str) -> Refused:
        reset_at, _ = await self._limiter.get_window_stats(self._failures, place)
        wait = str(max(1, math.ceil(reset_at - time.time())))
        return Refused(429, "too many logins from this address have failed; wait", headers={"Retry-After": wait})

    async def notes_denied(self, identity: Identity) -> bool:
        """Whether another try of theirs at what they may not is worth a record; a thousand of one minute are not."""
        return await self._limiter.hit(self._failures, "denied", identity.id)


def place_of(address: str) -> str:
    """What counts as one address: whoever has an IPv6 address has the 2^64 others of its network, too."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return address
    return str(found.ipv4_mapped or ipaddress.IPv6Network((found.packed, 64), strict=False))


async def quota_exceeded(request: Request, error: Exception) -> Response:
    """The handler of the service for a day's plans that are used up."""
    if not isinstance(error, QuotaExceeded):
        raise error
    return problem(quota_refused(error), request.scope.get("request_id", ""))


def quota_refused(error: QuotaExceeded) -> Refused:
    """A day's plans used up, as a refusal that says when there are more."""
    now = datetime.now(UTC)
    midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    wait = max(1, math.ceil((midnight - now).total_seconds()))
    headers = {"Retry-After": str(wait), "RateLimit": f'"plans";r=0;t={wait}'}
    return Refused(429, f"{error.limit} plans a day were given already; there are more from 00:00 UTC", headers=headers)
