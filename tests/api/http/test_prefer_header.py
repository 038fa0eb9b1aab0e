"""How long a client waits, by what its `Prefer` headers say; what makes no sense is passed over."""

import pytest
from fastapi import Request
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.api.http.portfolios import LONGEST_WAIT_SECONDS, USUAL_WAIT_SECONDS, Prefer


def preferred(*headers: str) -> Prefer:
    raw = [(b"prefer", header.encode("latin-1")) for header in headers]
    return Prefer.read(Request({"type": "http", "headers": raw}))


@pytest.mark.parametrize(
    ("headers", "seconds", "applied"),
    [
        ((), USUAL_WAIT_SECONDS, None),
        (("respond-async",), 0, "respond-async"),
        (("Respond-Async ",), 0, "respond-async"),
        (("wait=30",), 30, "wait=30"),
        (('wait="7"',), 7, "wait=7"),
        (("wait=0",), 0, "wait=0"),
        (("wait = 5",), 5, "wait=5"),
        (("respond-async, wait=10",), 10, "respond-async, wait=10"),
        (("respond-async", "wait=10"), 10, "respond-async, wait=10"),
        (("wait=3, wait=9",), 3, "wait=3"),
        (("wait=86400",), LONGEST_WAIT_SECONDS, "wait=50"),
        (("return=minimal; foo=bar, wait=4",), 4, "wait=4"),
        (("wait=-1",), USUAL_WAIT_SECONDS, None),
        (("wait=1e3",), USUAL_WAIT_SECONDS, None),
        (("wait=soon, respond-async",), 0, "respond-async"),
        (("wait=²",), USUAL_WAIT_SECONDS, None),
        (("handling=lenient",), USUAL_WAIT_SECONDS, None),
    ],
)
def test_a_preference_is_heeded_and_said(headers: tuple[str, ...], seconds: float, applied: str | None) -> None:
    preference = preferred(*headers)
    assert (preference.wait_seconds, preference.applied) == (seconds, applied)
    assert preference.headers() == {"Vary": "Prefer"} | ({"Preference-Applied": applied} if applied else {})


@given(st.lists(st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\x00"), max_size=60), max_size=3))
def test_no_header_makes_anyone_wait_for_longer_than_a_proxy_does(headers: list[str]) -> None:
    assert 0 <= preferred(*headers).wait_seconds <= LONGEST_WAIT_SECONDS


def test_a_header_as_long_as_may_come_is_read_in_no_time_that_grows_faster_than_it() -> None:
    # A reader that tries every way to share these blanks out would be at it for days.
    assert preferred('wait="' + " " * 60_000 + '"x').applied is None
    assert preferred('a="' + " " * 60_000 + '"x, wait=3').applied == "wait=3"
