"""Bills in whole micro-dollars, as they are shown."""

from collections.abc import Sequence

from planner.verify.bill import Bill

PARTS = ("storage", "egress", "power", "setup")


def parts_of_bill(bills: Sequence[Bill]) -> dict[str, int]:
    """Micro-dollars of several bills by part, and `expected` in all: each bill is rounded once, and compute takes what
    rounding the other parts would shift.
    """
    parts = {name: sum(round(getattr(bill, name) * 1e6) for bill in bills) for name in PARTS}
    expected = sum(round(bill.total * 1e6) for bill in bills)
    return {"expected": expected, "compute": expected - sum(parts.values()), **parts}
