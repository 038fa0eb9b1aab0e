"""What a name means where several accelerators may be chosen."""

import pytest

from gpuplan.api.schemas.constraints import ConstraintsDocument
from gpuplan.catalog.model.accelerators import accelerator_family, accelerators, find_accelerator
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.providers.owned.owned_machines import read_inventory


def test_a_model_name_means_every_form_factor_of_it() -> None:
    assert set(accelerator_family("H100")) >= {"H100-80GB-SXM", "H100-80GB-PCIe", "H100-94GB-NVL"}
    assert all(name.startswith("H100-") for name in accelerator_family("nvidia H100"))


def test_more_words_mean_fewer_variants() -> None:
    assert accelerator_family("A100 80GB PCIe") == ("A100-80GB-PCIe",)
    assert set(accelerator_family("A100 80GB")) == {"A100-80GB-SXM", "A100-80GB-PCIe"}


def test_a_short_name_never_swallows_a_longer_model() -> None:
    assert accelerator_family("A10") == ("A10",)
    assert accelerator_family("L4") == ("L4",)
    assert "V100S-32GB-PCIe" not in accelerator_family("V100")


@pytest.mark.parametrize("name", sorted(accelerators()))
def test_a_full_name_means_itself(name: str) -> None:
    assert accelerator_family(name) == (name,)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnusableInput, match=r"unknown accelerator 'H1000'; nearest: .*H100"):
        accelerator_family("H1000")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("RTX 4060 Ti", ("RTX-4060Ti-8GB", "RTX-4060Ti-16GB")),
        ("NVIDIA GeForce RTX 5060 Ti", ("RTX-5060Ti-8GB", "RTX-5060Ti-16GB")),
        ("titan x", ("Titan-X-Maxwell", "Titan-X-Pascal")),
        ("MI200", ("MI210", "MI250", "MI250X")),
    ],
)
def test_a_name_of_several_cards_means_all_where_several_may_be_chosen_and_is_refused_elsewhere(
    text: str, meant: tuple[str, ...]
) -> None:
    assert accelerator_family(text) == meant
    with pytest.raises(UnusableInput, match=f"may mean {', '.join(meant)}; write one of them"):
        find_accelerator(text)


def test_constraints_list_what_an_ambiguous_name_means() -> None:
    document = ConstraintsDocument.model_validate({"accelerators": ["MI200"]})
    assert document.constraints().accelerators == ("MI210", "MI250", "MI250X")
    assert document.notes() == ["accelerators: 'MI200' means any of MI210, MI250, MI250X"]


def test_an_inventory_must_say_which_card_it_has() -> None:
    with pytest.raises(UnusableInput, match="may mean RTX-4060Ti-8GB, RTX-4060Ti-16GB; write one of them"):
        read_inventory(
            {
                "machines": [{"name": "desk", "accelerator": "RTX 4060 Ti", "usd_per_hour": 0}],
                "electricity_usd_per_kwh": 0.3,
            }
        )
