"""What stands between the user and the machines: first payments, credit, spend limits, and bids."""

from dataclasses import replace

import pytest

from gpuplan.catalog.model.payment_terms import NO_TERMS, payment_terms
from gpuplan.catalog.model.provider_names import provider_names
from gpuplan.catalog.snapshots.offer_columns import columns_of
from gpuplan.planner.model.outcome import Planned
from tests.planner.test_sellers import JOB, START, machine, offer, planned


def on(provider: str, usd: float = 20.0, kind: str = "on_demand") -> Planned:
    """The plan where one machine of that provider is all there is."""
    box = machine(provider)
    limits = replace(JOB.constraints, max_nodes=1, provider_kinds=("cloud", "neocloud", "marketplace"))
    columns = columns_of("made-up", START, [box], [replace(offer(box, usd), price_kind=kind)])
    return planned(columns, replace(JOB, constraints=limits, deadline_hours=None))


def about_payment(outcome: Planned) -> list[str]:
    return [line for line in outcome.actions if any(word in line for word in ("pay", "spend limit", "credit"))]


@pytest.mark.parametrize(
    ("provider", "usd", "sentences"),
    [
        ("nebius", 20.0, ["a new account at nebius first pays at least $25.00"]),
        ("runpod", 20.0, ["runpod starts machines if the credit lasts 1 h: $20.00"]),
        (
            "runpod",
            90.0,
            [
                "runpod starts machines if the credit lasts 1 h: $90.00",
                "ask runpod for a higher spend limit: these machines cost $90.00 per hour, and the usual limit is $80.00",
            ],
        ),
        ("lambda", 20.0, []),
        ("own-campus", 20.0, []),
    ],
)
def test_what_is_to_be_paid_first_is_an_action_with_its_amount(provider: str, usd: float, sentences: list[str]) -> None:
    assert about_payment(on(provider, usd)) == sentences


def test_credit_that_must_last_the_run_is_that_of_all_but_the_slowest_runs() -> None:
    outcome = on("together")
    [sentence] = about_payment(outcome)
    assert sentence.startswith(
        f"pay together in advance: about ${outcome.phases[0].choice.cost.p95 / 1e6:,.2f} so that"
    )


def test_a_spot_price_that_is_a_bid_says_what_outbidding_means() -> None:
    bids = [line for line in on("vast", 5.0, "spot").warnings if "the least bid that runs now" in line]
    assert len(bids) == 1
    assert not any("bid" in line for line in on("vast").warnings + on("verda", 5.0, "spot").warnings)


def test_every_provider_with_terms_is_known_and_the_others_charge_what_was_used() -> None:
    assert [name for name in provider_names() if payment_terms(name) != NO_TERMS] == [
        "runpod",
        "nebius",
        "vast",
        "together",
    ]
