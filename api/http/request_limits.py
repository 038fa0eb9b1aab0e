"""Rate limits: requests per minute per identity, and failed logins per address.

The counters are in this process's memory: with several processes each grants the whole rate, so a key may get a
multiple of it. Daily quotas of keys are counted in the store and apply across processes and restarts. Responses carry
the limit and the remainder (draft-ietf-httpapi-ratelimit-headers, structured fields).
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

from gpuplan.api.http.extra_headers import add_headers
from gpuplan.api.http.problem_details import Refused, problem
from gpuplan.api.security.access_settings import Variables
from gpuplan.api.security.identity import Identity
from gpuplan.catalog.store.access_store import QuotaExceeded

_MINUTE = 60
_DAY = 86_400


class Rates:
    """The counters of one process; call its methods only from the event loop."""

    def __init__(self, limits: Variables) -> None:
        """Takes the default limits, for identities without limits of their own."""
        self._limits = limits
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._failures = RateLimitItemPerMinute(limits.failed_logins_per_minute, namespace="failures")

    async def count(self, request: Request, identity: Identity) -> None:
        """Count a request and add the remainder to its response. Raises `Refused` (429) above the limit."""
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
        """Raises `Refused` (429) if an address has reached its failures per minute; counts nothing."""
        place = place_of(address)
        if not await self._limiter.test(self._failures, place):
            raise await self._exceeds_failures(place)

    async def count_failure(self, address: str) -> None:
        """Count a failed login. Raises `Refused` (429) above the limit per minute."""
        place = place_of(address)
        if not await self._limiter.hit(self._failures, place):
            raise await self._exceeds_failures(place)

    async def _exceeds_failures(self, place: str) -> Refused:
        reset_at, _ = await self._limiter.get_window_stats(self._failures, place)
        wait = str(max(1, math.ceil(reset_at - time.time())))
        return Refused(429, "too many logins from this address have failed; wait", headers={"Retry-After": wait})

    async def notes_denied(self, identity: Identity) -> bool:
        """Whether to record another denied attempt of this identity; limits the records per minute."""
        return await self._limiter.hit(self._failures, "denied", identity.id)


def place_of(address: str) -> str:
    """The key under which an address is counted: an IPv6 client has the 2^64 addresses of its network."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(parsed.ipv4_mapped or ipaddress.IPv6Network((parsed.packed, 64), strict=False))


async def quota_exceeded(request: Request, error: Exception) -> Response:
    """The exception handler for an exhausted daily quota of plans."""
    if not isinstance(error, QuotaExceeded):
        raise error
    return problem(quota_refused(error), request.scope.get("request_id", ""))


def quota_refused(error: QuotaExceeded) -> Refused:
    """The error response for an exhausted daily quota, with the time until the next day."""
    now = datetime.now(UTC)
    midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    wait = max(1, math.ceil((midnight - now).total_seconds()))
    headers = {"Retry-After": str(wait), "RateLimit": f'"plans";r=0;t={wait}'}
    return Refused(429, f"{error.limit} plans a day are used up; the quota renews at 00:00 UTC", headers=headers)
