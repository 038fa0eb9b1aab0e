"""The current time according to servers: rows carry the time of reading, so a wrong local clock would misdate them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import httpx

from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.error_redaction import shown_url

#: A smaller clock error misdates no price.
MOST_OFF = timedelta(minutes=5)
_TIMEOUT = httpx.Timeout(5.0, connect=3.0)


def clocks(sources: Sources, names: Iterable[str]) -> tuple[str, ...]:
    """Servers of these clouds that report the time without credentials."""
    known = {
        "azure": sources.azure_retail_endpoint,
        "aws": sources.aws_price_files_url,
        "gcp": sources.gcp_billing_endpoint or "https://cloudbilling.googleapis.com",
    }
    known |= {account.provider: account.endpoint for account in sources.rest}
    asked = set(names)
    return tuple(url for name, url in known.items() if name in asked)


def server_time(urls: Iterable[str]) -> tuple[datetime, str] | None:
    """The time in the `Date` header of the first answer, and the server; None if no server answers."""
    with httpx.Client(timeout=_TIMEOUT, headers={"User-Agent": "gpuplan"}) as client:
        for url in urls:
            try:
                # No redirects and no retries: any answer has the time, and the fetches report other problems.
                date = client.head(url).headers.get("date")
                if date:
                    return parsedate_to_datetime(date).astimezone(UTC), shown_url(url)
            except (httpx.HTTPError, httpx.InvalidURL, ValueError):
                continue
    return None


def true_time(clock: datetime, server: tuple[datetime, str] | None, newest: datetime) -> tuple[datetime, str]:
    """The time for new rows, and a warning if it is not this machine's `clock`.

    `server` is the result of `server_time`, `newest` the time of the newest row in the previous snapshot: time never goes
    back before it, unless a server shows that it was wrong.
    """
    if server is not None:
        server_clock, server_name = server
        if abs(server_clock - clock) > MOST_OFF:
            off = f"this machine's clock is off by {_span(clock - server_clock)} ({server_name} says {server_clock:%Y-%m-%d %H:%M} UTC)"
            return server_clock, f"{off}; rows are dated by the servers, set the clock"
        return clock, ""
    if clock < newest - MOST_OFF:
        behind = f"this machine's clock ({clock:%Y-%m-%d %H:%M} UTC) is behind the last snapshot"
        return newest, f"{behind}; rows are dated {newest:%Y-%m-%d %H:%M} UTC, set the clock"
    return max(clock, newest), ""


def _span(off: timedelta) -> str:
    hours = abs(off.total_seconds()) / 3600
    way = "ahead" if off > timedelta(0) else "behind"
    return f"{hours:.1f} hours {way}" if hours >= 1 else f"{hours * 60:.0f} minutes {way}"
