from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest

from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import columns_of
from gpuplan.providers.owned.owned_machines import offers_of, read_inventory

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
RIG: dict[str, Any] = {
    "name": "rig",
    "accelerator": "RTX 3090",
    "count": 2,
    "purchase_usd": 5200,
    "life_years": 4,
    "residual_usd": 1000,
    "power_watts": 900,
    "electricity_usd_per_kwh": 0.32,
}


def machine(**changes: Any) -> OwnedMachine:
    given = {name: value for name, value in (RIG | changes).items() if value is not ...}
    return read_inventory({"machines": [given]})[0]


def faults(*machines: Any, **top: Any) -> dict[str, str]:
    with pytest.raises(UnusableInput) as refused:
        read_inventory({"machines": list(machines), **top})
    assert "\n" not in str(refused.value)
    return {fault.field: fault.message for fault in refused.value.faults}


def window(**changes: Any) -> dict[str, Any]:
    nights = {"days": ["mon", "tue"], "from": "18:00", "to": "08:00", "timezone": "Europe/Berlin"}
    return {name: value for name, value in (nights | changes).items() if value is not ...}


def test_a_purchase_is_spread_evenly_over_every_hour_of_its_life() -> None:
    assert machine().usd_per_hour_full == pytest.approx((5200 - 1000) / (4 * 8760))
    assert "straight-line" in machine().assumptions[0]


def test_power_is_what_is_stated_or_the_tdp_with_a_share_for_the_host() -> None:
    assert machine().power_watts == 900
    assumed = machine(power_watts=...)
    assert assumed.power_watts == 2 * 350 * 1.5
    assert any("350 W TDP and 50% for the host" in note for note in assumed.assumptions)
    assert machine(pue=1.2).usd_per_hour_power == pytest.approx(0.9 * 1.2 * 0.32)


def test_a_machine_that_is_written_off_costs_its_electricity_and_says_so() -> None:
    written_off = machine(purchase_usd=..., life_years=..., residual_usd=..., usd_per_hour=0)
    assert written_off.usd_per_hour_full == 0
    assert written_off.usd_per_hour_power > 0
    assert "written off" in written_off.assumptions[0]


def test_cards_in_slots_talk_over_pcie_unless_a_bridge_is_named() -> None:
    plain, bridged = machine().instance_type, machine(link="nvlink").instance_type
    assert (plain.intranode_link, plain.intranode_gbs, plain.scaleup_domain) == ("pcie", 31.5, 1)
    assert (bridged.intranode_gbs, bridged.scaleup_domain) == (56.25, 2)
    assert machine(count=4, link="nvlink").instance_type.scaleup_domain == 2


def test_boards_talk_over_their_own_link_unless_said_otherwise() -> None:
    board = machine(accelerator="H100", count=8).instance_type
    assert (board.intranode_gbs, board.scaleup_domain) == (450, 8)
    assert machine(accelerator="H100", count=8, link="pcie").instance_type.intranode_gbs == 63


def test_machines_work_together_only_over_a_network_that_is_named() -> None:
    assert machine(machines=2, network_gbps=100).instance_type.clusters
    apart = machine(machines=2)
    assert not apart.instance_type.clusters
    assert any("not joined" in note for note in apart.assumptions)


def test_what_holds_for_the_site_is_written_once_and_may_differ_at_a_machine() -> None:
    site = {"site": "lab", "electricity_usd_per_kwh": 0.25, "pue": 1.3, "grams_co2_per_kwh": 400}
    owned = {name: value for name, value in RIG.items() if name != "electricity_usd_per_kwh"}
    first, second = read_inventory({**site, "machines": [owned, owned | {"name": "b", "site": "attic", "pue": 1}]})
    assert (first.region, first.usd_per_kwh, first.pue, first.grams_co2_per_kwh) == ("lab", 0.25, 1.3, 400)
    assert (second.region, second.pue) == ("attic", 1)


def test_an_accelerator_with_variants_says_which_one_is_meant() -> None:
    assert machine(accelerator="A100 80GB").assumptions[0].startswith("rig: 'A100 80GB' is taken as A100-80GB-SXM")


def test_the_offer_of_a_machine_is_owned_at_its_full_rate() -> None:
    (offer,) = offers_of([machine()], observed_at=NOW)
    assert (offer.provider, offer.region, offer.price_kind, offer.instance_type) == ("local", "local", "owned", "rig")
    assert offer.usd_micros_per_hour == 119_863
    assert len(columns_of("x", NOW, [machine().instance_type], [offer])) == 1


def test_free_windows_decide_how_long_work_takes() -> None:
    nights = machine(free_windows=[window(days=["mon", "tue", "wed", "thu", "fri", "sat", "sun"])])
    evening = datetime(2026, 11, 21, 17, tzinfo=UTC)
    assert nights.elapsed_hours(evening, 14) == 14
    assert nights.elapsed_hours(evening, 15) == 25
    assert nights.elapsed_hours(evening, 15, restart_hours=0.5) == 25.5


@pytest.mark.parametrize(
    ("changes", "field", "expected"),
    [
        ({"accelerator": "RTX 3095"}, "accelerator", "nearest: RTX-3090"),
        ({"accelerator": ...}, "accelerator", "missing"),
        ({"acelerator": "L4"}, "acelerator", "did you mean accelerator?"),
        ({"electricity_usd_per_kwh": ...}, "electricity_usd_per_kwh", "US dollars per kWh, such as 0.32"),
        ({"electricity_usd_per_kwh": 0}, "electricity_usd_per_kwh", "is zero"),
        ({"purchase_usd": ...}, "", "its cost is missing"),
        ({"life_years": ...}, "", "purchase_usd and life_years"),
        ({"usd_per_hour": 1}, "", "a rate or a purchase, not both"),
        ({"residual_usd": 6000}, "", "not below purchase_usd"),
        ({"count": 65}, "count", "from 1 to 64"),
        ({"pue": 0.9}, "pue", "below 1"),
        ({"link": "nvlink", "accelerator": "RTX 4090"}, "link", "no link between cards"),
        ({"link": "wifi"}, "link", "pcie, nvlink"),
        ({"free_windows": [window(days=...)]}, "free_windows[0]", "needs days"),
        ({"free_windows": [window(timezone=...)]}, "free_windows[0]", "and a timezone"),
        ({"free_windows": [window(timezone="Europe/Berlinn")]}, "free_windows[0].timezone", "IANA time zone"),
        ({"free_windows": [window(timezone="../../etc/passwd")]}, "free_windows[0].timezone", "IANA time zone"),
        ({"free_windows": [window(to="18:00")]}, "free_windows[0]", "whole days"),
        ({"free_windows": [window(to="25:00")]}, "free_windows[0].to", "00:00 to 24:00"),
        ({"free_windows": [window(days=["mon", "monday"])]}, "free_windows[0].days", "a day twice"),
        ({"free_windows": [window(days=["mo"])]}, "free_windows[0].days", "did you mean mon?"),
        (
            {"free_windows": [window(), window(days=["wed"], to="20:00"), window(days=["wed"])]},
            "free_windows[2]",
            "overlaps",
        ),
        (
            {"free_windows": [window(), window(days=["sat"], timezone="UTC")]},
            "free_windows[1].timezone",
            "use one for all windows",
        ),
        (
            {"free_windows": [{"from": "2026-12-02T00:00Z", "to": "2026-12-01T00:00Z"}]},
            "free_windows[0]",
            "not after it starts",
        ),
        ({"free_windows": [{"from": "2026-12-02", "to": "2026-12-03"}]}, "free_windows[0].from", "no time zone"),
    ],
)
def test_a_bad_machine_is_named_with_what_would_be_accepted(changes: dict[str, Any], field: str, expected: str) -> None:
    given = {name: value for name, value in (RIG | changes).items() if value is not ...}
    result = faults(given)
    key = next(iter(result))
    assert key == f"machines[0].{field}".rstrip(".")
    assert expected in result[key]


def test_an_inventory_without_machines_or_with_a_name_twice_is_refused() -> None:
    assert "at least one machine" in faults()["machines"]
    assert "used twice" in faults(RIG, RIG)["machines[1].name"]


def test_an_inventory_of_a_thousand_kinds_is_read() -> None:
    machine = {"accelerator": "RTX 3090", "usd_per_hour": 0.5, "electricity_usd_per_kwh": 0.3}
    assert len(read_inventory({"machines": [machine | {"name": f"rig-{i}"} for i in range(1000)]})) == 1000


def test_a_mig_slice_is_a_machine_of_part_of_a_card() -> None:
    owned = machine(accelerator="A100 80GB:3g.40gb", count=1, machines=4, power_watts=..., network_gbps=100)
    assert owned.instance_type.accelerator == "A100-80GB-SXM"
    assert owned.instance_type.accelerator_count == Fraction(7, 18)
    assert owned.instance_type.accelerator_memory_mib == 40192
    assert not owned.instance_type.clusters
    assert owned.power_watts == 400 / 2 * 1.5
    assert any("A100-80GB-SXM:3g.40gb is planned as 38.9% of the card" in note for note in owned.assumptions)
    assert any("not joined for one job" in note for note in owned.assumptions)


def test_slices_in_one_machine_are_refused_with_what_to_write() -> None:
    wrong = faults(RIG | {"accelerator": "A100-80GB-SXM:1g.10gb", "count": 7, "link": "nvlink"})
    assert "leave it out, and write the number of slices as machines" in wrong["machines[0].count"]
    assert "has no link to others" in wrong["machines[0].link"]


def test_a_profile_that_the_card_lacks_is_refused_with_those_it_has() -> None:
    wrong = faults(RIG | {"accelerator": "A30:3g.18gb"})
    assert "accepted: A30:1g.6gb, A30:2g.12gb" in wrong["machines[0].accelerator"]
