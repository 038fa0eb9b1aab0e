"""Finding own machines: what drivers say, and the inventory that is written from it."""

import importlib
import inspect
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuplan.catalog.parsing.structured_text import read_document
from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.providers.owned import nvidia_devices
from gpuplan.providers.owned.amd_devices import TOOLS, amd_devices
from gpuplan.providers.owned.detected_devices import Device, Host, accelerator_of, groups, host_id
from gpuplan.providers.owned.machine_detection import Costs, Detected, detect, inventory_text, machine_names
from gpuplan.providers.owned.nvidia_devices import devices_of
from gpuplan.providers.owned.owned_machines import read_inventory
from tests.providers.fake_nvml import RTX, FakeNvml

HOST = Host(id="0123456789abcdef", name="rig.lab", vcpus=32, ram_gib=125.6)


def detected(*cards: dict[str, Any]) -> Detected:
    return Detected(host=HOST, groups=groups(devices_of(FakeNvml(*cards))))


def as_read(text: str) -> dict[str, Any]:
    return read_document(text, name="inventory.yaml")


def device(name: str, memory_mib: int) -> Device:
    return Device(vendor="NVIDIA", name=name, uuid="GPU-1", memory_mib=memory_mib, driver="570")


@pytest.mark.parametrize(
    ("name", "memory_mib", "card"),
    [
        ("NVIDIA GeForce RTX 4060 Ti", 8188, "RTX-4060Ti-8GB"),
        ("NVIDIA GeForce RTX 4060 Ti", 16380, "RTX-4060Ti-16GB"),
        ("NVIDIA GeForce RTX 5060 Ti", 16311, "RTX-5060Ti-16GB"),
        ("NVIDIA GeForce GTX TITAN X", 12212, "Titan-X-Maxwell"),
        ("NVIDIA TITAN X (Pascal)", 12196, "Titan-X-Pascal"),
        ("NVIDIA H20", 97871, "H20-96GB-SXM"),
    ],
)
def test_memory_decides_between_cards_of_one_name(name: str, memory_mib: int, card: str) -> None:
    assert accelerator_of(device(name, memory_mib)).name == card


def test_a_driver_that_does_not_tell_cards_apart_leaves_the_choice_to_the_owner() -> None:
    with pytest.raises(UnusableInput, match="may be MI250, MI250X, which its driver does not tell apart"):
        accelerator_of(device("Aldebaran/MI200 [Instinct MI250X/MI250]", 65520))
    with pytest.raises(
        UnusableInput, match="RTX-4060Ti-8GB has 8188, RTX-4060Ti-16GB has 16380: it is another variant"
    ):
        accelerator_of(device("NVIDIA GeForce RTX 4060 Ti", 12000))


def test_equal_cards_are_one_group_and_others_their_own() -> None:
    current = detected(RTX, RTX, {"name": "NVIDIA RTX A6000", "mib": 49140})
    assert [(len(group.devices), group.accelerator and group.accelerator.name) for group in current.groups] == [
        (2, "RTX-3090"),
        (1, "RTX-A6000"),
    ]
    first = current.groups[0].first
    assert (first.uuid, first.driver, first.power_limit_watts) == ("GPU-0", "570.86.15", 280.0)
    assert (first.pcie_generation, first.pcie_width, first.memory_mib) == (4, 16, 24576)


def test_cards_in_slots_of_their_own_kind_are_one_machine_at_the_slowest_slot() -> None:
    (both,) = detected(RTX, RTX | {"milliwatts": 350_000, "width": 8}).groups
    assert (len(both.devices), both.power_limit_watts, both.pcie) == (2, 630.0, (4, 8))
    (unsure,) = detected(RTX, {}).groups
    assert (unsure.power_limit_watts, unsure.pcie) == (None, (4, 16))


def test_what_a_card_does_not_support_is_unknown_and_no_failure() -> None:
    first = detected({}).groups[0].first
    assert (first.power_limit_watts, first.pcie_generation, first.pcie_width, first.split) == (None, None, None, False)


def test_names_are_text_in_old_releases_of_the_library_too() -> None:
    assert detected({"name": b"Tesla V100-SXM2-32GB", "mib": 32510}).groups[0].first.name == "Tesla V100-SXM2-32GB"


def test_the_library_is_closed_again_even_when_it_fails() -> None:
    library = FakeNvml(RTX, broken="nvmlDeviceGetCount")
    with pytest.raises(ProviderFailure, match="GPU is lost"):
        devices_of(library)
    assert library.open == 0


def test_the_real_library_has_every_call_that_the_tests_stand_in_for() -> None:
    real = importlib.import_module("pynvml")
    calls = [name for name in vars(FakeNvml) if name.startswith("nvml")]
    assert len(calls) == 13
    for name in calls:
        taken = list(inspect.signature(getattr(FakeNvml, name)).parameters)[1:]
        required = [
            parameter
            for parameter in inspect.signature(getattr(real, name)).parameters.values()
            if parameter.default is parameter.empty
        ]
        assert len(required) == len(taken), name
    assert real.NVML_P2P_CAPS_INDEX_NVLINK == FakeNvml.NVML_P2P_CAPS_INDEX_NVLINK
    assert real.NVML_P2P_STATUS_OK == FakeNvml.NVML_P2P_STATUS_OK
    assert issubclass(real.NVMLError, Exception)


@pytest.mark.parametrize(("driver", "raises"), [(True, True), (False, False)])
def test_a_driver_that_does_not_start_is_a_failure_only_where_there_is_one(
    driver: bool, raises: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvidia_devices, "DRIVER", tmp_path if driver else tmp_path / "none")
    if raises:
        with pytest.raises(ProviderFailure, match="version mismatch"):
            devices_of(FakeNvml(RTX, broken="nvmlInit"))
    else:
        assert devices_of(FakeNvml(RTX, broken="nvmlInit")) == []


@pytest.mark.parametrize(
    ("name", "memory_mib", "expected"),
    [
        ("NVIDIA A100-SXM4-80GB", 81920, "A100-80GB-SXM"),
        ("NVIDIA H100 80GB HBM3", 81559, "H100-80GB-SXM"),
        ("NVIDIA H100 PCIe", 81559, "H100-80GB-PCIe"),
        ("Tesla V100-SXM2-16GB", 16384, "V100-16GB"),
        ("NVIDIA GeForce GTX 1080 Ti", 11264, "GTX-1080Ti"),
        ("NVIDIA RTX A6000", 49140, "RTX-A6000"),
        ("AMD Instinct MI300X VF", 196592, "MI300X"),
        ("Arcturus GL-XL [AMD Instinct MI100]", 32752, "MI100"),
    ],
)
def test_names_as_drivers_write_them_are_rows_of_the_table(name: str, memory_mib: int, expected: str) -> None:
    assert accelerator_of(device(name, memory_mib)).name == expected


def test_a_variant_with_other_memory_is_not_taken_for_the_known_one() -> None:
    with pytest.raises(UnusableInput, match="12288 MiB, but RTX-3080 has 10240"):
        accelerator_of(device("NVIDIA GeForce RTX 3080", 12288))


def test_an_unknown_card_is_listed_with_the_nearest_and_not_dropped() -> None:
    current = detected(RTX, {"name": "NVIDIA GeForce RTX 3095", "mib": 24576})
    assert current.groups[1].accelerator is None
    assert "nearest: RTX-3090" in current.groups[1].problem
    assert "# left out: 1 x unknown accelerator 'NVIDIA GeForce RTX 3095'" in inventory_text(current, Costs())


def test_the_inventory_lacks_only_what_the_owner_knows() -> None:
    text = inventory_text(detected(RTX, RTX), Costs())
    assert text.count("FILL IN") == 2
    with pytest.raises(UnusableInput) as refused:
        read_inventory(as_read(text))
    assert "cost is missing" in str(refused.value)
    filled = text.replace("# electricity_usd_per_kwh:   #", "electricity_usd_per_kwh: 0.3  #")
    with pytest.raises(UnusableInput, match="cost is missing"):
        read_inventory(as_read(filled))
    read_inventory(as_read(filled.replace("# usd_per_hour:   #", "usd_per_hour: 0  #")))


def test_the_inventory_is_accepted_with_the_costs_that_the_owner_gives() -> None:
    costs = Costs(electricity_usd_per_kwh=0.32, purchase_usd=5200, life_years=4)
    (machine,) = read_inventory(as_read(inventory_text(detected(RTX, RTX), costs)))
    kind = machine.instance_type
    assert (kind.accelerator, int(kind.accelerator_count), kind.vcpus, kind.ram_gib) == ("RTX-3090", 2, 32, 126)
    assert (machine.host, machine.usd_per_kwh, kind.intranode_link) == (HOST.id, 0.32, "pcie")
    assert machine.power_watts == 2 * 280 * 1.5
    assert machine.usd_per_hour_full == pytest.approx(5200 / (4 * 8760))


def test_cards_that_all_reach_each_other_over_nvlink_are_linked_and_others_not() -> None:
    costs = Costs(electricity_usd_per_kwh=0.32, usd_per_hour=0)
    bridged = {"linked": True} | RTX
    (machine,) = read_inventory(as_read(inventory_text(detected(bridged, bridged), costs)))
    assert machine.instance_type.intranode_gbs == 56.25
    assert "link: pcie  # PCIe 4.0 x16" in inventory_text(detected(bridged, bridged, RTX), costs)


def test_a_bridge_that_the_table_does_not_know_of_is_left_out_rather_than_refused() -> None:
    costs = Costs(electricity_usd_per_kwh=0.32, usd_per_hour=0)
    card = RTX | {"name": "NVIDIA GeForce RTX 4090", "mib": 24564, "linked": True}
    (machine,) = read_inventory(as_read(inventory_text(detected(card, card), costs)))
    assert machine.instance_type.intranode_link == "pcie"


def test_a_card_cut_into_slices_is_said_to_be() -> None:
    current = detected({"name": "NVIDIA A100-SXM4-80GB", "mib": 81920, "mig": 1})
    assert current.groups[0].first.split
    text = inventory_text(current, Costs())
    assert "cut into slices (MIG)" in text
    assert "accelerator: A100-80GB-SXM:PROFILE, machines: the number of slices" in text


def test_groups_of_one_machine_have_names_of_their_own() -> None:
    slices = {"name": "NVIDIA L4", "mib": 23034, "mig": 1}
    current = detected(RTX, {"name": "NVIDIA L4", "mib": 23034}, slices)
    assert machine_names(current) == ["rig-RTX-3090", "rig-L4", "rig-L4-3"]
    assert machine_names(detected(RTX)) == ["rig"]


def test_a_machine_without_any_known_card_has_no_inventory() -> None:
    with pytest.raises(UnusableInput, match="nearest"):
        inventory_text(detected({"name": "NVIDIA Mystery 9000"}), Costs())


def test_the_hosts_identity_is_stable_and_does_not_show_the_systems_own(tmp_path: Path) -> None:
    (tmp_path / "id").write_text("f00dfacef00dfacef00dfacef00dface\n")
    assert host_id(tmp_path / "id") == host_id(tmp_path / "id") != host_id(tmp_path / "none")
    assert "f00d" not in host_id(tmp_path / "id")
    assert len(host_id(tmp_path / "none")) == 16


Tool = Callable[..., None]


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """Installs a program that prints a text and ends with a code, with no other on the path."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def install(name: str, prints: str, code: int = 0) -> None:
        (tmp_path / "answer").write_text(prints + "\n")
        program = tmp_path / name
        program.write_text(
            f"#!/bin/sh\nwhile read -r line; do echo \"$line\"; done < '{tmp_path / 'answer'}'\nexit {code}\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    return install


SMI = [
    {
        "gpu": 0,
        "asic": {"market_name": "AMD Instinct MI300X", "asic_serial": "0xABC"},
        "bus": {"bdf": "0000:05:00.0", "max_pcie_width": 16, "max_pcie_speed": {"value": 32, "unit": "GT/s"}},
        "driver": {"name": "amdgpu", "version": "6.10.5"},
        "vram": {"type": "HBM", "size": {"value": 196592, "unit": "MB"}},
        "limit": {"max_power": {"value": 750, "unit": "W"}},
    }
]
ROCM = {
    "card0": {
        "Unique ID": "0x9246",
        "VRAM Total Memory (B)": "25753026560",
        "Max Graphics Package Power (W)": "303.0",
        "Card Series": "Radeon RX 7900 XTX",
        "Card Model": "0x744c",
    },
    "system": {"Driver version": "6.8.0"},
}


@pytest.mark.parametrize("document", [SMI, {"gpu_data": SMI}])
def test_amd_smi_describes_devices_in_both_of_its_forms(tool: Tool, document: Any) -> None:
    tool("amd-smi", "WARNING: not in the render group\n" + json.dumps(document))
    (one,) = amd_devices()
    assert (one.name, one.uuid, one.memory_mib, one.driver) == ("AMD Instinct MI300X", "0xABC", 196592, "6.10.5")
    assert (one.power_limit_watts, one.pcie_generation, one.pcie_width) == (750.0, 5, 16)
    assert accelerator_of(one).name == "MI300X"


def test_rocm_smi_describes_devices_where_there_is_no_amd_smi(tool: Tool) -> None:
    tool("rocm-smi", json.dumps(ROCM))
    (one,) = amd_devices()
    assert (one.name, one.uuid, one.driver, one.power_limit_watts) == ("Radeon RX 7900 XTX", "0x9246", "6.8.0", 303.0)
    assert accelerator_of(one).name == "RX-7900-XTX"


@pytest.mark.parametrize(("prints", "code"), [("no permission", 1), ("not json", 0), ('[{"gpu": 0}]', 0), ("", 0)])
def test_a_tool_that_fails_or_cannot_be_read_is_a_clear_failure(tool: Tool, prints: str, code: int) -> None:
    tool("amd-smi", prints, code)
    with pytest.raises(ProviderFailure, match=r"amd-smi (failed|describes)") as failure:
        amd_devices()
    assert "\n" not in str(failure.value)


def test_no_tool_and_no_driver_is_no_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("gpuplan.providers.owned.machine_detection.nvidia_devices", list)
    assert [name for name, _ in TOOLS] == ["amd-smi", "rocm-smi"]
    with pytest.raises(UnusableInput, match="no NVIDIA or AMD accelerator"):
        detect()


def test_a_driver_without_the_library_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia_devices, "DRIVER", tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    with pytest.raises(ProviderFailure, match=r"gpuplan\[nvidia\]"):
        nvidia_devices.nvidia_devices()
