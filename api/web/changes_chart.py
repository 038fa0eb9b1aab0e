"""The chart of `/changes`: how many offers each refresh made dearer, cheaper, new and gone."""

from gpuplan.api.presentation.charts.drawing import Axis, Figure, LegendEntry
from gpuplan.api.presentation.charts.stacked import StackedBar, StackedPart, stacked_bars
from gpuplan.api.presentation.text_formatting import number, when
from gpuplan.catalog.store.price_history import GROUPS, SnapshotChanges, change_counts
from gpuplan.catalog.store.store import Store

STYLES = dict(zip(GROUPS, ("s2", "s3", "s1", "s4"), strict=True))
#: Most refreshes that are drawn: a month of nights.
MOST_BARS = 30


def changes_figure(store: Store) -> Figure | None:
    """The chart of the newest snapshots against those that they followed; None if none followed another."""
    current = store.current_snapshot_id()
    changes = store.read(lambda connection: change_counts(connection, current, MOST_BARS))
    if not changes:
        return None
    bars = [
        StackedBar(
            at=one.observed_at,
            parts=tuple(StackedPart(value=one.counts[group], style=style) for group, style in STYLES.items()),
            title=f"{when(one.observed_at.isoformat())}: {_words(one)}",
            href=f"/changes?before={one.before}&after={one.snapshot_id}",
        )
        for one in changes
    ]
    title = "Offers that each refresh changed"
    return Figure(
        title=title,
        drawing=stacked_bars(title, bars, Axis(title="offers", write=lambda value: f"{value:,.0f}")),
        columns=(("prices of", False), *((group, True) for group in GROUPS)),
        rows=tuple(
            (when(one.observed_at.isoformat()), *(f"{one.counts[group]:,}" for group in GROUPS))
            for one in changes[::-1]
        ),
        legend=tuple(LegendEntry(name=group, style=STYLES[group], shape="square") for group in GROUPS),
    )


def _words(changes: SnapshotChanges) -> str:
    return ", ".join(f"{number(count)} {group}" for group, count in changes.counts.items() if count) or "no change"
