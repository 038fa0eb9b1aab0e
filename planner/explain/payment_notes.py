"""What a provider's way of being paid asks before machines start, and what bids mean for spot machines."""

from gpuplan.catalog.model.money import usd_display
from gpuplan.catalog.model.payment_terms import payment_terms
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.planner.model.outcome import Choice


def payments_to_make(choice: Choice) -> list[str]:
    """First payments, credit and spend limits that stand between the user and the machines of a phase."""
    offer, terms = choice.offer, payment_terms(choice.offer.provider)
    if price_kinds()[offer.price_kind].owned:
        return []
    hourly = offer.usd_micros_per_hour * choice.nodes
    sentences = []
    if terms.first_payment_micros is not None:
        sentences.append(
            f"a new account at {offer.provider} first pays at least {usd_display(terms.first_payment_micros)}"
        )
    if terms.prepaid:
        sentences.append(
            f"pay {offer.provider} in advance: about {usd_display(choice.cost.p95)} so that the machines do not stop when "
            "the credit ends"
        )
    elif terms.credit_hours is not None:
        need = usd_display(round(hourly * terms.credit_hours))
        sentences.append(f"{offer.provider} starts machines if the credit lasts {terms.credit_hours:g} h: {need}")
    limit = terms.spend_limit_micros_per_hour
    if limit is not None and hourly > limit:
        sentences.append(
            f"ask {offer.provider} for a higher spend limit: these machines cost {usd_display(hourly)} per hour, and "
            f"the usual limit is {usd_display(limit)}"
        )
    return sentences


def bid_notice(choice: Choice) -> list[str]:
    """What it means that a spot price is a bid; empty where it is none."""
    offer = choice.offer
    if not (price_kinds()[offer.price_kind].interruptible and payment_terms(offer.provider).spot_is_bid):
        return []
    sentence = (
        f"the spot price at {offer.provider} is the least bid that runs now: whoever bids more stops the machine, and its "
        "disk is charged while it waits"
    )
    return [sentence]
