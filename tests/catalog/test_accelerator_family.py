"""What a name means where several accelerators may be chosen."""

import pytest

from gpuplan.catalog.model.accelerators import accelerator_family, accelerators
from gpuplan.catalog.runtime.errors import UnusableInput


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
