"""What time it is, as the servers say: rows carry the time at which they were read, so a wrong clock would misdate them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import httpx

from providers.said import shown_url
from providers.sources import Sources

#: A clock that is off by less dates no price wrongly.
MOST_OFF = timedelta(minutes=5)
_TIMEOUT = httpx.Timeout(5.0, connect=3.0)


def clocks(sources: Sources, names: Iterable[str]) -> tuple[str, ...]:
    """Servers of these clouds that anybody may ask what time it is."""
    known = {
        "azure": sources.azure_retail_endpoint,
        "aws": sources.aws_price_files_url,
        "gcp": sources.gcp_billing_endpoint or "https://cloudbilling.googleapis.com",
    }
    asked = set(names)
    return tuple(url for name, url in known.items() if name in asked)


def server_time(urls: Iterable[str]) -> tuple[datetime, str] | None:
    """The time in the first answer's `Date`, whatever else it says, and who said so; None where nobody answers."""
    with httpx.Client(timeout=_TIMEOUT, headers={"User-Agent": "gpuplan"}) as client:
        for url in urls:
            try:
                # No redirect is followed and no retry made: any answer will do, and the fetches find out the rest.
                said = client.head(url).headers.get("date")
                if said:
                    return parsedate_to_datetime(said).astimezone(UTC), shown_url(url)
            except (httpx.HTTPError, httpx.InvalidURL, ValueError):
                continue
    return None


def true_time(clock: datetime, server: tuple[datetime, str] | None, newest: datetime) -> tuple[datetime, str]:
    """The time to date rows with, and a warning if that is not this machine's `clock`.

    `server` is what `server_time` gave, `newest` the time of the newest row in the snapshot before: time
    never runs back behind it, unless a server says that it was wrong.
    """
    if server is not None:
        said, who = server
        if abs(said - clock) > MOST_OFF:
            off = f"this machine's clock is off by {_span(clock - said)} ({who} says {said:%Y-%m-%d %H:%M} UTC)"
            return said, f"{off}; rows are dated by the servers, set the clock"
        return clock, ""
    if clock < newest - MOST_OFF:
        behind = f"this machine's clock ({clock:%Y-%m-%d %H:%M} UTC) is behind the last snapshot"
        return newest, f"{behind}; rows are dated {newest:%Y-%m-%d %H:%M} UTC, set the clock"
    return max(clock, newest), ""


def _span(off: timedelta) -> str:
    hours = abs(off.total_seconds()) / 3600
    way = "ahead" if off > timedelta(0) else "behind"
    return f"{hours:.1f} hours {way}" if hours >= 1 else f"{hours * 60:.0f} minutes {way}"
