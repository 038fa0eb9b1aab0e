"""MIG slices: every row is a part of its card, and a name says which slice of which card is meant."""

from fractions import Fraction

import pytest

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.mig_slices import find_card_or_slice, mig_slices
from gpuplan.catalog.parsing.accelerator_names import accelerator_family_text, accelerator_text
from gpuplan.catalog.runtime.errors import UnusableInput


def test_every_slice_belongs_to_a_card_that_can_be_cut_and_names_its_source() -> None:
    for name, slices in mig_slices().items():
        assert accelerators()[name].mig_slices, name
        assert accelerators()[name].vendor == "NVIDIA"
        assert len({row.profile for row in slices}) == len(slices), name
        for row in slices:
            gigabytes = float(row.profile.partition(".")[2].removesuffix("gb"))
            assert 0.93 * gigabytes < row.memory_mib / 1024 < gigabytes, row.name
            assert "https://" in row.source
            assert row.as_of.startswith("20")


def test_more_compute_slices_are_a_larger_share() -> None:
    for slices in mig_slices().values():
        by_compute = sorted(slices, key=lambda row: int(row.profile[0]))
        shares = [row.share for row in by_compute]
        assert shares == sorted(shares)


def test_a_slice_is_planned_with_the_smaller_of_its_shares() -> None:
    _, three = find_card_or_slice("A100-80GB-SXM:3g.40gb")
    assert three is not None
    assert (three.compute_share, three.memory_share, three.share) == (
        Fraction(42, 108),
        Fraction(1, 2),
        Fraction(7, 18),
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("A100-80GB-SXM:3g.40gb", "A100-80GB-SXM:3g.40gb"),
        ("nvidia A100 80GB : MIG 3g.40gb", "A100-80GB-SXM:3g.40gb"),
        ("H100:1g.10gb+me", "H100-80GB-SXM:1g.10gb"),
        ("H100:mig-3g.47gb", "H100-94GB-NVL:3g.47gb"),
        ("H200:3g.71gb", "H200-141GB-SXM:3g.71gb"),
    ],
)
def test_usual_spellings_and_the_profile_decide_the_card(text: str, name: str) -> None:
    card, mig_slice = find_card_or_slice(text)
    assert mig_slice is not None
    assert mig_slice.name == name
    assert mig_slice.accelerator == card.name


def test_a_card_alone_has_no_slice() -> None:
    assert find_card_or_slice("A100 80GB") == (accelerators()["A100-80GB-SXM"], None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A100-80GB-SXM:5g.40gb", "is no MIG slice of that card; accepted: .*A100-80GB-SXM:3g.40gb"),
        ("A100:3g.40gb", "may mean A100-80GB-SXM:3g.40gb, A100-80GB-PCIe:3g.40gb; write one of them"),
        ("RTX 3090:1g.5gb", "it has none; write the whole card"),
        ("MI300X:1g.24gb", "it has none; write the whole card"),
        ("H1000:1g.5gb", "unknown accelerator 'H1000'"),
        ("RTX 4060 Ti", "may mean RTX-4060Ti-8GB, RTX-4060Ti-16GB"),
    ],
)
def test_other_names_are_refused_with_what_is_accepted(text: str, message: str) -> None:
    with pytest.raises(UnusableInput, match=message):
        find_card_or_slice(text)


@pytest.mark.parametrize("read", [accelerator_text, accelerator_family_text])
def test_where_only_cards_are_accepted_a_slice_is_refused_by_name(read: object) -> None:
    assert callable(read)
    with pytest.raises(
        ValueError, match="is a MIG slice, which an inventory and estimate --on accept; write A100-80GB-SXM"
    ):
        read("A100-80GB-SXM:3g.40gb")
