"""What verification takes on trust follows from the declaration of the answer."""

from gpuplan.planner.model.plan import Infeasible, Plan
from gpuplan.planner.verify.verification import prose

SOLVED = {"solver": "HiGHS", "over": ["singles"], "enumeration": {"node_counts": "1", "layouts": "a", "left_out": "b"}}


def test_prose_is_what_the_types_declare_at_every_depth() -> None:
    body = {"certificate": SOLVED, "capacity_ladder": {"covers": "", "modelled": []}, "job": {"warnings": []}}
    assert set(prose(Plan, body)) == {
        ("assumptions",),
        ("warnings",),
        ("certificate", "solver"),
        ("certificate", "over"),
        ("certificate", "enumeration", "layouts"),
        ("certificate", "enumeration", "left_out"),
        ("capacity_ladder", "covers"),
        ("capacity_ladder", "modelled"),
    }


def test_optional_prose_counts_only_where_a_plan_has_it() -> None:
    assert ("actions",) in set(prose(Plan, {"actions": []}))
    assert ("actions",) not in set(prose(Plan, {}))


def test_an_infeasible_answer_has_its_own_prose() -> None:
    assert set(prose(Infeasible, {"assumptions": ["none"]})) == {("warnings",)}
