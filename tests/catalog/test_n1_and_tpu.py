"""Machines that GCP has no names for: N1 with GPUs attached, and the documented slices of TPUs."""

from fractions import Fraction

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.n1_machines import n1_machines
from gpuplan.catalog.model.tpu_slices import MAX_CHIPS, tpu_slices
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_instance_types


def test_n1_machines_are_those_of_the_embedded_catalogue() -> None:
    embedded = {
        instance_type.name: instance_type
        for instance_type in embedded_instance_types()
        if instance_type.name.startswith("n1-")
    }
    assert {n1_machine.name: n1_machine.instance_type for n1_machine in n1_machines()} == embedded
    assert all(float(n1_machine.ram_gib) == n1_machine.instance_type.ram_gib for n1_machine in n1_machines())


def test_every_embedded_tpu_slice_is_a_documented_one() -> None:
    documented = {tpu_slice.name: tpu_slice.instance_type for tpu_slice in tpu_slices()}
    embedded = [instance_type for instance_type in embedded_instance_types() if instance_type.name.startswith("tpu")]
    assert embedded
    assert all(documented[item.name] == item for item in embedded)


def test_a_slice_is_its_topology() -> None:
    for tpu_slice in tpu_slices():
        chips = 1
        for side in tpu_slice.topology.split("x"):
            chips *= int(side)
        assert chips == tpu_slice.chips <= MAX_CHIPS
        assert (
            tpu_slice.chips_per_host
            == tpu_slice.instance_type.accelerator_count
            == Fraction(tpu_slice.chips, tpu_slice.hosts)
        )


def test_tpu7x_counts_cores_in_its_names_and_has_four_chips_a_host() -> None:
    slices = [tpu_slice for tpu_slice in tpu_slices() if tpu_slice.accelerator == "TPU-v7"]
    assert [tpu_slice.name for tpu_slice in slices] == [f"tpu7x-{2 * tpu_slice.chips}" for tpu_slice in slices]
    assert {tpu_slice.chips_per_host for tpu_slice in slices} == {4}
    assert {tpu_slice.instance_type.ram_gib for tpu_slice in slices} == {960.0}


def test_every_generation_of_tpus_that_trains_has_slices() -> None:
    chips = {name for name, accelerator in accelerators().items() if accelerator.form_factor == "TPU"}
    assert chips == {tpu_slice.accelerator for tpu_slice in tpu_slices()}
