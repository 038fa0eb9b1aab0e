"""How templates write figures and names: as the command line does."""

import re
from collections.abc import Callable

from markupsafe import Markup, escape

from api.render import text

_CODE = re.compile(r"`([^`]+)`")


def coded(words: object) -> Markup:
    """Text whose `words in backticks` are code, escaped otherwise."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(words))))  # noqa: S704 - escaped just here


FILTERS: dict[str, Callable[..., str]] = {
    "chance": text.chance,
    "coded": coded,
    "duration": text.duration,
    "layout": text.layout,
    "number": text.number,
    "percent": text.percent,
    "plain": text.plain,
    "usd": text.usd,
    "usd_per_hour": text.usd_per_hour,
    "when": text.when,
}
