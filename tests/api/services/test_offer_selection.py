"""Looking through the catalogue: every filter, every order, and what is refused."""

import math
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.api.services.offer_selection import ORDERS, memory_gb, read_selection, selected
from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.regions import regions
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of

AT = datetime(2026, 11, 1, tzinfo=UTC)
TYPES = (
    InstanceType(provider="aws", name="p5.48xlarge", accelerator="H100-80GB-SXM", accelerator_count=Fraction(8)),
    InstanceType(provider="aws", name="inf2.xlarge", accelerator="Inferentia1", accelerator_count=Fraction(1)),
    InstanceType(provider="gcp", name="g2-standard-4", accelerator="L4", accelerator_count=Fraction(1)),
    InstanceType(
        provider="azure",
        name="NV6ads_A10_v5",
        accelerator="A10",
        accelerator_count=Fraction(1, 6),
        accelerator_memory_mib=4096,
    ),
    InstanceType(provider="local", name="rig", accelerator="no such card", accelerator_count=Fraction(2)),
)
#: From the data sheets (dense bf16); a sixth of an A10, whose 4,096 MiB are 4.295 GB.
PFLOPS = {"p5.48xlarge": 8 * 0.9894, "inf2.xlarge": 0.064, "g2-standard-4": 0.121, "NV6ads_A10_v5": 0.125 / 6}
GB_OF_NODE = {"p5.48xlarge": 640, "inf2.xlarge": 8, "g2-standard-4": 24, "NV6ads_A10_v5": 4.295}
PLACES = {
    "aws": ("us-east-1", "eu-west-1"),
    "gcp": ("us-central1", "asia-southeast1"),
    "azure": ("eastus", "westeurope"),
    "local": ("lab",),
}
OFFERS = tuple(
    Offer(
        provider=machine.provider,
        region=region,
        instance_type=machine.name,
        price_kind="owned" if machine.provider == "local" else kind,
        usd_micros_per_hour=1_000_000 * (1 + number) + 300_000 * (kind == "spot"),
        observed_at=AT,
    )
    for number, machine in enumerate(TYPES)
    for region in PLACES[machine.provider]
    for kind in (("on_demand",) if machine.provider == "local" else ("on_demand", "spot"))
)


@pytest.fixture(scope="module")
def columns() -> Columns:
    return columns_of("a" * 32, AT, TYPES, OFFERS)


def names(columns: Columns, **asked: str) -> list[str]:
    return [columns.offer(int(index)).instance_type for index in selected(columns, read_selection(asked))]


def brute_force(columns: Columns, asked: dict[str, str]) -> list[int]:
    """The offers that match, by a look at each row."""
    indices = []
    types = {(instance_type.provider, instance_type.name): instance_type for instance_type in TYPES}
    for index in range(len(columns)):
        offer = columns.offer(index)
        machine = types[offer.provider, offer.instance_type]
        card, place = accelerators().get(machine.accelerator), regions().get((offer.provider, offer.region))
        count, usd = float(machine.accelerator_count), offer.usd_micros_per_hour / 1e6
        memory = memory_gb(machine)
        checks = {
            "provider": lambda text, offer=offer: offer.provider == text,
            "kind": lambda text, offer=offer: offer.price_kind == text,
            "geography": lambda text, place=place: place is not None and place.geography == text,
            "trains": lambda _, card=card: card is not None and card.trains != "no",
            "usd_from": lambda text, usd=usd: usd >= float(text),
            "usd_to": lambda text, usd=usd: usd <= float(text),
            "accelerators_from": lambda text, count=count: count >= float(text),
            "accelerators_to": lambda text, count=count: count <= float(text),
            "memory_from": lambda text, memory=memory: memory is not None and memory >= float(text),
        }
        if all(checks[name](text) for name, text in asked.items()):  # type: ignore[no-untyped-call]
            indices.append(index)
    return indices


ASKED = st.fixed_dictionaries(
    {},
    optional={
        "provider": st.sampled_from(["aws", "gcp", "azure", "local"]),
        "kind": st.sampled_from(["on_demand", "spot"]),
        "geography": st.sampled_from(["us", "eu", "asia", "africa"]),
        "trains": st.just("1"),
        "usd_from": st.sampled_from(["0", "1.3", "2", "3"]),
        "usd_to": st.sampled_from(["3", "3.3", "5", "5000"]),
        "accelerators_from": st.sampled_from(["0.1", "1", "2"]),
        "accelerators_to": st.sampled_from(["2", "8"]),
        "memory_from": st.sampled_from(["4", "24", "80"]),
    },
)


@given(asked=ASKED, order=st.sampled_from([*ORDERS, *(f"-{order}" for order in ORDERS)]))
@settings(deadline=None, max_examples=150)
def test_filters_keep_what_a_look_at_each_row_keeps_in_any_order(
    columns: Columns, asked: dict[str, str], order: str
) -> None:
    indices = selected(columns, read_selection(asked | {"order": order})).tolist()
    assert sorted(indices) == brute_force(columns, asked)


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_and_its_reverse_agree_and_what_is_unknown_comes_last(columns: Columns, order: str) -> None:
    types = {instance_type.name: instance_type for instance_type in TYPES}

    def key(index: int) -> object:
        offer = columns.offer(index)
        machine = types[offer.instance_type]
        usd = offer.usd_micros_per_hour / 1e6
        return {
            "usd_per_hour": usd,
            "usd_per_accelerator": usd / float(machine.accelerator_count),
            "usd_per_pflop": usd / PFLOPS.get(machine.name, math.nan),
            "usd_per_gb": usd / GB_OF_NODE.get(machine.name, math.nan),
            "accelerator": machine.accelerator.casefold(),
            "accelerators": float(machine.accelerator_count),
            "memory": memory_gb(machine) or math.nan,
            "instance_type": machine.name.casefold(),
            "provider": offer.provider,
            "region": offer.region,
            "kind": columns.kinds.index(offer.price_kind),
        }[order]

    for text in (order, f"-{order}"):
        keys = [key(index) for index in selected(columns, read_selection({"order": text})).tolist()]
        known = [key for key in keys if key == key]
        assert known == sorted(known, reverse=text.startswith("-"))  # type: ignore[type-var]
        assert keys[: len(known)] == known


def test_globs_and_families_of_the_listing_hold_here_too(columns: Columns) -> None:
    assert set(names(columns, accelerator="h100")) == {"p5.48xlarge"}
    assert set(names(columns, instance_type="p5*", region="us-*", kind="spot")) == {"p5.48xlarge"}


def test_memory_is_that_of_one_accelerator_and_of_a_part_what_the_part_has() -> None:
    assert [memory_gb(instance_type) for instance_type in TYPES[:3]] == [80, 8, 24]
    assert memory_gb(TYPES[3]) == pytest.approx(4.295, abs=0.001)
    assert memory_gb(replace(TYPES[3], accelerator_memory_mib=None)) == pytest.approx(4)
    assert memory_gb(TYPES[4]) is None


def test_empty_fields_are_not_set_and_what_is_set_can_be_read_again() -> None:
    wanted = read_selection({"provider": "aws", "usd_to": " $1,000.50 ", "trains": "1", "region": "", "order": "-kind"})
    assert wanted.given() == {"provider": "aws", "usd_to": "1000.5", "trains": "1", "order": "-kind"}
    assert read_selection(wanted.given()) == wanted
    assert read_selection({"order": "usd_per_hour"}).given() == {}


def test_a_range_that_ends_at_nothing_is_not_taken_for_no_range() -> None:
    assert read_selection({"usd_to": "0"}).given() == {"usd_to": "0"}


@pytest.mark.parametrize(
    ("asked", "field", "words"),
    [
        ({"usd_to": "cheap"}, "usd_to", "US dollars"),
        ({"usd_from": "nan"}, "usd_from", "US dollars"),
        ({"usd_from": "-1"}, "usd_from", "from 0"),
        ({"accelerators_from": "65"}, "accelerators_from", "to 64"),
        ({"geography": "atlantis"}, "geography", "accepted: africa"),
        ({"order": "price"}, "order", "usd_per_hour"),
        ({"order": "--kind"}, "order", "no order"),
        ({"trains": "maybe"}, "trains", "write 1"),
        ({"usd_from": "5", "usd_to": "4"}, "usd_to", "below 5"),
        ({"colour": "red"}, "colour", "unknown filter"),
    ],
)
def test_what_cannot_be_read_is_refused_at_its_field(asked: dict[str, str], field: str, words: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        read_selection(asked)
    [fault] = refused.value.faults
    assert (fault.field, words in fault.message) == (field, True), fault


def test_every_fault_is_named_at_once() -> None:
    with pytest.raises(UnusableInput) as refused:
        read_selection({"usd_to": "x", "memory_from": "y", "geography": "z"})
    assert {fault.field for fault in refused.value.faults} == {"usd_to", "memory_from", "geography"}
