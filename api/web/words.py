"""How templates write figures and names: as the command line does."""

from collections.abc import Callable

from api.render import text

FILTERS: dict[str, Callable[..., str]] = {
    "chance": text.chance,
    "duration": text.duration,
    "layout": text.layout,
    "number": text.number,
    "percent": text.percent,
    "plain": text.plain,
    "usd": text.usd,
    "usd_per_hour": text.usd_per_hour,
    "when": text.when,
}
