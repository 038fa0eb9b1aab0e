"""MaxText's models as its scripts state them."""

import pytest

from gpuplan.planner.model.job import Training
from gpuplan.planner.workload import work_of
from tools.fitting.maxtext_runs import configured, model_of
from tools.fitting.measured_runs import rows

ROWS = [row for row in rows("runs.csv.xz") if row["group"] == "maxtext"]
SCRIPTED = sorted({row["model"] for row in ROWS if row["model"].startswith("maxtext-")})


@pytest.mark.parametrize("name", SCRIPTED)
def test_a_model_has_as_many_parameters_as_its_name_says(name: str) -> None:
    model = model_of({"model": name}, 64.0)
    assert model is not None
    billions = float(name.removeprefix("maxtext-").removesuffix("b"))
    assert work_of(model, Training()).parameters == pytest.approx(billions * 1e9, rel=0.03)


def test_every_run_of_its_own_models_has_a_batch_that_its_layout_divides() -> None:
    assert len(SCRIPTED) == 9
    for row in ROWS:
        if row["model"] in SCRIPTED:
            stated = configured(row, gpus := int(row["gpus_total"]))
            tensor = int(stated["parallelism"].split()[0].removeprefix("tp"))
            assert int(stated["micro_batch"]) * gpus == int(stated["global_batch"]) * tensor, row["id"]
            assert stated["activation_ckpt"] in {"full", "selective"}


def test_runs_of_other_models_are_left_as_their_tables_have_them() -> None:
    [tiered] = [row for row in ROWS if (row["model"], row["gpu"]) == ("llama2-70b", "TPU-v5p")]
    assert configured(tiered, int(tiered["gpus_total"])) == tiered
    assert model_of(tiered, 64.0) is None
