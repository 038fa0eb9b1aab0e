"""Template filters for figures and names, as in the command line."""

import re
from collections.abc import Callable

from markupsafe import Markup, escape

from gpuplan.api.presentation import text_formatting, watches

_CODE = re.compile(r"`([^`]+)`")


def coded(words: object) -> Markup:
    """Escaped text with `words in backticks` as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(words))))  # noqa: S704 - escaped here


FILTERS: dict[str, Callable[..., str]] = {
    "ago": text_formatting.ago,
    "chance": text_formatting.chance,
    "coded": coded,
    "duration": text_formatting.duration,
    "layout": text_formatting.layout,
    "located": text_formatting.located,
    "number": text_formatting.number,
    "percent": text_formatting.percent,
    "plain": text_formatting.plain,
    "threshold": watches.threshold,
    "usd": text_formatting.usd,
    "usd_per_hour": text_formatting.usd_per_hour,
    "when": text_formatting.when,
}
