"""What a watch for machines waits for, and what the clouds said of them, in a line each."""

from gpuplan.api.presentation.text_formatting import number, usd, when
from gpuplan.api.schemas.watch_answers import NoCapacityAnswer, ReportedMachines, WantedCapacity


def in_one_line(reported: ReportedMachines, wanted: WantedCapacity) -> str:
    """What the clouds said, beside what is wanted."""
    wish = condition(wanted)
    if isinstance(reported, NoCapacityAnswer):
        return f"no answer about a place {wish.partition(', ')[2]}"
    cost = reported.usd_per_node_hour
    price = "without a price in the snapshot" if cost is None else f"{usd(cost)} per node-hour"
    booked = f", from {when(reported.starts_at)} on" if reported.starts_at else ""
    answered = f"{reported.source}: {reported.published}, asked {when(reported.asked_at)}"
    return f"{reported.choice}{booked}, chance {reported.chance:.2f} ({answered}), {price}; wanted {wish}"


def condition(wanted: WantedCapacity) -> str:
    """`a chance of 0.7 or more, at most $60.00 per node-hour`."""
    under = wanted.under_usd_per_node_hour
    price = "at any price" if under is None else f"at most {usd(under)} per node-hour"
    return f"a chance of {number(wanted.least_chance)} or more, {price}"
