"""Machines that GCP has no names for: N1 with GPUs attached, and the documented slices of TPUs."""

from fractions import Fraction

from catalog.accelerators import accelerators
from catalog.embedded import embedded_instance_types
from catalog.n1_machines import n1_machines
from catalog.tpu_slices import MAX_CHIPS, tpu_slices


def test_n1_machines_are_those_of_the_embedded_catalogue() -> None:
    embedded = {each.name: each for each in embedded_instance_types() if each.name.startswith("n1-")}
    assert {each.name: each.instance_type for each in n1_machines()} == embedded
    assert all(float(each.ram_gib) == each.instance_type.ram_gib for each in n1_machines())


def test_every_embedded_tpu_slice_is_a_documented_one() -> None:
    documented = {each.name: each.instance_type for each in tpu_slices()}
    embedded = [each for each in embedded_instance_types() if each.name.startswith("tpu")]
    assert embedded
    assert all(documented[each.name] == each for each in embedded)


def test_a_slice_is_its_topology() -> None:
    for each in tpu_slices():
        chips = 1
        for side in each.topology.split("x"):
            chips *= int(side)
        assert chips == each.chips <= MAX_CHIPS
        assert each.chips_per_host == each.instance_type.accelerator_count == Fraction(each.chips, each.hosts)


def test_tpu7x_counts_cores_in_its_names_and_has_four_chips_a_host() -> None:
    slices = [each for each in tpu_slices() if each.accelerator == "TPU-v7"]
    assert [each.name for each in slices] == [f"tpu7x-{2 * each.chips}" for each in slices]
    assert {each.chips_per_host for each in slices} == {4}
    assert {each.instance_type.ram_gib for each in slices} == {960.0}


def test_every_generation_of_tpus_that_trains_has_slices() -> None:
    chips = {name for name, each in accelerators().items() if each.form_factor == "TPU"}
    assert chips == {each.accelerator for each in tpu_slices()}
