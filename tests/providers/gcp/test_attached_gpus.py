"""GPUs that N1 machines can have attached: how many at once is our own table's, not the most that a zone states."""

from tests.providers.gcp.reads import ZONE, add_parts, rows_of, small_catalogue


def test_gpus_are_attached_in_the_counts_that_are_sold_and_not_in_every_one_up_to_the_most_cards() -> None:
    made = small_catalogue()
    made.attachable[ZONE].append("nvidia-tesla-t4")
    add_parts(made, "on_demand", ("Nvidia Tesla T4 GPU", 350_000_000), ("N1 Core", 31_611_000), ("N1 Ram", 4_237_000))
    names = {offer.instance_type for offer in rows_of(made).offers if "+" in offer.instance_type}
    assert {name.partition("+")[2] for name in names} == {"1xT4", "2xT4", "4xT4"}


def test_an_n1_machine_stands_once_for_each_number_of_gpus_that_it_may_have() -> None:
    made = small_catalogue()
    made.attachable[ZONE].append("nvidia-tesla-v100")
    parts = (("Nvidia Tesla V100 GPU", 2_480_000_000), ("N1 Core", 31_611_000), ("N1 Ram", 4_237_000))
    add_parts(made, "on_demand", *parts)
    offers = [offer.instance_type for offer in rows_of(made).offers if "+" in offer.instance_type]
    assert len(offers) == len(set(offers))
    assert {name.partition("+")[2] for name in offers} == {"1xV100", "2xV100", "4xV100", "8xV100"}
